"""Which steps of a program are recorded, and where steps and phases begin and end."""

import contextlib
import functools
import math
import pathlib
import sys
import threading
from collections.abc import Callable

import torch

from . import _describe, _ranks, _recorder
from ._guest import guest, recording_error
from ._micro_batches import MicroBatches
from ._names import Names, inner_model
from ._observe import Observer
from ._optimizers import Optimizers
from ._recorder import Phase, RecordingError
from ._swapped_class import name_of_class

# The session that watches this process; there is one at a time, as torch's hooks are the process's.
_active: "Session | None" = None


def active() -> "Session | None":
    return _active


def forget_in_forked_process() -> None:
    if _active is not None:
        _active.forget()


class _SeeInputs:
    """The hook of a model, since torch gives keywords to no hook of all modules. In a copy or a
    pickle of the model stands what does nothing and what every Python has."""

    def __call__(self, module, args, kwargs=None) -> None:
        # None: the recording has ended in this very call, and torch forgot what the hook wants.
        if _active is not None and kwargs is not None:
            _active.inputs_go_in(module, args, kwargs)

    def __reduce__(self):
        return functools.partial, (sys.audit, "temposcope")


class Session:
    """Follows a program, skips `skip` steps, and records `steps` (None: until `end`) into `file`.
    `recipe` is what was applied to its models; empty: nothing. `run_id` is the same in all ranks of
    a run; empty: not known. `launch_id` is the same in all ranks of a launch; empty: its variables
    say it. `gpu` is the virtual GPU that the program shall use; empty: it may use any device. With
    `finds_optimizers` all that live when the first of them runs belong to the program: a step lasts
    until the others have run, too.

    A step ends when each optimizer that the program uses has run once. Without an optimizer it ends
    before the first forward after a backward. Without either it is one forward. Once the program
    marks its steps, only the marks count. A step begins where the last one ended.
    """

    def __init__(
        self,
        file: str,
        *,
        skip: int = 0,
        steps: int | None = None,
        recipe: str = "",
        run_id: str = "",
        launch_id: str = "",
        stacks: str = "",  # or "python", or "all": those of C++, too
        gpu: str = "",
        finds_optimizers: bool = False,
        may_record: Callable[[], bool] = lambda: True,
        on_started: Callable[[], None] = lambda: None,
        before_step_ends: Callable[[], None] = lambda: None,
        on_step_recorded: Callable[[], None] = lambda: None,
        on_recorded: Callable[[], None] = lambda: None,
    ):
        self.file = file
        self.recorded_steps = 0
        self.seen_steps = 0  # recorded or not
        self.is_recording = False
        self.has_ended = False
        self.error: RecordingError | None = None  # why the recording ended
        self._skip = skip
        self._steps = steps
        self._recipe = recipe
        self._run_id = run_id
        self._launch_id = launch_id
        self._stacks = stacks
        self._gpu = gpu
        self._lock = threading.RLock()
        self._may_record = may_record
        self._on_started = on_started
        self._before_step_ends = before_step_ends
        self._on_step_recorded = on_step_recorded
        self._on_recorded = on_recorded
        self._observer = Observer(self)
        self._names = Names()
        self._described = _describe.Described()
        self._input_hooks: list = []
        self._optimizers = Optimizers(finds_optimizers)
        self._built_in: dict = {}
        self._description: dict = {}
        self._micro_batches = MicroBatches()
        self._in_step = False
        self._in_optimizer = False
        self._phase: Phase | None = None
        self._marked_phases: list[Phase | None] = []
        self._steps_are_marked = False
        self._has_run_backward = False
        self._has_begun_recorded_step = False
        self._is_inference_step = False
        self._ends_before_forward = False
        self._loss = math.nan
        self._device_type = "cpu"
        self._phase_before: Phase | None = None

    # ---- the caller's side

    def watch(self) -> None:
        """Begins to follow the program."""
        global _active
        if _active is not None:
            raise RecordingError(
                "this program is being recorded already: end that recording, or leave out "
                "`temposcope run`"
            )
        _active = self
        self._observer.start()

    def add_model(self, model: torch.nn.Module, may_be_main: bool = True) -> None:
        self._names.add_model(model, may_be_main)
        hook = model.register_forward_pre_hook(_SeeInputs(), with_kwargs=True)
        self._input_hooks = [own for own in self._input_hooks if own.hooks_dict_ref() is not None]
        self._input_hooks.append(hook)
        if self.is_recording:
            self._describe_model(model)

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizers.add(optimizer)

    def tell_built_in(self, workload: dict, parallel: str) -> None:
        """The program trains a built-in model, spread over GPUs by this strategy."""
        self._built_in = {"workload": workload, "parallel": parallel}

    def start(self, device: torch.device) -> None:
        """Begins to record on this device. Raises RecordingError."""
        if device.type not in ("cpu", "cuda"):
            raise RecordingError(
                f"the model is on {device.type}, and only the CPU and CUDA can be recorded: move it"
            )
        if self._gpu and device.type != "cuda":
            raise RecordingError(
                f"the program trains on the {device.type.upper()} and not on the virtual "
                f"{self._gpu}: let it move its model to cuda, or leave out --gpu"
            )
        self._description = {
            "program": pathlib.Path(sys.argv[0] or "python").name,
            "recipe": self._recipe,
            "run_id": self._run_id,
            "launch_id": self._launch_id or _ranks.launch_id(),
            **self._built_in,
            **_ranks.current()._asdict(),
        }
        self._device_type = device.type
        _recorder.start(self.file, str(device), self._description, self._stacks)
        self.is_recording = True
        for model, _ in self._names.models():
            self._describe_model(model)
        self._describe_gradients()
        for optimizer in self._optimizers:
            _describe.describe_optimizer(self._names, self._described, optimizer)
        _recorder.begin_steps()
        self._on_started()

    def start_where_trained(self) -> None:
        """The same, on the device of the parameters, where some are known."""
        parameter = next(self._parameters(), None)
        if parameter is not None:
            self.start(parameter.device)
        else:
            gpu = torch.cuda.current_device() if torch.cuda.is_initialized() else None
            self.start(torch.device("cpu") if gpu is None else torch.device("cuda", gpu))

    def end(self, complete: bool) -> None:
        """Stops following, and closes the file. `complete`: the program did what it should. What
        fails is in `error`."""
        with self._lock:
            try:
                self._end(complete)
            except Exception as error:
                self.fail(error)

    def _end(self, complete: bool) -> None:
        if self._in_step and (self._ends_before_forward or not complete):
            is_whole = self._ends_before_forward
            if self.is_recording and not is_whole:
                _recorder.add_note(
                    "cut_off_step",
                    _recorder.Severity.WARNING,
                    "The recording ended in the last step: its figures are those up to there.",
                )
            self._close_step(is_whole)
            self.recorded_steps += int(self.is_recording and is_whole)
        self.stop_watching()
        self.has_ended = True
        if self.is_recording:
            self._switch_phase(None)
            self.is_recording = False
            if self._has_begun_recorded_step:
                _recorder.finish(complete)
            else:
                _recorder.discard()

    def fail(self, error: Exception) -> None:
        """The recording cannot go on. The program can."""
        self.error = recording_error(error)
        self.has_ended = True
        self.stop_watching()
        if self.is_recording:
            self.is_recording = False
            with contextlib.suppress(RecordingError):
                _recorder.finish(complete=False)

    def forget(self) -> None:
        """In a forked process, which records nothing: the file is its parent's."""
        self.is_recording = False
        self.has_ended = True
        self.stop_watching()

    def prefix(self, model: torch.nn.Module) -> str | None:
        """What stands in front of the paths of a model's modules: "" of the main one, None of one
        that is not known."""
        return self._names.prefix(model)

    @property
    def has_rows(self) -> bool:
        """Whether the trace holds a step, even one that did not come to its end."""
        return self._has_begun_recorded_step

    def stop_watching(self) -> None:
        global _active
        if _active is self:
            _active = None
        self._observer.stop()
        for handle in self._input_hooks:
            handle.remove()
        self._input_hooks = []

    @guest
    def end_marked_step(self) -> None:
        """The program says that a step ends here."""
        self._steps_are_marked = True
        self._begin_step()
        self._end_step()

    @guest
    def begin_marked_phase(self, phase: Phase) -> None:
        self._begin_step()
        self._marked_phases.append(self._phase)
        self._switch_phase(phase)

    @guest
    def end_marked_phase(self) -> None:
        if self._marked_phases:
            self._switch_phase(self._marked_phases.pop())

    # ---- what the observer sees

    @guest
    def module_begins(self, module: torch.nn.Module, depth: int, args: tuple) -> bool:
        if depth == 0 and not self._observer.in_backward():
            self._forward_begins(module, args)
        if not self.is_recording:
            return depth == 0
        if not self._names.knows(module):
            self._names.add_missing(module)
        _recorder.enter_module(self._names.path(module))
        if depth == 1 and "precision" in self._description:
            self._see_autocast()
        return True

    @guest
    def module_ends(self, module: torch.nn.Module, depth: int) -> None:
        if self.is_recording:
            _recorder.leave_module()
        if depth == 0 and self._is_inference_step and not self._observer.in_backward():
            self._is_inference_step = False
            self._end_step()

    @guest
    def inputs_go_in(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        if not self.is_recording:
            return
        _describe.describe_inputs(args, kwargs)
        if not self._names.is_main(module):
            return
        if not self._description.get("batch_size"):
            self._describe_program(module, args, kwargs)
        trains = torch.is_grad_enabled() and not self._observer.in_backward()
        if trains or self._is_inference_step:
            batch_size = _describe.batch_of(args, kwargs).get("batch_size", 0)
            self._micro_batches.forward_begins(batch_size)

    @guest
    def backward_begins(self, root: object) -> None:
        self._has_run_backward = True
        self._is_inference_step = False
        self._begin_step()
        self._loss = _describe.loss_of(root)
        self._phase_before = self._phase
        self._switch_phase(Phase.BACKWARD)

    @guest
    def backward_ends(self, accumulates: bool) -> None:
        if not accumulates:  # torch.autograd.grad, as in a penalty on gradients
            self._switch_phase(self._phase_before)
            return
        if self.is_recording:
            self._micro_batches.backward_ends(self._in_optimizer)
        self._describe_gradients()
        self._switch_phase(Phase.OPTIMIZER)  # clipping is part of the update, too
        self._ends_before_forward = not self._steps_are_marked and not self._optimizers.any()

    @guest
    def optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None:
        self._in_optimizer = True
        self._optimizers.begins(optimizer)
        self._ends_before_forward = False
        self._begin_step()
        if self.is_recording:
            self._describe_gradients()
        self._switch_phase(Phase.OPTIMIZER)

    @guest
    def optimizer_ends(self, optimizer: torch.optim.Optimizer) -> None:
        self._in_optimizer = False
        if self.is_recording:
            _describe.describe_optimizer(self._names, self._described, optimizer)
        if not self._steps_are_marked and self._optimizers.ends(optimizer):
            self._end_step()

    # ---- steps and phases

    def _forward_begins(self, module: torch.nn.Module, args: tuple) -> None:
        if self._ends_before_forward:
            self._end_step()
        trains = torch.is_grad_enabled()
        is_beside_training = not trains and self._is_training_program()
        is_new = not self._names.knows(module)
        if is_new or not self._names.has_main:
            self._name_model(module, is_new, is_beside_training)
        if is_beside_training:
            return
        self._is_inference_step = not trains
        self._begin_step()
        if not self._marked_phases:
            is_loss = isinstance(module, torch.nn.modules.loss._Loss) and self._phase is not None
            self._switch_phase(Phase.LOSS if is_loss else Phase.FORWARD)
        if is_new:  # too late for the model's own hook
            self.inputs_go_in(module, args, {})

    def _name_model(self, module, is_new: bool, is_beside_training: bool) -> None:
        """A teacher or a validation is not the main model, and a model that is trained after its
        validation is."""
        is_frozen = not any(parameter.requires_grad for parameter in module.parameters())
        is_beside = is_beside_training or (is_frozen and self._is_training_program())
        if is_new:
            self.add_model(module, may_be_main=not is_beside)
        elif not is_beside and self._names.make_main(module) and self.is_recording:
            self._describe_model(module)

    def _is_training_program(self) -> bool:
        """As far as can be seen."""
        return self._steps_are_marked or self._has_run_backward or self._optimizers.any()

    def _begin_step(self) -> None:
        if self._in_step:
            return
        self._start_if_due()
        self._in_step = True
        if self.is_recording:
            _recorder.begin_step()
            self._has_begun_recorded_step = True

    def _start_if_due(self) -> None:
        if self.is_recording or self.has_ended or self.seen_steps < self._skip:
            return
        if self._may_record():
            self.start_where_trained()
        else:
            self.forget()

    def _end_step(self) -> None:
        if not self._in_step:
            return
        self._close_step()
        self.recorded_steps += int(self.is_recording)
        if self.recorded_steps == self._steps:
            self.end(complete=True)
            self._on_recorded()
        else:
            self._start_if_due()  # with what happens between two steps

    def _close_step(self, is_whole: bool = True) -> None:
        self._before_step_ends()
        self._switch_phase(None)
        self._in_step = False
        self._ends_before_forward = False
        self._optimizers.end_step()
        self.seen_steps += 1
        self._marked_phases = [None] * len(self._marked_phases)  # that one is over, too
        if self.is_recording:
            self._micro_batches.end_step(is_whole)
            self._description["micro_batches"] = self._micro_batches.of_each_step
            _recorder.describe_program(self._description)
            _recorder.end_step(self._loss)
            self._on_step_recorded()
        self._loss = math.nan

    def _switch_phase(self, phase: Phase | None) -> None:
        if self._phase == phase:
            return
        if self._phase is not None and self.is_recording:
            _recorder.end_phase(self._phase)
        self._phase = phase
        if phase is not None and self.is_recording:
            _recorder.begin_phase(phase)

    # ---- what is what

    def _parameters(self):
        seen = set()
        for model, _ in self._names.models():
            for parameter in model.parameters():
                seen.add(id(parameter))
                yield parameter
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                yield from (p for p in group["params"] if id(p) not in seen)

    def _describe_model(self, model: torch.nn.Module) -> None:
        _describe.describe_model(self._names, model, self._names.prefix(model))

    def _describe_gradients(self) -> None:
        if self.is_recording:
            _describe.describe_gradients(self._names, self._described, self._parameters())

    def _describe_program(self, model: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        self._description |= {
            "model": name_of_class(inner_model(model)),
            "precision": _describe.precision_of(model),
            **_describe.batch_of(args, kwargs),
        }

    def _see_autocast(self) -> None:
        precision = _describe.autocast_precision(self._device_type)
        if precision is not None:
            self._description["precision"] = precision
