"""Follows the program that `temposcope run` started, and says at its end what became of it.

TEMPOSCOPE_RUN is JSON: {"file": trace, "folder": for a trace of each rank, in place of "file",
"status": file for what happened, "run_id": the same in all ranks that it started, "steps": 3,
"skip": 1, "stop": false, "gpu": "NVIDIA H100" or null, "apply": recipe or null, "layers": classes
that count as layers for it, "stacks": "", "python" or "all", "world_size": of a virtual run or
null, "ranks": which of them run, "rank": this one of them, "launch_id": of virtual ranks, the same
in all ranks of a launch, "command": its words, "working_folder": where it was started, "values":
"computed" or "zeros", "routing": "balanced" or another text of models/config/routing.h,
"tries_imbalance": as of Session}.
Each line of the status file is a JSON object: of each rank the last one holds. A rank with an
exception or an exit code has failed, the one of the first such line first.
app/programs/program_run.cpp starts the program and reads them.
"""

import atexit
import dataclasses
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import _compiled_values, _failures, _launch, _ranks, _recorder
from ._apply import Applied
from ._function_calls import calls_left
from ._later_steps import LaterSteps
from ._recorder import RecordingError
from ._representatives import representatives
from ._session import Session
from ._status import Status, first_line
from ._swap import SwapReport
from ._swapped_class import name_of_class


# What a trace says of it, so that its program can be run again in the same way.
_OF_RUN = ("gpu", "apply", "layers", "skip", "steps", "values", "routing")


@dataclasses.dataclass
class AppliedModel:
    """A model of the program with the recipe in it."""

    model: weakref.ref
    name: str  # of its class
    report: SwapReport

    def json(self) -> dict:
        return {
            "model": self.name,
            "replaced": {what: len(paths) for what, paths in self.report.replaced.items()},
            "left": [
                {"what": left.what, "reason": left.reason, "modules": len(left.modules)}
                for left in self.report.left
            ],
            "sentence": f"In {self.name}, {self.report}.",
        }


class Program:
    """The recording of this process, from the import of torch to its end."""

    def __init__(self, options: dict, before_step_ends: Callable[[], None] = lambda: None):
        self._status = Status(options["status"])
        self._folder: str | None = options["folder"]
        self._stops = options["stop"]
        self._asked_to_stop = False
        self._owner = os.getpid()
        self._on_virtual_gpu = bool(options["gpu"])
        self._values = options["values"], options["routing"]
        self._is_virtual_rank = "rank" in options
        self._partners: list[int] | None = None  # that were told
        if self._is_virtual_rank:
            self._values += _ranks.folder_of_launch(options["status"]), options["rank"]
            self._values += (options["world_size"],)
        self._recipe = options["apply"]
        self._applied: list[AppliedModel] = []
        self._knows_calls = not self._recipe
        if self._recipe:  # before the session: it names what is there
            Applied(self._recipe, options["layers"], self._see_applied)
        launch = _launch.launch(
            options["command"],
            options["working_folder"],
            is_rank="rank" in options or "TORCHELASTIC_RUN_ID" in os.environ,
        )
        of_run = {name: options[name] for name in _OF_RUN}
        launch["environment"][_launch.RUN] = json.dumps(of_run)
        self._session = Session(
            options["file"] or "",
            skip=options["skip"],
            steps=options["steps"],
            recipe=self._recipe or "",
            run_id=_ranks.run_id(options["run_id"]),
            launch_id=options.get("launch_id", ""),
            stacks=options["stacks"],
            gpu=options["gpu"] or "",
            finds_optimizers=True,
            from_start=True,
            launch=launch,
            tries_imbalance=options["tries_imbalance"],
            may_record=self._may_record,
            on_started=self._started,
            before_step_ends=before_step_ends,
            on_step_recorded=self._step_recorded,
            on_recorded=self._recorded,
            on_further_step=self._guard_further_step,
        )
        self._after_optimizers: list[Callable[[torch.optim.Optimizer], None]] = []
        self._how_it_ended: dict = {}  # {"exception": "ValueError", "message": what it says}
        self._later_steps = LaterSteps(self._session, launch, self._tell_complete)

    def follow(self) -> None:
        self._add(state="torch", version=torch.__version__)
        # Before the session's, which may end the recording: that update is not one after it.
        register_optimizer_step_post_hook(self._optimizer_has_run)
        self._session.watch()
        if self._on_virtual_gpu:
            _recorder.follow_values(*self._values)
            if self._values[0] == "computed":
                _compiled_values.follow()
        atexit.register(self._at_exit)
        self._excepthook, sys.excepthook = sys.excepthook, self._on_exception
        self._of_threads, threading.excepthook = threading.excepthook, self._on_thread_exception

    def _optimizer_has_run(self, optimizer, *_arguments) -> None:
        """The one hook of its kind: in a hook, no other may be added, as torch walks over them."""
        for call in self._after_optimizers:
            call(optimizer)

    def _see_applied(self, model, report: SwapReport) -> None:
        self._applied.append(AppliedModel(weakref.ref(model), name_of_class(model), report))
        if self._session.is_open:
            self._note_report(self._applied[-1])

    def _step_recorded(self) -> None:
        if self._is_virtual_rank:
            partners = _recorder.partners()
            if partners != self._partners:
                self._partners = partners
                self._status.add(state="started", partners=partners)
        if not self._knows_calls:
            self._find_calls_left()

    def _find_calls_left(self) -> None:
        """The first recorded step shows what the recipe could not replace in the models' code."""
        self._knows_calls = True
        by_prefix = {self._session.prefix(applied.model()): applied for applied in self._applied}
        by_prefix.pop(None, None)
        calls = _recorder.saving_calls()
        for prefix in sorted(by_prefix, key=len, reverse=True):  # that of the main model, "", last
            applied = by_prefix[prefix]
            own, others = [], []
            for call in calls:
                is_own = f"{call.module_path}.".startswith(prefix)
                (own if is_own else others).append(call)
            calls = others
            own = [c._replace(module_path=c.module_path.removeprefix(prefix)) for c in own]
            if left := calls_left(applied.report, own):
                what = "; ".join(map(str, left))
                sentence = f"In {applied.name}, {self._recipe} left {what}."
                _recorder.add_note("recipe_left", _recorder.Severity.INFO, sentence)
                all_left = applied.report.left + left
                applied.report = dataclasses.replace(applied.report, left=all_left)

    def _may_record(self) -> bool:
        if self._folder is None:
            return self._status.claim(None)
        current, launched = _ranks.current(), _ranks.from_environment()
        if _ranks.launched() not in (None, current.rank):
            self._status.add_as(
                launched.rank,
                state="failed",
                sentence=f"Nothing was recorded as this rank: torch.distributed calls it {current}",
            )
        file = self._session.file = _ranks.file_in(self._folder, current.rank)
        if not self._status.claim(current.rank):
            if current != launched:
                print(
                    f"temposcope: torch.distributed calls this process {current}, as it does "
                    f"another one, and its launcher calls it {launched}: it is not recorded. Leave "
                    "both numbers of init_process_group to the launcher (RANK, WORLD_SIZE).",
                    file=sys.stderr,
                )
            return False
        if os.path.exists(file):  # the folder had no trace when this launch began
            raise RecordingError(
                f"another launch has written {file} meanwhile: give each launch its own folder"
            )
        return True

    def _started(self) -> None:
        for applied in self._applied:
            self._note_report(applied)
        if self._folder is not None:
            self._status.add(state="started", representatives=representatives())

    @staticmethod
    def _note_report(applied: AppliedModel) -> None:
        is_replaced = bool(applied.report.replaced)
        severity = _recorder.Severity.INFO if is_replaced else _recorder.Severity.WARNING
        _recorder.add_note("recipe_applied", severity, applied.json()["sentence"])

    def _tell(self, **what) -> None:
        """Adds to the status what became of the recording, and of the recipe."""
        if self._recipe:
            what["applied"] = [applied.json() for applied in self._applied]
        if self._session.num_failures:
            what["failures"] = self._session.num_failures
        self._add(**what, **self._later_steps.found, **self._how_it_ended)

    def _add(self, **what) -> None:
        self._status.add_as(None if self._folder is None else _ranks.known(), **what)

    def _tell_complete(self) -> None:
        self._tell(state="complete", steps=self._session.recorded_steps)

    def _recorded(self) -> None:
        self._tell_complete()
        if not self._stops:
            self._watch_on()
            if self._on_virtual_gpu:
                self._tell_steps()
                _recorder.rest_unless_read()
            return
        sys.stdout.flush()
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(0)
        os._exit(0)

    def _tell_steps(self) -> None:
        """Nobody follows the steps from here on, and a loop in one of them may still have no
        end."""

        def end_step(*_arguments) -> None:
            _recorder.begin_value_step()

        if self._session.has_optimizer:
            self._after_optimizers.append(end_step)
        else:  # a step is one forward
            register_module_forward_pre_hook(end_step)

    def _guard_further_step(self) -> None:
        """The program was to end after the recorded steps. One that trains no more ends where it
        would save what it has trained."""

        def end(*_args, **_keywords):
            self._session.end(complete=True)
            self._recorded()

        torch.save = end

    def _watch_on(self) -> None:
        self._later_steps.begin()
        self._after_optimizers.append(self._later_steps.optimizer_has_run)

    def _on_exception(self, kind, value, traceback):
        if self._session.is_in_further_step:  # which may be what the program cannot bear
            self._session.end(complete=True)
            self._tell_complete()
            sys.stdout.flush()
            os._exit(0)
        self._how_it_ended = {"exception": kind.__name__, "message": first_line(value)}
        try:
            self._note_error(value, self._session.fails_with)
        finally:
            self._excepthook(kind, value, traceback)

    def _on_thread_exception(self, args):
        try:
            if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
                self._note_error(args.exc_value, self._session.thread_fails_with)
        finally:
            self._of_threads(args)

    def _note_error(self, error: BaseException, tell: Callable[[BaseException], None]) -> None:
        if not self._session.is_recording:
            return
        if _failures.ran_out(error):
            text = _failures.text_of(error)
            _recorder.add_note("out_of_memory", _recorder.Severity.ERROR, text)
        tell(error)

    def _at_exit(self) -> None:
        session = self._session
        if os.getpid() != self._owner:
            return
        if not self._how_it_ended:
            session.settle()
        has_more = session.has_all_steps and not session.has_ended  # than was asked for
        if has_more:
            session.end(complete=True)
        is_complete = session.has_ended and session.error is None
        self._later_steps.end()
        if is_complete and not (self._how_it_ended or has_more or self._later_steps.found):
            return
        was_recording = session.is_recording
        if was_recording:
            if self._how_it_ended:
                _recorder.add_note(
                    "program_ended",
                    _recorder.Severity.WARNING,
                    f"The program ended with {self._how_it_ended['exception']} before the last "
                    "step that was asked for.",
                )
            session.end(complete=False)
        if session.error is not None:
            self._tell(state="failed", sentence=str(session.error))
        elif is_complete and session.has_rows:  # and went on after that
            self._tell_complete()
        elif was_recording and session.has_rows:
            steps, seen_steps = session.recorded_steps, session.seen_steps
            self._tell(state="incomplete", steps=steps, seen_steps=seen_steps)
        elif not is_complete and (session.seen_steps > 0 or self._how_it_ended):
            self._tell(state="ended", seen_steps=session.seen_steps)


def follow() -> None:
    """Called once torch is imported."""
    options = json.loads(os.environ[_launch.RUN])
    _ranks.take_environment()
    _ranks.give_each_process_a_card()
    if options["world_size"] is not None:
        if "rank" not in options:
            from . import _virtual_launch

            status = Status(options["status"])
            status.add(state="torch", version=torch.__version__)
            _virtual_launch.replace_launcher(options, status.add)
            return
        from . import _virtual_world

        _virtual_world.enter(options["rank"], options["world_size"])
        Program(options, _virtual_world.retire_finished_work).follow()
    else:
        Program(options).follow()
