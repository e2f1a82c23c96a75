"""The recorder's C functions (profiler/capture/python/python_interface.cpp) for Python.

They see a tensor by `tensor._cdata`, the address of its TensorImpl, so that no Python.h is needed.
"""

import contextlib
import ctypes
import json
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

from . import _library
from ._terms import Category, FailureOutcome, Phase, RecordingError, Severity, StepKind

_NAME = "libtemposcope_python.so"
# Short calls keep Python's lock, which is cheaper. Long ones let other threads run, and what waits
# for a thread must not hold the lock that this thread may want.
_short = _library.open_library(_NAME)
_long = ctypes.CDLL(_short._name)

_short.temposcope_error.restype = ctypes.c_char_p
_short.temposcope_saving_calls.restype = ctypes.c_char_p
_short.temposcope_partners.restype = ctypes.c_char_p
_long.temposcope_unnamed_blocks.restype = ctypes.c_char_p
_short.temposcope_enter_module.restype = None
_short.temposcope_leave_module.restype = None
_short.temposcope_begin_value_step.restype = None
_short.temposcope_renew_value_budget.restype = None
_short.temposcope_set_imbalanced.restype = None
_short.temposcope_rest_unless_read.restype = None
_short.temposcope_read_values.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_short.temposcope_write_values.restype = None
_short.temposcope_write_values.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_short.temposcope_gather_stacks.restype = None
_short.temposcope_enter_module.argtypes = [ctypes.c_char_p]
_short.temposcope_describe.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
_short.temposcope_save.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_short.temposcope_release.argtypes = [ctypes.c_int64, ctypes.c_uint64]
_short.temposcope_add_inner_tensor.restype = None
_short.temposcope_add_inner_tensor.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_short.temposcope_set_inner_tensors.restype = None
_FindInnerTensors = ctypes.CFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)
_long.temposcope_end_step.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int]
_short.temposcope_set_imbalanced_peak.argtypes = [ctypes.c_int64]

enter_module = _short.temposcope_enter_module
leave_module = _short.temposcope_leave_module


def _check(status: int) -> None:
    if status != 0:
        raise RecordingError(_short.temposcope_error().decode())


def watch_allocator() -> None:
    """From here on each CPU tensor is known; those made before are known once they are named."""
    _check(_long.temposcope_watch_allocator())


def gather_stacks_on_cpu(wanted: bool) -> None:
    """Whether tensors of the CPU that are made before a recording of it know their call stacks."""
    _short.temposcope_gather_stacks(int(wanted))


def follow_values(
    mode: str, routing: str, folder: str = "", rank: int = 0, world_size: int = 1
) -> None:
    """From here on ops on a virtual GPU are followed: what they compute is known where it can be
    (mode "computed") or not ("zeros"), and reads of unknown values are counted. `routing` is
    a text of models/config/routing.h. `folder` is what the ranks of a virtual run share, of which
    this is one; empty: it is none. Raises RecordingError."""
    options = {
        "mode": mode, "routing": routing, "package": _package(),
        "torch": os.path.dirname(torch.__file__) + os.sep, "folder": folder, "rank": rank,
        "world_size": world_size,
    }  # fmt: skip
    _check(_short.temposcope_follow_values(json.dumps(options).encode()))


def read_values(address: int, target: int, size: int) -> bool:
    """Copies bytes of a virtual GPU to the host. False: some of them are not known."""
    return bool(_short.temposcope_read_values(address, target, size))


def write_values(address: int, source: int, size: int) -> None:
    """What a kernel of somebody else's has written to a virtual GPU is known to be this."""
    _short.temposcope_write_values(address, source, size)


@contextlib.contextmanager
def hidden_ops():
    """The ops that this thread runs meanwhile are not the program's: nobody hears of them."""
    was_hidden = _short.temposcope_hide_ops(1)
    try:
        yield
    finally:
        _short.temposcope_hide_ops(was_hidden)


def partners() -> list[int]:
    """The ranks that this one of a virtual run sent to or received from, one to one."""
    text = _short.temposcope_partners()
    _check(int(text is None))
    return json.loads(text)


begin_value_step = _short.temposcope_begin_value_step  # a step of the program ends
renew_value_budget = _short.temposcope_renew_value_budget  # a model is called


def rest_unless_read() -> None:
    """Nothing is recorded any more: values of a program that reads none need not be followed."""
    _short.temposcope_rest_unless_read()


def has_balanced_experts() -> bool:
    """Whether balanced routing was assumed of a mixture of experts on a virtual GPU."""
    return bool(_short.temposcope_has_balanced_experts())


def set_imbalanced(wanted: bool) -> None:
    """From here on one expert gets more tokens than its share, and no memory is refused."""
    _short.temposcope_set_imbalanced(int(wanted))


def set_imbalanced_peak(peak_bytes: int) -> None:
    """What a step took with such a routing."""
    _check(_short.temposcope_set_imbalanced_peak(peak_bytes))


def _package() -> str:
    return os.path.dirname(__file__) + os.sep


def start(device: str, program: dict, stacks: str) -> None:
    """Begins to record allocations, in memory; `device` is "cpu" or "cuda:1", `program` the fields
    of ProgramDescription (profiler/capture/run_description.h), and `stacks` "" for none, "python"
    or "all". Raises RecordingError."""
    libraries = str(_library.folder()).encode()
    options = {"package": _package(), "native_stacks": stacks == "all"} if stacks else {}
    text = json.dumps(program | options).encode()
    _check(_long.temposcope_start(device.encode(), libraries, text))


def open_file(file: str) -> None:
    """What was recorded so far, and what will be, goes into `file`. Raises RecordingError."""
    _check(_long.temposcope_open(file.encode()))


def resume_ops() -> None:
    """From here on ops are recorded, and what autograd saves. At the start they are not."""
    _check(_long.temposcope_resume_ops())


def pause_ops() -> None:
    """Allocations go on."""
    _check(_long.temposcope_pause_ops())


def stop() -> None:
    """Records no more. The file stays open."""
    _check(_long.temposcope_stop())


def finish(complete: bool) -> None:
    """Closes the file that is open. Raises RecordingError where it cannot be written."""
    _check(_long.temposcope_finish(int(complete)))


def discard() -> None:
    """Ends a recording of which nothing is to stay."""
    _check(_long.temposcope_discard())


def describe_program(program: dict) -> None:
    _check(_short.temposcope_describe_program(json.dumps(program).encode()))


def add_modules(layers: list[str], types: dict[str, str]) -> None:
    """The paths of modules that are layers, after those so far, and the class of each module by
    its path: {"encoder.layer.0.dropout": "Dropout"}."""
    texts = (json.dumps(layers).encode(), json.dumps(types).encode())
    _check(_short.temposcope_add_modules(*texts))


class SavingCall(NamedTuple):
    """A call that no other op is around, and that keeps something for backward."""

    op: str  # "aten::dropout"
    module_path: str  # that made it; empty: none
    savers: list[str]  # ops in it that keep something, or it itself: ["aten::mul"]


def saving_calls() -> list[SavingCall]:
    """Those that were recorded so far."""
    text = _short.temposcope_saving_calls()
    _check(int(text is None))
    return [SavingCall(*call) for call in json.loads(text)]


def begin_steps() -> None:
    _check(_long.temposcope_begin_steps())


def begin_step() -> None:
    _check(_short.temposcope_begin_step())


def mark_end_of_step() -> None:
    """The step may turn out to have ended here."""
    _check(_short.temposcope_mark_end_of_step())


def end_step(loss: float, kind: StepKind, at_mark: bool = False) -> None:
    """`at_mark`: it has ended there, and what followed is of the next step."""
    _check(_long.temposcope_end_step(loss, int(kind), int(at_mark)))


def make_steps_of_inferences() -> int:
    """Each inference that is in no step becomes a step of its own, the first one the first step.
    Returns their number."""
    count = ctypes.c_int64()
    _check(_short.temposcope_make_steps_of_inferences(ctypes.byref(count)))
    return count.value


def begin_phase(phase: Phase) -> None:
    _check(_short.temposcope_begin_phase(int(phase)))


def end_phase(phase: Phase) -> None:
    _check(_short.temposcope_end_phase(int(phase)))


def describe(tensor: torch.Tensor, name: str, category: Category) -> None:
    """Says what the storage of `tensor` is. One that is not on the recorded device is left out."""
    _check(_short.temposcope_describe(tensor._cdata, name.encode(), int(category)))


def set_profiled(is_profiled: bool) -> None:
    """A profiler of the program begins on this thread, or has ended. Call it on the thread that
    started the recording."""
    _check(_short.temposcope_set_profiled(int(is_profiled)))


class KeptTensor(NamedTuple):
    """A save of a recording."""

    number: int
    generation: int  # of the recording


def save(tensor: torch.Tensor) -> KeptTensor | None:
    """The op that runs keeps `tensor` for backward, until `release`. None: its storage is not
    recorded."""
    number, generation = ctypes.c_int64(), ctypes.c_uint64()
    references = ctypes.byref(number), ctypes.byref(generation)
    _check(_short.temposcope_save(tensor._cdata, *references))
    return None if number.value < 0 else KeptTensor(number.value, generation.value)


def release(kept: KeptTensor) -> None:
    """Of an earlier recording: nothing happens."""
    _check(_short.temposcope_release(*kept))


def set_inner_tensors(of: Callable[[torch.Tensor], Iterable[torch.Tensor]]) -> None:
    """What autograd saves of a wrapper class counts as the tensors that `of` finds in it."""

    @_FindInnerTensors
    def find(tensor, found):
        with contextlib.suppress(Exception):  # of a class that cannot say what is in it
            for inner in of(tensor):
                _short.temposcope_add_inner_tensor(found, inner._cdata)

    set_inner_tensors.find = find  # ctypes keeps no reference
    _short.temposcope_set_inner_tensors(find)


def add_note(code: str, severity: Severity, explanation: str) -> None:
    _check(_short.temposcope_note(code.encode(), int(severity), explanation.encode()))


def num_failures() -> int:
    """Requests for memory that were refused so far, and errors that end_failure added."""
    return _short.temposcope_num_failures()


class UnnamedBlock(NamedTuple):
    """A block of memory in use whose content has no name."""

    address: int
    bytes: int
    allocation: int  # the recorder's number of it
    saver: str = ""  # the op that saved it for backward; empty: none did


def unnamed_blocks(count: int) -> list[UnnamedBlock]:
    """The largest ones, the largest first."""
    text = _long.temposcope_unnamed_blocks(count)
    _check(int(text is None))
    return [UnnamedBlock(*block) for block in json.loads(text)]


def add_keepers(of_blocks: list[dict]) -> None:
    """[{"allocation": 7, "keepers": [{"kind": "container", "text": "list `history`, train.py:16",
    "file": "/home/me/train.py", "line": 16}]}]; the kinds are KeeperKind's of trace.h."""
    _check(_long.temposcope_add_keepers(json.dumps(of_blocks).encode()))


def set_failure_lines(lines: list[dict]) -> None:
    """[{"file", "line", "function", "code"}], outermost first, that asked for what was refused
    last."""
    _check(_long.temposcope_set_failure_lines(json.dumps(lines).encode()))


def end_failure(outcome: FailureOutcome, error: str, message: str) -> None:
    """What became of the newest failure of which that is not known; `error` is its class. If there
    is none and the error ends the program, it becomes a failure of its own."""
    words = (text.encode(errors="replace") for text in (error, message))  # half a UTF-16 pair
    _check(_long.temposcope_end_failure(int(outcome), *words))


def before_fork() -> None:
    _long.temposcope_before_fork()


def after_fork_in_parent() -> None:
    _short.temposcope_after_fork(0)


def after_fork_in_child() -> None:
    """The child records nothing."""
    _short.temposcope_after_fork(1)
