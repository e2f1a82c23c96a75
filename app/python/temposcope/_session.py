"""Which steps of a program are recorded, and where steps and phases begin and end."""

import contextlib
import functools
import math
import pathlib
import sys
import threading
from collections.abc import Callable

import torch

from . import _describe, _failures, _fsdp, _launch, _ranks, _recorder
from ._failures import Failures, Place
from ._guest import guest, recording_error
from ._micro_batches import MicroBatches
from ._names import Names, inner_model
from ._observe import Observer
from ._optimizers import Optimizers
from ._recorder import Phase, RecordingError, StepKind
from ._swapped_class import name_of_class

_KEEPERS_S = 0.1  # after a step; the clock of the recording stands still meanwhile
_KEEPERS_AFTER = 2  # recorded steps: one after the first peak
REQUESTED_PEAK = "requested_bytes.all.peak"  # the sum of what tensors ask for, as traces count it

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
    until the others have run, too. With `from_start` allocations are recorded from the program's
    first one on a GPU, and its first step is recorded whatever `skip` says: as one of its own kind,
    and among `steps` only if it is not skipped. `launch` is how the program was started
    (_launch.launch). With `tries_imbalance` one more step runs after those recorded if the program
    trains a mixture of experts of which balanced routing was assumed. In it one expert gets more
    tokens than the others. The trace holds its peak alone. `on_further_step` is called before it.

    A step ends when each optimizer that the program uses has run once. If one runs a second time,
    the step ended before that run, unless another one is waited for (Optimizers). Without an
    optimizer it ends before the first forward after a backward. Without either it is one forward.
    Once the program marks its steps, only the marks count. A step begins where the last one ended.
    One that runs out of memory is broken: it ends where the program begins anew, and does not
    count.
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
        from_start: bool = False,
        launch: dict | None = None,
        tries_imbalance: bool = False,
        may_record: Callable[[], bool] = lambda: True,
        on_started: Callable[[], None] = lambda: None,
        before_step_ends: Callable[[], None] = lambda: None,
        on_step_recorded: Callable[[], None] = lambda: None,
        on_recorded: Callable[[], None] = lambda: None,
        on_further_step: Callable[[], None] = lambda: None,
    ):
        self.file = file
        self.recorded_steps = 0
        self.seen_steps = 0  # recorded or not
        self.num_failures = 0  # at the end: requests that were refused, and an error at the end
        self.is_recording = False  # allocations, at least
        self.is_open = False  # the file
        self.has_ended = False
        self.error: RecordingError | None = None  # why the recording ended
        self._skip = skip
        self._steps = steps
        self._recipe = recipe
        self._run_id = run_id
        self._launch_id = launch_id
        self._stacks = stacks
        self._gpu = gpu
        self._from_start = from_start
        self._launch = launch or _launch.launch()
        self._tries_imbalance = tries_imbalance
        self._lock = threading.RLock()
        self._may_record = may_record
        self._on_started = on_started
        self._before_step_ends = before_step_ends
        self._on_step_recorded = on_step_recorded
        self._on_recorded = on_recorded
        self._on_further_step = on_further_step
        self._observer = Observer(self)
        self._names = Names()
        self._described = _describe.Described()
        self._input_hooks: list = []
        self._optimizers = Optimizers(finds_optimizers)
        self._built_in: dict = {}
        self._description: dict = {}
        self._micro_batches = MicroBatches()
        self._failures = Failures()
        self._device: torch.device | None = None  # that is recorded
        self._may_write = False  # the file is this process's
        self._records_steps = False  # and what happens in them
        self._is_described = False  # model and batch, by the first whole step
        self._batches_differ = False
        self._keepers_of = 0  # recorded steps, when keepers were last looked for
        self._is_imbalanced = False  # the step
        self._in_step = False
        self._is_broken = False  # the step
        self._thread_of_step = 0
        self._thread_of_recorder = 0  # 0: nothing is recorded
        self._was_profiled = False
        self._in_optimizer = False
        self._phase: Phase | None = None
        self._marked_phases: list[Phase | None] = []
        self._steps_are_marked = False
        self._has_run_backward = False
        self._has_begun_recorded_step = False
        self._is_inference_step = False
        self._ends_before_forward = False
        self._loss = math.nan
        self._loss_at_mark: float | None = None  # None: there is no mark
        self._phase_before: Phase | None = None
        self._phase_around: Phase | None = None  # an inference
        self._infers_after_step = False  # what is recorded, and no further step has begun
        self._num_inferences = 0  # as long as they may be all that the program does

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
        _recorder.gather_stacks_on_cpu(bool(self._stacks) and not self._gpu)
        if self._from_start:
            torch.cuda._lazy_call(self.gpu_begins)

    def add_model(self, model: torch.nn.Module, may_be_main: bool = True) -> None:
        self._names.add_model(model, may_be_main)
        hook = model.register_forward_pre_hook(_SeeInputs(), with_kwargs=True)
        self._input_hooks = [own for own in self._input_hooks if own.hooks_dict_ref() is not None]
        self._input_hooks.append(hook)
        if self._records_steps:
            self._describe_model(model)

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizers.add(optimizer)

    def tell_built_in(self, workload: dict, parallel: str) -> None:
        """The program trains a built-in model, spread over GPUs by this strategy."""
        self._built_in = {"workload": workload, "parallel": parallel}

    @guest
    def gpu_begins(self) -> None:
        """Torch has initialized CUDA. What the program allocates from here on is kept in memory
        until it is known whether it trains there."""
        if self.is_recording:
            return
        local_rank = _ranks.local_rank()
        index = local_rank if local_rank < torch.cuda.device_count() else 0
        with contextlib.suppress(RecordingError):  # said again where a step is to be recorded
            self._start_recorder(torch.device("cuda", index))

    def start(self, device: torch.device) -> None:
        """Begins to record steps on this device. Raises RecordingError."""
        if device.type not in ("cpu", "cuda"):
            raise RecordingError(
                f"the model is on {device.type}, and only the CPU and CUDA can be recorded: move it"
            )
        if self._gpu and device.type != "cuda":
            raise RecordingError(
                f"the program trains on the {device.type.upper()} and not on the virtual "
                f"{self._gpu}: let it move its model to cuda, or leave out --gpu"
            )
        if self.is_recording and device != self._device:
            self._discard()
        if not self.is_recording:
            self._start_recorder(device)
        self._open_file()
        for model, _ in self._names.models():
            self._describe_model(model)
        self._describe_state()
        _recorder.begin_steps()
        _recorder.resume_ops()
        self._records_steps = True

    def start_where_trained(self) -> None:
        """The same, on the device of the parameters, where some are known."""
        self.start(self._device_of_training())

    def _device_of_training(self) -> torch.device:
        parameter = next(self._parameters(), None)
        if parameter is not None:
            return parameter.device
        gpu = torch.cuda.current_device() if torch.cuda.is_initialized() else None
        return torch.device("cpu") if gpu is None else torch.device("cuda", gpu)

    def _start_recorder(self, device: torch.device) -> None:
        self._described = _describe.Described()
        self._description |= self._of_process()
        if device.type != "cpu":
            _recorder.gather_stacks_on_cpu(False)
        _recorder.start(str(device), self._description, self._stacks)
        self.is_recording = True
        self._thread_of_recorder = threading.get_ident()
        self._device = device
        if device.type == "cuda":
            self._hear_of_failures()
        if _launch.has_secret(self._launch["command"]):
            _recorder.add_note(
                "secret_in_command",
                _recorder.Severity.INFO,
                f"The command holds a secret. The trace has {_launch.HIDDEN} instead: to run it "
                "again, give the command.",
            )

    def _hear_of_failures(self) -> None:
        try:
            _failures.listen(self.memory_is_refused)
        except RuntimeError as error:
            reason = _failures.text_of(error).partition("\n")[0]
            _recorder.add_note(
                "failures_without_keepers",
                _recorder.Severity.INFO,
                f"Where memory runs out, nobody is told in time to see what keeps it: {reason}",
            )

    def _of_process(self) -> dict:
        return {
            "program": pathlib.Path(sys.argv[0] or "python").name,
            "recipe": self._recipe,
            "run_id": self._run_id,
            "launch_id": self._launch_id or _ranks.launch_id(),
            **self._launch,
            **self._built_in,
            **_ranks.current()._asdict(),
        }

    def _open_file(self) -> None:
        if self.is_open:
            return
        self._description |= self._of_process()  # its rank is known by now
        _recorder.describe_program(self._description)
        _recorder.open_file(self.file)
        self.is_open = True
        self._on_started()

    def _discard(self) -> None:
        """What was recorded is of a device on which the program does not train."""
        self.is_recording = self.is_open = self._records_steps = False
        self._thread_of_recorder = 0
        self._has_begun_recorded_step = False
        self._micro_batches = MicroBatches()
        _recorder.discard()

    def end(self, complete: bool) -> None:
        """Stops following, and closes the file. `complete`: the program did what it should. What
        fails is in `error`."""
        if complete:
            self.settle()
        with self._lock:
            try:
                self._end(complete)
            except Exception as error:
                self.fail(error)

    def _end(self, complete: bool) -> None:
        is_whole = self._ends_before_forward and not self._is_broken
        if self._in_step and (is_whole or self._is_broken or not complete):
            if self._records_steps and not is_whole:
                _recorder.add_note(
                    "cut_off_step",
                    _recorder.Severity.WARNING,
                    "The recording ended in the last step: its figures are those up to there.",
                )
            self._close_step(is_whole)
        if self._records_steps and complete:
            self._find_rest()
        self.stop_watching()
        self.has_ended = True
        if self.is_recording:
            self._failures.close(goes_on=complete)
            self._switch_phase(None)
            self._close_recorder(complete)

    def _close_recorder(self, complete: bool) -> None:
        self.num_failures = _recorder.num_failures()
        self.is_recording = self._records_steps = False
        self._thread_of_recorder = 0
        if self.is_open and self.has_rows:
            _recorder.finish(complete)
        else:
            _recorder.discard()

    @guest
    def fails_with(self, error: BaseException) -> None:
        """This error ends the program, or the thread on which it is told. In a program that fails
        before its first step, nothing is of interest but memory that ran out."""
        if self.is_recording and self.has_rows and not self.has_all_steps:
            self._failures.end(error)

    @guest
    def thread_fails_with(self, error: BaseException) -> None:
        """The program goes on, but for its steps if they were taken on this thread."""
        if _failures.ran_out(error) or threading.get_ident() == self._thread_of_step:
            self.fails_with(error)

    def fail(self, error: Exception) -> None:
        """The recording cannot go on. The program can."""
        self.error = recording_error(error)
        self.has_ended = True
        self.stop_watching()
        if self.is_recording:
            with contextlib.suppress(RecordingError):
                self._close_recorder(complete=False)

    def forget(self) -> None:
        """In a forked process, which records nothing: the file is its parent's."""
        self.is_recording = self._records_steps = False
        self.has_ended = True
        self.stop_watching()

    def prefix(self, model: torch.nn.Module) -> str | None:
        """What stands in front of the paths of a model's modules: "" of the main one, None of one
        that is not known."""
        return self._names.prefix(model)

    @property
    def has_rows(self) -> bool:
        """Whether the trace holds a step, even one that did not come to its end, or a failure."""
        return self._has_begun_recorded_step or self._failures.has_any

    @property
    def has_all_steps(self) -> bool:
        """Whether all steps that were asked for are recorded."""
        return self.recorded_steps == self._steps

    @property
    def device(self) -> torch.device:
        """The one that is recorded."""
        return self._device or torch.device("cpu")

    @property
    def has_optimizer(self) -> bool:
        """Whether the program has one."""
        return self._optimizers.any()

    @property
    def is_in_further_step(self) -> bool:
        """After the recorded ones, with uneven experts."""
        return self._is_imbalanced

    def stop_watching(self) -> None:
        global _active
        if _active is self:
            _active = None
        self._observer.stop()
        _recorder.gather_stacks_on_cpu(False)
        _failures.unlisten(self.memory_is_refused)
        for handle in self._input_hooks:
            handle.remove()
        self._input_hooks = []
        if self._is_imbalanced:
            self._is_imbalanced = False
            _recorder.set_imbalanced(False)

    @guest
    def end_marked_step(self) -> None:
        """The program says that a step ends here."""
        self._steps_are_marked = True
        self._see_caught(Place.ELSEWHERE)
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
            _recorder.renew_value_budget()
            self._optimizers.model_begins(module)
            self._forward_begins(module, args)
        if not self._records_steps:
            return depth == 0
        if not self._names.knows(module):
            self._names.add_missing(module)
        _recorder.enter_module(self._names.path(module))
        if depth == 1 and "precision" in self._description:
            self._see_autocast()
        return True

    @guest
    def module_ends(self, module: torch.nn.Module, depth: int, returns: bool) -> None:
        if self.is_recording:
            _recorder.leave_module()
        if depth > 0 or self._observer.in_backward():
            return
        self._see_left(Place.MODULE, returns)
        if self._is_inference_step:
            self._is_inference_step = False
            self._end_step()
        if self._phase == Phase.INFERENCE and self._phase_around is not None:
            self._switch_phase(self._phase_around)
            self._phase_around = None

    @guest
    def inputs_go_in(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        if not self._records_steps:
            return
        _describe.describe_inputs(args, kwargs)
        is_main = self._names.is_main(module)
        is_of_step = self._trains() or self._is_inference_step
        self._describe_if_better(module, args, kwargs, is_main, is_of_step)
        if is_main and is_of_step:
            batch = _describe.batch_of(args, kwargs)
            self._micro_batches.forward_begins(batch.get("batch_size", 0))
            self._see_batch(batch)

    def _see_batch(self, batch: dict) -> None:
        """The first one names all, so that others are told."""
        differs = any(self._description.get(name) != size for name, size in batch.items())
        is_new = self._is_described and not self._batches_differ
        if is_new and differs and not self._is_inference_step:
            self._batches_differ = True
            _recorder.add_note(
                "batches_differ",
                _recorder.Severity.INFO,
                "The recorded steps train batches of different sizes or lengths. The first is "
                "named.",
            )

    def _trains(self) -> bool:
        """Whether a forward that begins now is for a backward."""
        is_inference = self._phase == Phase.INFERENCE or self._observer.in_backward()
        return torch.is_grad_enabled() and not is_inference

    def _describe_if_better(self, module, args, kwargs, is_main: bool, is_of_step: bool) -> None:
        """The batch is that of the main model in training. Until it trains, a validation of it or
        another model tell of the program."""
        if self._is_described or not (is_main or self._may_only_infer()):
            return
        if is_of_step or not self._description.get("batch_size"):
            self._describe_program(module, args, kwargs)
            self._is_described = is_main and is_of_step and self._description["batch_size"] > 0

    @guest
    def backward_begins(self, root: object) -> None:
        self._has_run_backward = True
        self._is_inference_step = False
        self._see_caught(Place.BACKWARD)
        if self._is_broken:
            self._end_step()
        self._begin_step()
        self._loss = _describe.loss_of(root)
        self._phase_before = self._phase
        self._switch_phase(Phase.BACKWARD)

    @guest
    def backward_ends(self, accumulates: bool, is_whole: bool) -> None:
        self._see_left(Place.BACKWARD, is_whole)
        if not is_whole:
            self._is_broken |= accumulates and self._in_step
            return
        if not accumulates:  # torch.autograd.grad, as in a penalty on gradients
            self._switch_phase(self._phase_before)
            return
        if self._records_steps:
            self._micro_batches.backward_ends(self._in_optimizer)
        self._describe_gradients()
        self._switch_phase(Phase.OPTIMIZER)  # clipping is part of the update, too
        self._ends_before_forward = not self._steps_are_marked and not self._optimizers.any()

    @guest
    def optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None:
        self._see_caught(Place.OPTIMIZER)
        if not self._steps_are_marked and self._optimizers.begins_again(optimizer):
            self._end_step_at_mark()
        self._in_optimizer = True
        for other in self._optimizers.begins(optimizer):
            self._describe_optimizer(other)
        self._ends_before_forward = False
        self._begin_step()
        self._describe_gradients()
        self._switch_phase(Phase.OPTIMIZER)

    @guest
    def optimizer_ends(self, optimizer: torch.optim.Optimizer) -> None:
        self._in_optimizer = False
        self._see_left(Place.OPTIMIZER, True)
        if self._records_steps:
            self._micro_batches.update_ends(optimizer)
        self._describe_optimizer(optimizer)
        if self._steps_are_marked:
            return
        if self._optimizers.ends(optimizer):
            self._end_step()
        else:
            self._mark_end()

    @guest
    def result_is_kept(self, tensor: torch.Tensor) -> Callable[[], None] | None:
        if not self._records_steps:
            return None
        plain = list(_describe.plain_tensors_in(tensor)) or [tensor]
        kept = [one for one in map(_recorder.save, plain) if one is not None]
        return (lambda: self._are_kept_no_longer(kept)) if kept else None

    @guest
    def _are_kept_no_longer(self, kept: list[_recorder.KeptTensor]) -> None:
        if self.is_recording:
            for one in kept:
                _recorder.release(one)

    @guest
    def fsdp_makes(self, shards, whole: torch.Tensor, suffix: str, category) -> None:
        """FSDP2 has made the whole of parameters, or of their gradients, of which the model has
        shards."""
        if self._records_steps:
            name = self._names.common(shards) + suffix
            _describe.describe(whole, name.removeprefix("."), category)

    @guest
    def profiler_begins(self) -> None:
        if threading.get_ident() != self._thread_of_recorder:
            return
        _recorder.set_profiled(True)
        if not self._was_profiled:
            self._was_profiled = True
            _recorder.add_note(
                "profiled",
                _recorder.Severity.INFO,
                "A profiler of the program ran beside the recording. Meanwhile a block counts as "
                "large as what was asked for, without what the allocator adds.",
            )

    @guest
    def profiler_has_ended(self) -> None:
        if threading.get_ident() == self._thread_of_recorder:
            _recorder.set_profiled(False)

    # ---- memory runs out

    @guest
    def memory_is_refused(self, _device: int) -> None:
        """In the call that asked for it, before the error is raised."""
        if not self.is_recording or not self._failures.begin(self._place()):
            return
        if not self._may_write_file():
            return
        self._open_file()
        if not self._names.models():
            _describe.describe_living_models()
        self._describe_state()
        self._failures.describe(self._records_steps)

    def _place(self) -> Place:
        if self._observer.in_backward():
            return Place.BACKWARD
        if self._observer.in_module():
            return Place.MODULE
        if self._in_optimizer:
            return Place.OPTIMIZER
        return Place.UPDATE if self._phase == Phase.OPTIMIZER else Place.ELSEWHERE

    def _see_caught(self, begins: Place) -> None:
        """The program begins this: it may have caught an error in this step."""
        self._is_broken |= self._failures.began(begins) and self._in_step

    def _see_left(self, ends: Place, is_whole: bool) -> None:
        """This has ended, and maybe by an error."""
        self._is_broken |= self._failures.ended(ends, is_whole) and self._in_step

    # ---- steps and phases

    def _forward_begins(self, module: torch.nn.Module, args: tuple) -> None:
        self._see_caught(Place.MODULE)
        if self._ends_before_forward or self._is_broken:
            self._end_step()
        trains = torch.is_grad_enabled()
        is_beside_training = not trains and self._is_training_program()
        is_new = not self._names.knows(module)
        if is_new or not self._names.has_main:
            is_other = is_beside_training and not self._optimizers.may_update(module)
            self._name_model(module, is_new, is_other)
        if is_beside_training:
            self._inference_begins(module)
            if is_new:
                self.inputs_go_in(module, args, {})
            return
        self._is_inference_step = not trains
        self._begin_step()
        if not self._marked_phases:
            is_loss = isinstance(module, torch.nn.modules.loss._Loss) and self._phase is not None
            self._switch_phase(Phase.LOSS if is_loss else Phase.FORWARD)
        if is_new:  # too late for the model's own hook
            self.inputs_go_in(module, args, {})

    def _inference_begins(self, module: torch.nn.Module) -> None:
        """Forward without gradients, of a validation or of a frozen model. Between two steps it
        goes on until the program does something else; after a teacher the phase around it does.
        What the training updates is no teacher: a reentrant checkpoint runs it so, too."""
        if self._may_only_infer():
            self._follow_inference()
        is_in_forward = self._phase in (Phase.FORWARD, Phase.LOSS)
        if self._marked_phases or (is_in_forward and self._optimizers.may_update(module)):
            return
        if self._phase == Phase.INFERENCE:
            self._switch_phase(None)
        self._infers_after_step = self._records_steps and not self._in_step and self.seen_steps > 0
        self._phase_around = self._phase
        self._switch_phase(Phase.INFERENCE)

    def _follow_inference(self) -> None:
        """Records it as if it were a step."""
        index = self._num_inferences
        self._num_inferences += 1
        is_wanted = index == 0 or self._skip <= index < self._skip + (self._steps or math.inf)
        may_start = not self._gpu or self._device_of_training().type == "cuda"
        if is_wanted and may_start:
            self._start_if_due()
        elif not is_wanted:
            self._pause()

    def _may_only_infer(self) -> bool:
        """Whether the program may have an optimizer that it never uses."""
        has_trained = self._in_step or self.seen_steps > 0 or self._has_run_backward
        return not has_trained and not self._steps_are_marked

    @guest
    def settle(self) -> None:
        """The program has come to its end: what may have been a step is one. If it has never
        trained, each inference was a step."""
        if self._loss_at_mark is not None and self._in_step and not self._is_broken:
            self._close_step(is_whole=True, at_mark=True)
        is_asked = self._steps == 1 and self.recorded_steps == 0 and self._skip > 0
        if self._infers_after_step and is_asked and not self._failures.has_any:
            self._begin_step()  # what was asked for follows the last step: a validation
            self._close_step(is_whole=True)
        if self._num_inferences == 0 or not self._may_only_infer() or not self.is_open:
            return
        self._pause()
        num_steps = _recorder.make_steps_of_inferences()
        _recorder.describe_program(self._description)
        self._has_begun_recorded_step = num_steps > 0
        self.recorded_steps = num_steps - min(self._skip, 1)
        self.seen_steps = self._num_inferences

    def _name_model(self, module, is_new: bool, is_beside_training: bool) -> None:
        """A teacher or a validation is not the main model, and a model that is trained after its
        validation is."""
        is_frozen = not any(parameter.requires_grad for parameter in module.parameters())
        is_beside = is_beside_training or (is_frozen and self._is_training_program())
        if is_new:
            self.add_model(module, may_be_main=not is_beside)
        elif not is_beside and self._names.make_main(module) and self._records_steps:
            self._describe_model(module)

    def _is_training_program(self) -> bool:
        """As far as can be seen."""
        return self._steps_are_marked or self._has_run_backward or self._optimizers.any()

    def _begin_step(self) -> None:
        if self._in_step:
            return
        self._start_if_due()
        self._in_step = True
        self._infers_after_step = False
        self._thread_of_step = threading.get_ident()
        if self._records_steps:
            _recorder.begin_step()
            self._has_begun_recorded_step = True

    def _start_if_due(self) -> None:
        is_asked_for = self.seen_steps >= self._skip
        if self._is_imbalanced:
            return
        if self.has_ended or not (is_asked_for or self._is_first_step()):
            self._pause()
            return
        # A program may try its model out on the CPU, and then move it.
        may_move = self._from_start and self.recorded_steps == 0 and not self._failures.has_any
        if self._records_steps and not may_move:
            return
        device = self._device_of_training() if may_move or not self.is_open else self._device
        if self._records_steps and device == self._device:
            return
        is_followed = self.is_open and device == self._device  # by an inference before
        may_try_cpu = not self._gpu and (is_followed or not self.is_recording)
        is_first = device.type == "cuda" or (device.type == "cpu" and may_try_cpu)
        if (is_asked_for or is_first) and self._may_write_file():
            self.start(device)

    def _pause(self) -> None:
        """Between the first step and those that are asked for, allocations alone are recorded."""
        self._switch_phase(None)
        if self._records_steps:
            _recorder.pause_ops()
            self._records_steps = False

    def _is_first_step(self) -> bool:
        return self._from_start and self.seen_steps == 0

    def _may_write_file(self) -> bool:
        """Of several processes the first one may that takes a step, or runs out of memory."""
        if not self._may_write:
            self._may_write = self._may_record()
        if not self._may_write:
            if self.is_recording:
                _recorder.discard()
            self.forget()
        return self._may_write

    def _mark_end(self) -> None:
        """The step may have ended here: it turns out when the next optimizer runs."""
        self._loss_at_mark = self._loss
        if self._records_steps:
            _recorder.mark_end_of_step()
            self._micro_batches.mark()

    def _end_step_at_mark(self) -> None:
        if self._loss_at_mark is None or not self._in_step or self._is_broken:
            return
        phase = self._phase
        self._close_step(is_whole=True, at_mark=True)
        if self.has_all_steps:  # a further step has begun, so its peak would not be whole
            self._tries_imbalance = False
        self._go_on_or_end()
        if not self.has_ended:  # what came after the mark is of the next step
            self._begin_step()
            self._switch_phase(phase)

    def _end_step(self) -> None:
        if not self._in_step:
            return
        self._close_step(not self._is_broken)
        self._go_on_or_end()

    def _go_on_or_end(self) -> None:
        if not self.has_all_steps:
            self._start_if_due()  # with what happens between two steps
        elif self._may_try_imbalance():
            self._try_imbalance()
        else:
            self.end(complete=True)
            self._on_recorded()

    def _may_try_imbalance(self) -> bool:
        return (
            self._tries_imbalance
            and not self._is_imbalanced
            and _recorder.has_balanced_experts()
            # A limit that the program set itself would end it.
            and torch.cuda.get_per_process_memory_fraction(self._device) == 1
            and REQUESTED_PEAK in torch.cuda.memory_stats(self._device)
        )

    def _try_imbalance(self) -> None:
        """From here on nothing is recorded but the peak of the next step, and the program ends
        where it would save something or fail."""
        self._find_rest()
        self._records_steps = False
        _recorder.stop()
        _recorder.set_imbalanced(True)
        torch.cuda.reset_peak_memory_stats(self._device)
        self._is_imbalanced = True
        self._on_further_step()

    def _close_step(self, is_whole: bool, at_mark: bool = False) -> None:
        self._before_step_ends()
        self._switch_phase(None)
        if self._is_imbalanced and is_whole:
            stats = torch.cuda.memory_stats(self._device)
            _recorder.set_imbalanced_peak(stats[REQUESTED_PEAK])
        self._in_step = self._in_optimizer = self._is_broken = self._ends_before_forward = False
        self._phase_around = None
        self._optimizers.end_step()
        self._marked_phases = [None] * len(self._marked_phases)  # that one is over, too
        kind = StepKind.FIRST if self._is_first_step() else StepKind.WHOLE
        if not is_whole:
            kind = StepKind.BROKEN
        if self._records_steps:
            self._record_end_of_step(kind, at_mark)
        self.seen_steps += int(is_whole)
        _recorder.begin_value_step()
        self._loss = math.nan
        self._loss_at_mark = None

    def _record_end_of_step(self, kind: StepKind, at_mark: bool) -> None:
        self._micro_batches.end_step(kind, at_mark)
        self._description["micro_batches"] = self._micro_batches.of_each_step
        _recorder.describe_program(self._description)
        _recorder.end_step(self._loss_at_mark if at_mark else self._loss, kind, at_mark)
        self._is_described &= kind == StepKind.WHOLE
        if kind == StepKind.BROKEN:
            return
        self.recorded_steps += int(self.seen_steps >= self._skip)
        self._on_step_recorded()
        if at_mark:
            return
        is_asked = self.recorded_steps in (_KEEPERS_AFTER, self._steps)
        if kind == StepKind.FIRST or (is_asked and self.recorded_steps != self._keepers_of):
            self._find_keepers()

    def _find_rest(self) -> None:
        """What keeps memory at the end, if nobody has looked since the last step."""
        if self.recorded_steps != self._keepers_of:
            self._find_keepers()

    def _find_keepers(self) -> None:
        """Of what lives on after a step, and has no name."""
        self._keepers_of = self.recorded_steps
        _failures.tell_keepers(True, _KEEPERS_S)
        _recorder.begin_steps()  # the next one begins here

    def _switch_phase(self, phase: Phase | None) -> None:
        if self._phase == phase:
            return
        if self._phase is not None and self._records_steps:
            _recorder.end_phase(self._phase)
        self._phase = phase
        if phase is not None and self._records_steps:
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
        _fsdp.follow(self.fsdp_makes)
        _describe.describe_model(self._names, model, self._names.prefix(model))

    def _describe_state(self) -> None:
        """What backward and the optimizers have made so far."""
        _describe.describe_gradients(self._names, self._described, self._parameters())
        for optimizer in self._optimizers:
            _describe.describe_optimizer(self._names, self._described, optimizer)

    def _describe_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        if self._records_steps:
            _describe.describe_optimizer(self._names, self._described, optimizer)

    def _describe_gradients(self) -> None:
        if self._records_steps:
            _describe.describe_gradients(self._names, self._described, self._parameters())

    def _describe_program(self, model: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        self._description |= {
            "model": name_of_class(inner_model(model)),
            "precision": _describe.precision_of(model),
            "batch_size": 0,
            "seq_len": 0,
            **_describe.batch_of(args, kwargs),
        }

    def _see_autocast(self) -> None:
        precision = _describe.autocast_precision(self._device.type)
        if precision is not None:
            self._description["precision"] = precision
