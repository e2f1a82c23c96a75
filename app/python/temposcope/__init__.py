"""Temposcope in a PyTorch program: what the memory of a training step holds, and who needs it.

    import temposcope                    # before the model is made, so that all its memory is known

    with temposcope.record("step.tscope", model, optimizer):
        train_a_few_steps()

`temposcope info step.tscope --peak` then reads the trace; docs/record_your_program.md says more.
"""

import os as _os

from . import _recorder, _session
from ._estimate import Estimate, estimate
from ._keepers import keepers
from ._library import load_ops
from ._recipes import recipes
from ._record import Recording, phase, record, step
from ._recorder import RecordingError
from ._swap import Left, SwapReport, swap
from ._watch import watch

__all__ = [
    "Estimate",
    "Left",
    "Recording",
    "RecordingError",
    "SwapReport",
    "estimate",
    "keepers",
    "load_ops",
    "phase",
    "recipes",
    "record",
    "step",
    "swap",
    "watch",
]

_recorder.watch_allocator()
_os.register_at_fork(
    before=_recorder.before_fork,
    after_in_parent=_recorder.after_fork_in_parent,
    after_in_child=lambda: (_recorder.after_fork_in_child(), _session.forget_in_forked_process()),
)
