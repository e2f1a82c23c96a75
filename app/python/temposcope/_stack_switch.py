"""Which requests for GPU memory get their Python stack, while torch keeps the history of its
allocator. A stack costs the thread 1 to 2 us, the event itself a tenth of that.

Memory cannot run out that does not grow, so most steps need no stacks. Requests have them

    in the first steps             what these make lives long: parameters, states of optimizers
    for 32 steps after growth      and so in all steps, where memory grows again and again
    once half the GPU is reserved  then one step that is larger than all before may fill the rest
    in one step of 64              so that what stays from step to step has lines, too

     the end of a step ──► decides for the next one
     every 100 ms ───────► a thread looks whether memory grows within a step, or in a program that
                           has left its steps, as for a validation
"""

import atexit
import functools
import threading
import time

import torch

STEPS_AFTER_GROWTH = 32
STEPS_PER_SAMPLE = 64
_SHARE_OF_GPU = 0.5
THREAD = "temposcope.watch"
_LOOK_EVERY_S = 0.1
_LOOKS_PER_SEARCH = 16  # for GPUs that were not in use before

_record_history = torch.cuda.memory._record_memory_history


class StackSwitch:
    """At the start all requests have their stack."""

    _current: "StackSwitch | None" = None  # torch has one history

    def __init__(self):
        self.is_on = False
        self.was_off = False
        self._max_events = 0
        self._steps = 0
        self._steps_left = 0  # with stacks, after memory grew
        self._looks = 0
        self._next_look_s = 0.0
        self._reserved: dict[int, int] = {}  # the most so far, by GPU that is in use
        self._is_near: bool | None = None  # half the GPU is reserved; None: not looked up
        self._lock = threading.RLock()
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, max_events: int) -> None:
        """The history begins anew, with so many events at most: torch cannot bring those of a ring
        of another size in order. Nothing once the program has taken the history over."""
        if self._has_ended.is_set():
            return
        if StackSwitch._current is not self:
            StackSwitch.end_current()
            StackSwitch._current = self
            torch.cuda.memory._record_memory_history = _history_of_program
        with self._lock:
            self._max_events = max_events
            self._turn(True, clear_history=True)
            self._steps_left = STEPS_AFTER_GROWTH

    def end(self) -> None:
        """Leaves the history as it is."""
        if StackSwitch._current is self:
            StackSwitch.end_current()

    @staticmethod
    def end_current() -> None:
        """Leaves the history as it is."""
        switch, StackSwitch._current = StackSwitch._current, None
        if switch is None:
            return
        switch._has_ended.set()  # without the lock, which the thread may have had in a fork
        if switch._thread is not None:
            switch._thread.join()

    def end_step(self) -> None:
        """Decides for the next one."""
        with self._lock:
            if self._has_ended.is_set():
                return
            self._steps += 1
            is_sample = self._steps % STEPS_PER_SAMPLE == 0
            self._steps_left = max(0, self._steps_left - 1)
            self._see_growth()
            self._turn(is_sample or self._steps_left > 0 or self._is_half_reserved())
            if not self.is_on and self._thread is None:
                self._thread = threading.Thread(target=self._look_out, name=THREAD, daemon=True)
                self._thread.start()
                atexit.register(StackSwitch.end_current)

    def _look_out(self) -> None:
        while not self._has_ended.wait(_LOOK_EVERY_S):
            with self._lock:
                if not self.is_on and not self._has_ended.is_set() and self._see_growth():
                    self._turn(True)

    def _turn(self, on: bool, clear_history: bool = False) -> None:
        if on == self.is_on and not clear_history:
            return
        self.is_on = on
        self.was_off |= not on
        _record_history(
            "all",
            context="alloc" if on else None,
            stacks="python",
            max_entries=self._max_events,
            clear_history=clear_history,
        )

    def _see_growth(self) -> bool:
        """Whether more is reserved than ever. To ask a GPU takes 10 us, as much as a step may cost
        that takes 1 ms. A rank of a program sees all GPUs, and uses one. Until Python initializes
        CUDA torch has no numbers."""
        if not torch.cuda.is_initialized():
            return False
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + _LOOK_EVERY_S
        searches = self._looks % _LOOKS_PER_SEARCH == 0 or not self._reserved
        self._looks += 1
        grew = False
        for gpu in range(torch.cuda.device_count()) if searches else list(self._reserved):
            reserved = _reserved_bytes(gpu)["peak"]
            if reserved > self._reserved.get(gpu, 0):
                self._reserved[gpu] = reserved
                grew = True
        if grew:
            self._steps_left = STEPS_AFTER_GROWTH
            self._is_near = None
        return grew

    def _is_half_reserved(self) -> bool:
        if self._is_near is None and not torch.cuda.is_current_stream_capturing():
            self._is_near = any(
                reserved > _SHARE_OF_GPU * _limit_bytes(gpu)
                for gpu, reserved in self._reserved.items()
            )
        return self._is_near is not False


def _reserved_bytes(gpu: int) -> dict[str, int]:
    return torch.cuda.memory_stats_as_nested_dict(gpu)["reserved_bytes"]["all"]


def _limit_bytes(gpu: int) -> float:
    """What this process can reserve: its share, and no more than other processes leave."""
    free, total = torch.cuda.mem_get_info(gpu)
    share = torch.cuda.get_per_process_memory_fraction(gpu)
    return min(share * total, _reserved_bytes(gpu)["current"] + free)


@functools.wraps(_record_history)
def _history_of_program(*args, **kwargs):
    """The program takes the history over: from here on it has the stacks that the program asked
    for."""
    StackSwitch.end_current()
    return _record_history(*args, **kwargs)
