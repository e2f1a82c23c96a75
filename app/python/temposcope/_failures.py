"""Requests for memory that were refused: which lines made them, what keeps the memory that is in
use, and what became of the program.

    torch asks ──► refused ──► torch's observer ──► listeners     all frames are still there
                      │
                      └──► OutOfMemoryError ──► what the program does next decides
"""

import contextlib
import enum
import linecache
import threading
from collections.abc import Callable

import torch

from . import _frames, _recorder
from ._keepers import find_keepers, rows_of
from ._recorder import FailureOutcome

_OUT_OF_MEMORY = torch.OutOfMemoryError.__name__
_MOST_BLOCKS = 8  # of which it is asked who keeps them
# A program that tries batch sizes, or a library that tries algorithms, fails often.
_MOST_SEARCHES = 8
_LONGEST_MESSAGE = 4000  # characters

# Torch can attach an observer, and never detaches it.
_listeners: list[Callable[[int], None]] = []
_is_attached = False


def listen(listener: Callable[[int], None]) -> None:
    """From here on this listener is called for each request that a GPU refuses, with the GPU's
    number, on the thread that made it, before the error is raised. Torch must have initialized
    CUDA. Raises RuntimeError where the allocator tells nobody."""
    global _is_attached
    if not _is_attached:
        torch._C._cuda_attach_out_of_memory_observer(_on_refused)
        _is_attached = True
    if listener not in _listeners:
        _listeners.append(listener)


def unlisten(listener: Callable[[int], None]) -> None:
    """Of one that does not listen, nothing."""
    with contextlib.suppress(ValueError):
        _listeners.remove(listener)


def _on_refused(device: int, *_bytes: int) -> None:
    """An exception that leaves it would take the place of torch's error."""
    for listener in tuple(_listeners):
        with contextlib.suppress(Exception):
            listener(device)


def ran_out(error: BaseException | None) -> bool:
    """Whether it comes from an out-of-memory error."""
    seen = set()
    while error is not None and id(error) not in seen:
        if issubclass(type(error), torch.OutOfMemoryError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def text_of(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST_MESSAGE]
    except Exception:
        return ""


class Place(enum.Enum):
    """Where a program is when it asks for memory, or what it begins or ends."""

    MODULE = enum.auto()  # that no other module calls
    BACKWARD = enum.auto()
    OPTIMIZER = enum.auto()
    UPDATE = enum.auto()  # between backward and the optimizer
    ELSEWHERE = enum.auto()
    LEFT = enum.auto()  # the error has left the call that it came from


# What a program begins, and where it asked before, if its step goes on: no error came from there.
_GO_ON = {
    (Place.BACKWARD, Place.MODULE),
    (Place.BACKWARD, Place.ELSEWHERE),
    (Place.OPTIMIZER, Place.UPDATE),
}


class Failures:
    """What becomes of those of a recording: of the newest one, and of those that happened in the
    same place before it.

        the call that asked comes to its end, or its step goes on    torch absorbed it
        the program begins something else                            the program caught the error
        neither, until the program ends                              the error ended it
    """

    def __init__(self):
        self.has_any = False
        self._place: Place | None = None  # None: all is decided
        self._thread = 0  # that asked; 0: one of C++, as autograd's are
        self._num_known = 0
        self._num_decided = 0
        self._num_searches = 0

    def begin(self, place: Place) -> bool:
        """Returns whether the recorder has seen a new one."""
        num_failures = _recorder.num_failures()
        if num_failures == self._num_known:  # of a device that is not recorded
            return False
        self._num_known = num_failures
        self.has_any = True
        self._place = place
        asking = threading.get_ident()
        self._thread = asking if _frames.is_started_by_python(asking) else 0
        return True

    def began(self, what: Place) -> bool:
        """The program begins this. Returns whether it caught an error before: then the step in
        which that happened is broken."""
        if not self._is_told_here():
            return False
        goes_on = (what, self._place) in _GO_ON
        self._decide(FailureOutcome.ABSORBED if goes_on else FailureOutcome.CAUGHT)
        return not goes_on

    def ended(self, what: Place, is_whole: bool) -> bool:
        """This has ended. Returns whether an error of a request in it has ended it."""
        if self._place != what or not self._is_told_here():
            return False
        if is_whole:
            self._decide(FailureOutcome.ABSORBED)
        else:
            self._place = Place.LEFT
        return not is_whole

    def end(self, error: BaseException) -> None:
        """This error ends the program, or a thread of it."""
        if self._place is not None and not ran_out(error):
            self._decide(FailureOutcome.CAUGHT)
        self.has_any = True
        _recorder.end_failure(FailureOutcome.ENDED, type(error).__name__, text_of(error))
        if self._place is None:  # no observer has told its lines
            tell_lines(_frames.stack_of_error(error))
        self._see_decided()

    def close(self, goes_on: bool) -> None:
        """The recording ends. `goes_on`: the program does not."""
        if self._place is None:
            return
        ended = not goes_on and self._thread in (0, threading.main_thread().ident)
        if ended:
            _recorder.end_failure(FailureOutcome.ENDED, _OUT_OF_MEMORY, "")
            self._see_decided()
        else:
            self._decide(FailureOutcome.CAUGHT)

    def describe(self, saves_are_recorded: bool) -> None:
        """Tells the recorder which lines asked for what was refused last, and what keeps the
        largest blocks that have no name."""
        tell_lines(_frames.stack_of_this_thread())
        if self._num_searches < _MOST_SEARCHES:
            self._num_searches += 1
            tell_keepers(saves_are_recorded)

    def _is_told_here(self) -> bool:
        """Whether what this thread does next says what became of it."""
        if self._place is None:
            return False
        is_own = self._thread in (0, threading.get_ident())
        return is_own or not _frames.is_started_by_python(self._thread)  # that thread has ended

    def _decide(self, outcome: FailureOutcome) -> None:
        for _ in range(self._num_known - self._num_decided):
            _recorder.end_failure(outcome, _OUT_OF_MEMORY, "")
        self._see_decided()

    def _see_decided(self) -> None:
        self._place = None
        self._num_known = self._num_decided = _recorder.num_failures()


def with_code(stack: list[_frames.StackLine]) -> list[dict]:
    """Its lines as a trace has them."""
    codes = (linecache.getline(line.file, line.line).strip() for line in stack)
    return [line._asdict() | {"code": code} for line, code in zip(stack, codes, strict=True)]


def tell_lines(stack: list[_frames.StackLine]) -> None:
    """Those of the last failure, with their code."""
    _recorder.set_failure_lines(with_code(stack))


def tell_keepers(saves_are_recorded: bool, budget_s: float = 0.2) -> None:
    """What keeps the largest blocks that have no name. While saves are recorded, torch tells nobody
    else what autograd saved."""
    blocks = _recorder.unnamed_blocks(_MOST_BLOCKS)
    if not blocks:
        return
    saved = {block.address: block.saver for block in blocks if block.saver}
    places = [(block.address, block.bytes) for block in blocks]
    found = find_keepers(places, budget_s, saved if saves_are_recorded else None)
    of_blocks = [
        {"allocation": block.allocation, "keepers": rows_of(of_block)}
        for block, of_block in zip(blocks, found, strict=True)
    ]
    _recorder.add_keepers([one for one in of_blocks if one["keepers"]])
    if failure := next((one.failure for one in found if one.failure), ""):
        _recorder.add_note("keepers_failed", _recorder.Severity.INFO, f"{failure}.")

