"""What a program does after its recorded steps: whether memory runs out, or its peak rises."""

import collections
import copy
import json
from collections.abc import Callable

import torch

from . import _failures, _launch, _watch
from ._frames import stack_of_this_thread
from ._session import REQUESTED_PEAK, Session

_NOTABLE = 1.01  # times the peak until then: a little more is in every step that differs


class LaterSteps:
    """Follows the steps after those that `session` has recorded. Where memory runs out, the last of
    them become a second trace. `found` is what the status tells of them:

    oom_file, oom_skip      trace of memory that ran out, and the steps before it
    peak_bytes, peak_skip   a higher peak than until then, and the steps before it
    peak_is_at_end          no step ends after it

    Without an optimizer steps are not counted."""

    def __init__(self, session: Session, launch: dict, on_failure: Callable[[], None]):
        self._session = session
        self._on_failure = on_failure
        self._launch = copy.deepcopy(launch)
        self._last_steps = _watch.LastSteps(_watch.STEPS, self._launch)
        self._updates = collections.Counter()  # by id of the optimizer: a step runs each one once
        self._most_bytes = 0.0  # a higher peak is told
        self._is_followed = self._remembers = False
        self.found: dict[str, int | str] = {}

    def begin(self) -> None:
        """A history that the program has asked for itself stays as it is."""
        self._is_followed = self._session.device.type == "cuda" and _watch.has_history()
        if not self._is_followed:
            return
        self._most_bytes = self._peak() * _NOTABLE
        self._remembers = not torch._C._cuda_isHistoryEnabled()
        if self._remembers:
            of_step = _watch.num_allocations() // self._session.seen_steps
            self._last_steps.remember(max(of_step, 1))
            _failures.listen(self._see_failure)

    def optimizer_has_run(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._is_followed:
            return
        of_step = self._session.seen_steps + self._updates[id(optimizer)]
        self._see_peak(of_step, is_at_end=False)
        self._updates[id(optimizer)] += 1
        if self._remembers:
            self._last_steps.end_step()

    def end(self) -> None:
        """Of the program."""
        self._see_peak(self._num_steps(), is_at_end=True)

    def _see_peak(self, steps_before: int, is_at_end: bool) -> None:
        """The peak since the last update may be the highest."""
        peak_bytes = self._peak() if self._is_followed else 0
        if peak_bytes <= self._most_bytes:
            return
        self._most_bytes = peak_bytes
        self.found["peak_bytes"] = peak_bytes
        if self._session.has_optimizer:
            self.found |= {"peak_skip": steps_before, "peak_is_at_end": is_at_end}

    def _peak(self) -> int:
        return torch.cuda.memory_stats(self._session.device).get(REQUESTED_PEAK, 0)

    def _num_steps(self) -> int:
        """That have ended."""
        return self._session.seen_steps + max(self._updates.values(), default=0)

    def _see_failure(self, _device: int) -> None:
        file = f"{self._session.file.removesuffix('.tscope')}.oom.tscope"
        why = "memory ran out after the recorded steps"
        if self._session.has_optimizer:
            self._launch_to_record(self._num_steps())
        if self._last_steps.write(file, why, stack_of_this_thread()) is not None:
            self.found["oom_file"] = file
            if self._session.has_optimizer:
                self.found["oom_skip"] = self._num_steps()
            self._on_failure()

    def _launch_to_record(self, skip: int) -> None:
        """The second trace tells of a run that comes to this step."""
        variables = self._launch["environment"]
        told = json.loads(variables[_launch.RUN]) | {"skip": skip, "steps": 1}
        variables[_launch.RUN] = json.dumps(told)
