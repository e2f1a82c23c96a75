"""Records a program whose torch has no libraries of Temposcope, by what torch itself offers: the
history of its allocator, and hooks of autograd, of modules and of optimizers.

    the history      each block of the GPU, with the line of Python that asked for it
    annotations      what a block contains: parameter, gradient, optimizer_state, and activation
                     for what autograd saved, each with its name (torch 2.14 and newer)
    ranges           steps, forward, backward, optimizer

So the trace has the peak and the ledger; it has no ops, no kernels and nothing on the CPU, and says
so. It is written as `temposcope import` reads it (contents_text.h, pytorch_snapshot.cpp).
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

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from . import _launch
from ._command import sentence_of, temposcope

_MOST_EVENTS = 1_000_000  # in torch's ring: some hundred MB of the host's memory
_FORWARD, _BACKWARD, _OPTIMIZER = "## forward ##", "## backward ##", "## optimizer ##"
_annotate_tensor = getattr(torch.cuda.memory, "_annotate_tensor", None)


@dataclasses.dataclass
class Mark:
    """The begin or the end of a range, as a snapshot has it."""

    stage: str  # "START" or "END"
    name: str
    time_us: int = dataclasses.field(default_factory=lambda: time.time_ns() // 1000)
    device: int = 0


class TorchAlone:
    """The recording of this process, from the import of torch to its end. `why` there are no
    libraries is a sentence."""

    def __init__(self, options: dict, why: str):
        self._options = options
        self._why = why
        self._owner = os.getpid()
        self._launch = _launch.launch(options["command"], options["working_folder"])
        self._marks: list[Mark] = []
        self._open: list[str] = []  # names of ranges that have begun
        self._modules: list[str] = []  # paths of those that run
        self._paths: dict[int, str] = {}  # of modules that were seen, by id
        self._names: dict[int, str] = {}  # of parameters, by id
        self._roots: list[torch.nn.Module] = []
        self._has_updated = False  # since the last forward
        self._num_steps = 0
        self._has_ended = False

    def follow(self) -> None:
        self._tell(state="torch", version=torch.__version__)
        print(
            f"temposcope: {self._why}. Until then torch alone records: peak and saved tensors on a "
            "GPU, without ops and kernels.",
            file=sys.stderr,
        )
        torch.cuda._lazy_call(self._begin)  # not before the program uses a GPU: it may fork
        register_module_forward_pre_hook(self._module_begins)
        register_module_forward_hook(self._module_ends, always_call=True)
        register_optimizer_step_pre_hook(self._optimizer_begins)
        register_optimizer_step_post_hook(self._optimizer_ends)
        torch.autograd.backward = self._around_backward(torch.autograd.backward)
        # Below all that the program sets: where it has hooks of its own, these see nothing.
        torch._C._autograd._push_saved_tensors_default_hooks(self._save, lambda tensor: tensor)
        atexit.register(self._end)

    # ---- steps and phases -----------------------------------------------------------------------

    def _begin(self) -> None:
        torch.cuda.memory._record_memory_history(
            "all", context="alloc", stacks="python", max_entries=_MOST_EVENTS
        )
        torch._C._cuda_attach_out_of_memory_observer(lambda *_: self._end())
        self._start("ProfilerStep#0")

    @property
    def _records(self) -> bool:
        is_main = threading.current_thread() is threading.main_thread()
        return bool(self._open) and is_main and os.getpid() == self._owner

    def _start(self, name: str) -> None:
        self._open.append(name)
        self._marks.append(Mark("START", name))

    def _stop(self, name: str) -> None:
        """Ranges in it end with it: a phase that an exception has left."""
        while name in self._open:
            self._marks.append(Mark("END", self._open.pop()))

    def _end_step(self) -> None:
        self._stop(f"ProfilerStep#{self._num_steps}")
        self._num_steps += 1
        if self._num_steps >= self._options["skip"] + self._options["steps"]:
            self._end()
            if self._options["stop"]:
                raise SystemExit(0)
        else:
            self._start(f"ProfilerStep#{self._num_steps}")

    def _module_begins(self, module: torch.nn.Module, _inputs) -> None:
        if not self._records:
            return
        if not self._modules:
            if self._has_updated:
                self._has_updated = False
                self._end_step()
            if not self._open:
                return
            self._see_root(module)
            self._start(_FORWARD)
        self._modules.append(self._paths.get(id(module), ""))

    def _module_ends(self, module: torch.nn.Module, _inputs, _output) -> None:
        if not self._records or not self._modules:
            return
        self._modules.pop()
        if not self._modules:
            self._stop(_FORWARD)

    def _see_root(self, module: torch.nn.Module) -> None:
        """One that no other calls: its parameters get their names."""
        if any(module is root for root in self._roots):
            return
        self._roots.append(module)
        self._paths |= {id(one): path for path, one in module.named_modules()}
        for name, parameter in module.named_parameters():
            self._names.setdefault(id(parameter), name)
            self._note(parameter, "parameter", name)

    def _around_backward(self, backward):
        @functools.wraps(backward)
        def run(*arguments, **options):
            if not self._records or _BACKWARD in self._open:
                return backward(*arguments, **options)
            self._start(_BACKWARD)
            try:
                return backward(*arguments, **options)
            finally:
                if self._open:
                    self._stop(_BACKWARD)

        return run

    def _optimizer_begins(self, optimizer, *_arguments) -> None:
        if not self._records:
            return
        for parameter in self._parameters_of(optimizer):
            if parameter.grad is not None:
                self._note(parameter.grad, "gradient", self._names.get(id(parameter), ""))
        self._start(_OPTIMIZER)

    def _optimizer_ends(self, optimizer, *_arguments) -> None:
        if not self._records:
            return
        self._stop(_OPTIMIZER)
        for parameter in self._parameters_of(optimizer):
            for key, state in optimizer.state.get(parameter, {}).items():
                if isinstance(state, torch.Tensor):
                    name = self._names.get(id(parameter), "")
                    self._note(state, "optimizer_state", f"{name}.{key}" if name else key)
        self._has_updated = True

    @staticmethod
    def _parameters_of(optimizer):
        return (one for group in optimizer.param_groups for one in group["params"])

    # ---- contents of blocks ---------------------------------------------------------------------

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        """Autograd saves it."""
        if self._records and tensor.is_cuda and not self._is_parameter(tensor):
            module = self._modules[-1] if self._modules else ""
            dtype = str(tensor.dtype).removeprefix("torch.")
            saved = f"{module or 'outside of modules'}, saved {list(tensor.shape)} {dtype}"
            self._note(tensor, "activation", saved)
        return tensor

    def _is_parameter(self, tensor: torch.Tensor) -> bool:
        """Or a view of one."""
        base = tensor if tensor._base is None else tensor._base
        return isinstance(base, torch.nn.Parameter) or id(base) in self._names

    @staticmethod
    def _note(tensor: torch.Tensor, category: str, name: str) -> None:
        if _annotate_tensor is None or not tensor.is_cuda:
            return
        with contextlib.suppress(Exception):
            _annotate_tensor(tensor, f"{category}: {name}" if name else category)

    # ---- the trace ------------------------------------------------------------------------------

    def _end(self) -> None:
        """Writes the trace, once."""
        if self._has_ended or os.getpid() != self._owner:
            return
        self._has_ended = True
        if not self._marks:
            sentence = "The program used no GPU, and torch alone records nothing on the CPU"
            return self._tell(state="failed", sentence=sentence)
        while self._open:
            self._stop(self._open[0])
        wanted = self._options["skip"] + self._options["steps"]
        try:
            self._write()
        except Exception as error:
            return self._tell(state="failed", sentence=f"{type(error).__name__}: {error}")
        torch.cuda.memory._record_memory_history(None)  # it costs time
        state = "complete" if self._num_steps >= wanted else "incomplete"
        recorded = max(0, self._num_steps - self._options["skip"])
        self._tell(state=state, steps=recorded, seen_steps=self._num_steps)

    def _write(self) -> None:
        snapshot = torch.cuda.memory._snapshot()
        snapshot["external_annotations"] = [dataclasses.asdict(mark) for mark in self._marks]
        snapshot["temposcope"] = json.dumps(self._told())
        with tempfile.TemporaryDirectory(prefix="temposcope-") as folder:
            raw = os.path.join(folder, "snapshot.pickle")
            with open(raw, "wb") as file:
                pickle.dump(snapshot, file)
            ran = temposcope("import", raw, "-o", self._options["file"], "--overwrite")
        if ran.returncode != 0:
            raise RuntimeError(sentence_of(ran))

    def _told(self) -> dict:
        return self._launch | {
            "torch": torch.__version__,
            "blocks": [],
            "note": (
                f"Recorded by torch alone, because {self._why}. Ops, kernels and memory outside "
                "the allocator are missing."
            ),
        }

    def _tell(self, **what) -> None:
        with open(self._options["status"], "ab", buffering=0) as file:
            file.write((json.dumps(what) + "\n").encode())


def follow(why: str) -> None:
    """Called once torch is imported. Ends the program where this way cannot record it."""
    options = json.loads(os.environ[_launch.RUN])
    for what, is_wanted in (
        ("--apply", options["apply"]),
        ("several ranks", options["folder"] is not None or options["world_size"] is not None),
        ("--cpp-stacks", options["stacks"] == "all"),
        ("programs on the CPU", not torch.cuda.is_available()),
    ):
        if is_wanted:
            sentence = f"Without these libraries {what} cannot be recorded"
            raise SystemExit(f"temposcope: {why}. {sentence}.")
    TorchAlone(options, why).follow()
