"""The words of a trace, as numbers that the recorder and its files share."""

import enum


class Phase(enum.IntEnum):
    FORWARD = 0
    LOSS = 1
    BACKWARD = 2
    OPTIMIZER = 3
    INFERENCE = 4  # forward without gradients beside the training


class Category(enum.IntEnum):
    """What a storage is for, as profiler/trace/trace.h numbers it."""

    PARAMETER = 0
    GRADIENT = 1
    OPTIMIZER_STATE = 2
    WORKSPACE = 5
    INPUT = 6


class StepKind(enum.IntEnum):
    WHOLE = 0
    FIRST = 1  # of the training: libraries load in it, and the optimizer's state is born
    BROKEN = 2  # it did not come to its end


class FailureOutcome(enum.IntEnum):
    """What became of the program when memory ran out."""

    ENDED = 0
    CAUGHT = 1  # by the program
    ABSORBED = 2  # by torch


class Severity(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2


class RecordingError(RuntimeError):
    """What cannot be recorded, and what to do, in one sentence."""
