"""Stays in a program: when the memory of a GPU runs out, or on a signal, the last steps become a
trace. Torch itself keeps their history, in a ring; this file sizes the ring and writes it down.
`temposcope run` does the same once its steps are recorded (_program.py)."""

import heapq
import itertools
import json
import linecache
import operator
import os
import pickle
import signal as signals
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import _failures, _launch, _ranks
from ._command import format_bytes, sentence_of, temposcope
from ._frames import StackLine, stack_of_this_thread
from ._guest import guest, recording_error
from ._keepers import find_keepers, rows_of
from ._recorder import RecordingError
from ._stack_switch import StackSwitch

STEPS = 3  # that are remembered, if nobody asks for more
_STEPS_COUNTED = 3  # before the ring gets its size: the first one has no optimizer state yet
_FIRST_EVENTS = 100_000  # in the ring until then: about 100 MB with their call stacks
_EVENTS_OF_BLOCK = 3  # alloc, free_requested, free_completed
_MOST_BLOCKS = 32  # whose keepers are looked for, the largest
_FEW = 0.02  # of the memory in use: as much may have no line without a word


def watch(
    file: str | os.PathLike, *, steps: int = STEPS, signal: int | None = signals.SIGUSR1
) -> None:
    """From here on the last steps are remembered, and become the trace `file` (`NAME.tscope`) when
    the memory of a GPU runs out, also where the program catches the error, or on a signal.

        import temposcope
        temposcope.watch("oom.tscope")

    file    a later error or signal replaces it. Each rank of a distributed program has its own:
            NAME-rank-0003.tscope
    steps   about as many are remembered; a step ends when an optimizer has run
    signal  that writes it, and then does what the program set for it before; None: no signal.
            Python takes it in the main thread only, so there `watch` must be called

    The trace holds the allocator's events with their lines of Python, the failure, who keeps the
    largest blocks, and how the program was started. It is complete before torch raises its error.

    Warns where torch finds no GPU: then nothing is watched. Raises RecordingError with an allocator
    that has no history (`cudaMallocAsync`), and ValueError for a wrong argument.
    """
    path = os.path.abspath(file)
    if not path.endswith(".tscope"):
        raise ValueError(f"file is {os.fspath(file)!r}: give a name that ends in .tscope")
    if steps < 1:
        raise ValueError(f"steps is {steps}: remember at least 1")
    if signal is not None and threading.current_thread() is not threading.main_thread():
        raise ValueError("signal needs the main thread: call watch there, or give signal=None")
    _check_place(path)
    if not torch.cuda.is_available():
        warnings.warn("torch finds no GPU: temposcope.watch watches nothing", stacklevel=2)
        return
    if not has_history():
        raise RecordingError(
            "temposcope.watch needs torch's own allocator, and this is "
            f"{torch.cuda.get_allocator_backend()}, which has no history: take backend out of "
            "PYTORCH_CUDA_ALLOC_CONF"
        )
    _Watch.begin(_Watch(path, steps))
    if signal is not None:
        before = signals.signal(signal, _on_signal)
        if before is not _on_signal:
            _handlers_before[signal] = before


def _check_place(path: str) -> None:
    """Raises RecordingError where no trace can be written. What is there may be a trace alone."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "rb") as there:
            is_trace = there.read(len(_BEGINNING)) == _BEGINNING
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordingError(
            f"{path} cannot be written ({error.strerror}: {error.filename}): choose another place"
        ) from None
    if not is_trace:
        raise RecordingError(f"{path} exists and is no trace: choose another name")


def has_history() -> bool:
    """Whether the allocator is torch's own, which alone remembers what it did."""
    return torch.cuda.get_allocator_backend() == "native"


def num_allocations() -> int:
    """Of this program so far, on the current GPU."""
    return torch.cuda.memory_stats().get("allocation.all.allocated", 0)


class LastSteps:
    """What torch remembers of this process, and how it becomes a trace. `launch` is how the program
    was started (_launch.launch)."""

    def __init__(self, steps: int, launch: dict):
        self._steps = steps
        self._launch = launch
        self._owner = os.getpid()
        self._writing = threading.Lock()
        self._lock = threading.RLock()
        self._has_failed = False
        self._stacks = StackSwitch()
        self._is_counting = False
        self._allocations: list[int] = []  # so far, at the end of each step that was counted

    @property
    def has_ended(self) -> bool:
        """A forked process has no GPU."""
        return self._has_failed or os.getpid() != self._owner

    def begin(self) -> None:
        """The size of a step is not known yet: the first ones are counted."""
        self._is_counting = True
        self._stacks.begin(_FIRST_EVENTS)

    def remember(self, allocations_of_step: int) -> None:
        """The ring gets the size of the steps, and of the one that runs."""
        self._stacks.begin((self._steps + 1) * _EVENTS_OF_BLOCK * allocations_of_step)

    @guest
    def end_step(self, *_) -> None:
        if self._is_counting:
            self._count_step()
        else:
            self._stacks.end_step()

    def _count_step(self) -> None:
        """The last one that is counted gives the ring its size."""
        self._allocations.append(num_allocations())
        if len(self._allocations) > _STEPS_COUNTED:
            self._is_counting = False
            largest = max(b - a for a, b in itertools.pairwise(self._allocations))
            if largest > 0:
                self.remember(largest)

    def fail(self, error: Exception) -> None:
        """What fails is the watch, not the step of the program. The history stays as it is."""
        self._has_failed = True
        print(f"temposcope: {recording_error(error)}.", file=sys.stderr)
        self._stacks.end()

    def write(self, file: str, why: str, refused: list[StackLine]) -> str | None:
        """What the trace that is written does not hold, as a sentence or nothing; None: there is
        no trace. Says why not, and raises nothing: what leaves the handler of a signal ends the
        program. A second error meanwhile is of the same moment. `refused` are the lines that asked
        for what was refused, outermost first; empty: it is not of memory that ran out."""
        if self.has_ended or not self._writing.acquire(blocking=False):
            return None
        try:
            return self._write(file, refused)
        except Exception as error:
            because = f"no trace was written, because of {type(error).__name__} ({error})"
            said = error if isinstance(error, RecordingError) else because
            print(f"temposcope: {why}: {said}.", file=sys.stderr)
            return None
        finally:
            self._writing.release()

    def _write(self, file: str, refused: list[StackLine]) -> str:
        snapshot = torch.cuda.memory._snapshot()
        snapshot["temposcope"] = self._told(snapshot, refused)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        folder, name = os.path.split(file)
        # A name that nothing of the program's has.
        made = tempfile.NamedTemporaryFile(
            dir=folder, prefix=f"{name}.", suffix=".pickle", delete=False
        )
        with made as written:
            pickle.dump(snapshot, written)
        raw = made.name
        ran = temposcope("import", raw, "-o", file, "--overwrite")
        if ran.returncode != 0:
            raise RecordingError(
                f"torch's snapshot is in {raw}, and it became no trace ({sentence_of(ran)})"
            )
        os.remove(raw)
        return _note_without_lines(snapshot) if self._stacks.was_off else ""

    def _told(self, snapshot: dict, refused: list[StackLine]) -> str:
        """What pytorch_snapshot.cpp reads beside torch's own keys."""
        found = find_keepers(_largest_blocks(snapshot))
        blocks = [{"address": block.address, "keepers": rows_of(block)} for block in found]
        lines = _failures.with_code(refused)  # torch sees none of what autograd's threads run
        told = self._launch | {"torch": torch.__version__, "blocks": blocks, "lines": lines}
        told["codes"] = _codes(snapshot)
        text = json.dumps(told, ensure_ascii=False)
        return text.encode(errors="replace").decode()  # names of files may be no text


class _Watch:
    current: "_Watch | None" = None

    def __init__(self, file: str, steps: int):
        self._file = file
        self._last_steps = LastSteps(steps, _launch.launch())

    @staticmethod
    def begin(watch: "_Watch") -> None:
        is_first = _Watch.current is None
        _Watch.current = watch
        watch._last_steps.begin()
        _failures.listen(_on_out_of_memory)
        if is_first:
            register_optimizer_step_post_hook(_on_optimizer)

    def end_step(self) -> None:
        self._last_steps.end_step()

    def write(self, why: str, refused: list[StackLine]) -> None:
        rank = _ranks.current()
        name = self._file.removesuffix(".tscope")
        file = self._file if rank.world_size == 1 else f"{name}-rank-{rank.rank:04}.tscope"
        note = self._last_steps.write(file, why, refused)
        if note is not None:
            print(
                f"temposcope: {why}: the last steps are in {file}, and temposcope explain {file} "
                f"says what to do.{note}",
                file=sys.stderr,
            )


def _blocks_in_use(snapshot: dict) -> Iterator[dict]:
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield block


def _largest_blocks(snapshot: dict) -> list[tuple[int, int]]:
    """(address, bytes) of those in use."""
    blocks = ((block["address"], block["size"]) for block in _blocks_in_use(snapshot))
    return heapq.nlargest(_MOST_BLOCKS, blocks, key=operator.itemgetter(1))


def _codes(snapshot: dict) -> list[dict]:
    """The text of the lines that asked for the blocks in use, which torch does not know."""
    frames = (frame for block in _blocks_in_use(snapshot) for frame in block["frames"])
    lines = {(frame["filename"], frame["line"]) for frame in frames}
    codes = []
    for file, line in sorted(lines):
        code = linecache.getline(file, line).strip() if file.endswith(".py") else ""
        if code:
            codes.append({"file": file, "line": line, "code": code})
    return codes


def _note_without_lines(snapshot: dict) -> str:
    """Empty where nearly all memory in use has its line."""
    in_use = sum(block["size"] for block in _blocks_in_use(snapshot))
    bare = sum(block["size"] for block in _blocks_in_use(snapshot) if not block["frames"])
    if bare < _FEW * in_use:
        return ""
    return (
        f" {format_bytes(bare)} of {format_bytes(in_use)} in use have no line: they were asked for "
        "before the watch, or while memory did not grow."
    )


_BEGINNING = b"SQLite format 3\0"  # of a trace
_handlers_before: dict[int, object] = {}  # of signals, as the program had set them


def _on_out_of_memory(device: int) -> None:
    _Watch.current.write(f"memory of cuda:{device} ran out", stack_of_this_thread())


def _on_optimizer(*_) -> None:
    _Watch.current.end_step()


def _on_signal(number: int, frame) -> None:
    _Watch.current.write(f"{signals.Signals(number).name} came", [])
    before = _handlers_before.get(number)
    if callable(before):
        before(number, frame)
