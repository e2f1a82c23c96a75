"""How many batches of the same size a training step has, whose gradients add up."""

import copy
import dataclasses

import torch

from ._recorder import StepKind


@dataclasses.dataclass
class _Step:
    """What ran in a step so far."""

    batch_sizes: list[int] = dataclasses.field(default_factory=list)  # of the main model's forwards
    backwards: int = 0
    optimizer_trains: bool = False
    optimizers: set[int] = dataclasses.field(default_factory=set)  # that have run, by id
    alternates: bool = False  # a forward comes after an update

    @property
    def micro_batches(self) -> int:
        """0: not known."""
        count = len(self.batch_sizes)
        if count == 1 and self.backwards == 0:
            return 1  # an inference
        takes_turns = self.alternates and len(self.optimizers) > 1
        is_training = count == self.backwards and not self.optimizer_trains
        return count if is_training and not takes_turns else 0

    def after(self, earlier: "_Step") -> "_Step":
        """What ran since then."""
        return _Step(
            self.batch_sizes[len(earlier.batch_sizes) :],
            self.backwards - earlier.backwards,
            self.optimizer_trains and not earlier.optimizer_trains,
            self.optimizers - earlier.optimizers,
        )


class MicroBatches:
    """Counts those of the recorded steps.

    A micro-batch is a forward of the main model and a backward. In the step of a GAN there are more
    forwards than backwards, or fewer, or its optimizers take turns: how many samples such a step
    trains is not known. Nor is it if an optimizer runs a backward, as that of LBFGS: its closure
    trains on one batch several times.
    """

    def __init__(self):
        self._step = _Step()
        self._marked = _Step()
        self._of_steps: set[int] = set()  # 0: not known
        self._all_sizes: set[int] = set()
        self._is_of_first_step = False

    @property
    def of_each_step(self) -> int:
        """0: not known, or steps differ."""
        alike = len(self._of_steps) == 1 and len(self._all_sizes) == 1
        return next(iter(self._of_steps)) if alike else 0

    def forward_begins(self, batch_size: int) -> None:
        self._step.batch_sizes.append(batch_size)
        self._step.alternates |= bool(self._step.optimizers)

    def update_ends(self, optimizer: torch.optim.Optimizer) -> None:
        self._step.optimizers.add(id(optimizer))

    def backward_ends(self, in_optimizer: bool) -> None:
        self._step.backwards += 1
        self._step.optimizer_trains |= in_optimizer

    def mark(self) -> None:
        """The step may end here."""
        self._marked = copy.deepcopy(self._step)

    def end_step(self, kind: StepKind, at_mark: bool) -> None:
        """A broken step does not count, and the first one only until a whole one has ended: a model
        may be tried out in it. `at_mark`: it ended there, and what followed is of the next one."""
        step = self._marked if at_mark else self._step
        later = self._step.after(step) if at_mark else _Step()
        if kind != StepKind.BROKEN:
            if self._is_of_first_step:
                self._of_steps, self._all_sizes = set(), set()
            self._is_of_first_step = kind == StepKind.FIRST
            self._of_steps.add(step.micro_batches)
            self._all_sizes.update(filter(None, step.batch_sizes))
        self._step = later
