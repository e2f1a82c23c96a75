"""Records a program whose torch has no libraries of Temposcope, by what torch itself offers: the
history of its allocator, and hooks of autograd, of modules and of optimizers.

    the history      each block of the GPU, with the line of Python that asked for it
    annotations      what a block contains: parameter, gradient, optimizer_state, and activation
                     for what autograd saved, each with its name (torch 2.14 and newer)
    ranges           steps, forward, backward, optimizer

So the trace has the peak and the ledger; it has no ops, no kernels and nothing on the CPU, and says
so. `temposcope import` makes it of a snapshot (contents_text.h, pytorch_snapshot.cpp).
"""

import atexit
import contextlib
import dataclasses
import functools
import json
import os
import pickle
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

from . import _launch
from ._command import sentence_of, temposcope
from ._guest import guest, recording_error
from ._observe import Observer
from ._optimizers import Optimizers, parameters_of
from ._status import Status, first_line
from ._terms import RecordingError

_MOST_EVENTS = 1_000_000  # in torch's ring: some hundred MB of the host's memory
_MOST_FAILURES = 3  # that are written; a program that looks for its batch meets many
_FORWARD, _BACKWARD, _OPTIMIZER = "## forward ##", "## backward ##", "## optimizer ##"
_autograd = torch._C._autograd
_annotate_tensor = getattr(torch.cuda.memory, "_annotate_tensor", None)


@dataclasses.dataclass
class Mark:
    """The begin or the end of a range, as a snapshot has it."""

    stage: str  # "START" or "END"
    name: str
    time_us: int = dataclasses.field(default_factory=lambda: time.time_ns() // 1000)
    device: int = 0


class Saved(NamedTuple):
    """What autograd keeps in place of a tensor."""

    tensor: torch.Tensor
    version: int


class TorchAlone:
    """The recording of this process, from the import of torch to its end. It is a Listener
    (_observe.py). `why` there are no libraries is a sentence."""

    def __init__(self, options: dict, why: str):
        self._options = options
        self._why = why
        self._status = Status(options["status"])
        self._launch = _launch.launch(options["command"], options["working_folder"])
        self._owner = os.getpid()
        self._main = threading.main_thread().ident
        self._lock = threading.RLock()
        self._observer = Observer(self)
        self._hooks = _SavedHooks(self._save)
        self._history = _History()
        self._optimizers = Optimizers(finds_others=True)
        self._marks: list[Mark] = []
        self._open: list[str] = []  # names of ranges that have begun
        self._running: list[str] = []  # paths of modules
        self._paths: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of modules
        self._names = WeakIdKeyDictionary()  # of parameters
        self._told = WeakIdKeyDictionary()  # tensors whose contents torch knows
        self._num_steps = 0
        self._num_failures = 0
        self._has_trained = False
        self._is_claimed = False
        self._has_stopped = False
        self._ended_with: dict = {}  # {"exception": "ValueError", "message": what it says}

    @property
    def has_ended(self) -> bool:
        """A forked process records nothing."""
        return self._has_stopped or os.getpid() != self._owner

    @property
    def _sees(self) -> bool:
        """Whether what happens on this thread is of the recorded steps."""
        return bool(self._open) and threading.get_ident() == self._main

    def follow(self) -> None:
        self._status.add(state="torch", version=torch.__version__)
        saved = "peak and saved tensors" if _annotate_tensor else "the peak"
        print(
            f"temposcope: {self._why}. Until then torch alone records: {saved} on a GPU, without "
            "ops and kernels.",
            file=sys.stderr,
        )
        torch.cuda._lazy_call(self._begin)  # not before the program uses a GPU: it may fork
        if _annotate_tensor is not None:
            self._hooks.start()
        self._observer.start()
        self._excepthook, sys.excepthook = sys.excepthook, self._on_exception
        atexit.register(self._finish_at_exit)

    def fail(self, error: Exception) -> None:
        """What fails is the recording, not the program."""
        self._stop()
        if self._claims():
            self._status.add(state="failed", sentence=str(recording_error(error)))

    # ---- steps and phases -----------------------------------------------------------------------

    @guest
    def _begin(self) -> None:
        """The program uses a GPU."""
        backend = torch.cuda.get_allocator_backend()
        if backend != "native":
            raise RecordingError(f"the allocator is {backend}, which has no history")
        self._history.start()
        torch._C._cuda_attach_out_of_memory_observer(self._on_refused)
        self._start(self._step_name())

    def _step_name(self) -> str:
        return f"ProfilerStep#{self._num_steps}"

    def _start(self, name: str) -> None:
        self._open.append(name)
        self._marks.append(Mark("START", name))

    def _end_range(self, name: str) -> None:
        """Ranges in it end with it: a phase that an exception has left."""
        while name in self._open:
            self._marks.append(Mark("END", self._open.pop()))

    def _end_step(self) -> None:
        self._end_range(self._step_name())
        self._optimizers.end_step()
        self._num_steps += 1
        if not self._claims():  # another process trained before
            return self._stop()
        if self._num_steps < self._options["skip"] + self._options["steps"]:
            return self._start(self._step_name())
        self._finish()
        if self._options["stop"]:
            raise SystemExit(0)

    @guest
    def module_begins(self, module: torch.nn.Module, depth: int, _args: tuple) -> bool:
        if not self._sees or self._observer.in_backward():
            return False
        if depth == 0:
            self._running.clear()
            self._see_root(module)
            self._optimizers.model_begins(module)
            if _FORWARD not in self._open:
                self._start(_FORWARD)
        self._running.append(self._paths.get(module, ""))
        return True

    @guest
    def module_ends(self, _module: torch.nn.Module, depth: int, _returns: bool) -> None:
        """The loss, too, belongs to the forward, which lasts until backward begins."""
        del self._running[depth:]

    def _see_root(self, module: torch.nn.Module) -> None:
        """One that no other calls: its parameters get their names."""
        if module in self._paths:
            return
        for path, one in module.named_modules():
            self._paths.setdefault(one, path)
        for name, parameter in module.named_parameters():
            self._names.setdefault(parameter, name)
            self._note(parameter, "parameter", name)

    @guest
    def backward_begins(self, _root: object) -> None:
        if self._sees:
            self._end_range(_FORWARD)
            self._start(_BACKWARD)

    @guest
    def backward_ends(self, _accumulates: bool, _is_whole: bool) -> None:
        self._end_range(_BACKWARD)

    @guest
    def optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None:
        self._has_trained = True
        if not self._sees:
            return
        self._optimizers.begins(optimizer)
        if self._optimizers.begins_again(optimizer):
            self._end_step()
        for parameter in parameters_of(optimizer):
            if parameter not in self._names:  # of no module
                self._names[parameter] = ""
                self._note(parameter, "parameter", "")
            if parameter.grad is not None:
                self._note(parameter.grad, "gradient", self._names.get(parameter, ""))
        if self._open:
            self._start(_OPTIMIZER)

    @guest
    def optimizer_ends(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._sees:
            return
        self._end_range(_OPTIMIZER)
        for parameter in parameters_of(optimizer):
            states = optimizer.state.get(parameter, {})
            name = self._names.get(parameter, "")
            for key, state in states.items() if isinstance(states, dict) else ():
                if isinstance(state, torch.Tensor):
                    self._note(state, "optimizer_state", f"{name}.{key}" if name else key)
        if self._optimizers.ends(optimizer):
            self._end_step()

    def profiler_begins(self) -> None:
        pass

    def profiler_has_ended(self) -> None:
        pass

    def result_is_kept(self, _tensor: torch.Tensor) -> None:
        return None

    # ---- contents of blocks ---------------------------------------------------------------------

    @guest
    def _save(self, tensor: torch.Tensor) -> None:
        """Autograd saves it, or a view of it."""
        whole = tensor if tensor._base is None else tensor._base
        is_known = isinstance(whole, torch.nn.Parameter) or whole in self._names
        if self._sees and tensor.is_cuda and not is_known:
            module = self._running[-1] if self._running else ""
            dtype = str(tensor.dtype).removeprefix("torch.")
            with contextlib.suppress(RuntimeError):  # a nested tensor has no shape
                saved = f"{module or 'outside of modules'}, saved {list(tensor.shape)} {dtype}"
                _annotate(tensor, "activation", saved)

    def _note(self, tensor: torch.Tensor, category: str, name: str) -> None:
        if tensor.is_cuda and self._told.get(tensor) != category:
            self._told[tensor] = category
            _annotate(tensor, category, name)

    # ---- the end --------------------------------------------------------------------------------

    def _on_refused(self, *_numbers: int) -> None:
        """Memory ran out. What the program does next is not known yet: the recording goes on."""
        self._num_failures += 1
        if self._num_failures <= _MOST_FAILURES:
            self._write_as_it_is()

    @guest
    def _write_as_it_is(self) -> None:
        if self._claims():
            self._write()
            self._tell("incomplete")

    def _on_exception(self, kind, value, traceback) -> None:
        self._ended_with = {"exception": kind.__name__, "message": first_line(value)}
        self._excepthook(kind, value, traceback)

    @guest
    def _finish_at_exit(self) -> None:
        if self._marks:
            self._finish()
        elif self._has_trained and self._claims():
            self._status.add(
                state="failed",
                sentence="The program used no GPU, and torch alone records nothing on the CPU",
            )

    def _claims(self) -> bool:
        """Whether this process speaks for the program: the first one that takes a step."""
        self._is_claimed = self._is_claimed or self._status.claim(None)
        return self._is_claimed

    def _finish(self) -> None:
        if self._open and self._marks[-1].stage == "START" and len(self._open) == 1:
            self._open.pop()  # nothing followed the last step
            self._marks.pop()
        while self._open:
            self._end_range(self._open[0])
        if self._claims():
            self._write()
            wanted = self._options["skip"] + self._options["steps"]
            self._tell("complete" if self._num_steps >= wanted else "incomplete")
        self._history.end()
        self._stop()

    def _stop(self) -> None:
        self._hooks.stop()
        self._observer.stop()
        self._has_stopped = True

    def _tell(self, state: str) -> None:
        steps = max(0, self._num_steps - self._options["skip"])
        failures = {"failures": self._num_failures} if self._num_failures else {}
        self._status.add(
            state=state, steps=steps, seen_steps=self._num_steps, **failures, **self._ended_with
        )

    def _write(self) -> None:
        snapshot = torch.cuda.memory._snapshot()
        still_open = [Mark("END", name) for name in reversed(self._open)]
        marks = [dataclasses.asdict(mark) for mark in (*self._marks, *still_open)]
        snapshot["external_annotations"] = marks
        snapshot["temposcope"] = json.dumps(self._described())
        with tempfile.TemporaryDirectory(prefix="temposcope-") as folder:
            raw = os.path.join(folder, "snapshot.pickle")
            with open(raw, "wb") as file:
                pickle.dump(snapshot, file)
            ran = temposcope("import", raw, "-o", self._options["file"], "--overwrite")
        if ran.returncode != 0:
            raise RecordingError(sentence_of(ran).removesuffix("."))

    def _described(self) -> dict:
        """What pytorch_snapshot.cpp reads beside torch's own keys."""
        sentences = [
            f"Recorded by torch alone, because {self._why}.",
            "Ops, kernels and memory outside the allocator are missing.",
        ]
        if _annotate_tensor is None:
            sentences.append("Saved tensors are missing, too: torch tells them since 2.14.")
        if self._options["gpu"]:
            sentences.append("Every value that the program read from the GPU was zero.")
        return self._launch | {
            "torch": torch.__version__,
            "gpu": self._options["gpu"] or "",
            "blocks": [],
            "note": " ".join(sentences),
        }


def _annotate(tensor: torch.Tensor, category: str, name: str) -> None:
    if _annotate_tensor is not None:
        with contextlib.suppress(Exception):  # a subclass of tensors may have no storage
            _annotate_tensor(tensor, f"{category}: {name}" if name else category)


class _History:
    """Of the allocator. A program may use it, too: what it starts goes on after the recording, and
    what it ends goes on until then."""

    def __init__(self):
        self._record = torch.cuda.memory._record_memory_history
        self._is_ours = False
        self._is_of_program = False

    def start(self) -> None:
        self._record("all", context="alloc", stacks="python", max_entries=_MOST_EVENTS)
        self._is_ours = True
        torch.cuda.memory._record_memory_history = self._ask

    def end(self) -> None:
        self._is_ours = False
        if not self._is_of_program:
            self._record(None)  # it costs time

    @functools.wraps(torch.cuda.memory._record_memory_history)
    def _ask(self, enabled="all", *arguments, **options) -> None:
        self._is_of_program = enabled is not None
        if self._is_of_program or not self._is_ours:
            self._record(enabled, *arguments, **options)


class _SavedHooks:
    """Hooks of saved tensors below all that the program sets: where it has hooks of its own, these
    see nothing. torch.func takes no hooks, so they go while it works."""

    def __init__(self, see: Callable[[torch.Tensor], None]):
        self._see = see
        self._is_there = False
        self._has_ended = False
        self._disable = _autograd._saved_tensors_hooks_disable
        self._enable = _autograd._saved_tensors_hooks_enable

    def start(self) -> None:
        _autograd._saved_tensors_hooks_disable = self._disable_without_ours
        _autograd._saved_tensors_hooks_enable = self._enable_with_ours
        self._put()

    def stop(self) -> None:
        """Where the program is within hooks of its own, these see and change nothing more."""
        self._has_ended = True
        top = getattr(_autograd, "_top_saved_tensors_default_hooks", lambda _: None)(False)
        if top is not None and top[0] == self._pack:
            self._take()

    def _put(self) -> None:
        _autograd._push_saved_tensors_default_hooks(self._pack, self._unpack)
        self._is_there = True

    def _take(self) -> None:
        _autograd._pop_saved_tensors_default_hooks()
        self._is_there = False

    def _disable_without_ours(self, *arguments) -> None:
        if self._is_there:
            self._take()
        self._disable(*arguments)

    def _enable_with_ours(self) -> None:
        self._enable()
        if not self._is_there and not self._has_ended:
            self._put()

    def _pack(self, tensor: torch.Tensor):
        """A graph would hold for ever the result that holds the graph. On a parameter a program
        keeps attributes."""
        self._see(tensor)
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        return Saved(tensor if is_parameter else tensor.detach(), tensor._version)

    @staticmethod
    def _unpack(saved: Saved) -> torch.Tensor:
        if saved.tensor._version != saved.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: it is at version {saved.tensor._version}, expected version "
                f"{saved.version}"
            )
        return saved.tensor


def follow(why: str) -> None:
    """Called once torch is imported. Ends the program where this way cannot record it."""
    options = json.loads(os.environ[_launch.RUN])
    for what, is_wanted in (
        ("--apply", options["apply"]),
        ("several ranks", options["folder"] is not None or options["world_size"] is not None),
        ("--cpp-stacks", options["stacks"] == "all"),
    ):
        if is_wanted:
            sentence = f"Without these libraries {what} cannot be recorded"
            Status(options["status"]).add(state="failed", sentence="Nothing was recorded")
            raise SystemExit(f"temposcope: {why}. {sentence}.")
    TorchAlone(options, why).follow()
