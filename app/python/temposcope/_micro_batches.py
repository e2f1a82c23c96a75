"""How many batches of the same size a training step has, whose gradients add up."""

from ._recorder import StepKind


class MicroBatches:
    """Counts those of the recorded steps.

    A micro-batch is a forward of the main model and a backward. In the step of a GAN there are more
    forwards than backwards, or fewer: how many samples such a step trains is not known. Nor is it
    if an optimizer runs a backward, as that of LBFGS: its closure trains on one batch several
    times.
    """

    def __init__(self):
        self._batch_sizes: list[int] = []  # of the forwards in this step
        self._num_backwards = 0
        self._optimizer_trains = False
        self._marked = 0, 0, False
        self._of_steps: set[int] = set()  # 0: not known
        self._all_sizes: set[int] = set()
        self._is_of_first_step = False

    @property
    def of_each_step(self) -> int:
        """0: not known, or steps differ."""
        alike = len(self._of_steps) == 1 and len(self._all_sizes) == 1
        return next(iter(self._of_steps)) if alike else 0

    def forward_begins(self, batch_size: int) -> None:
        self._batch_sizes.append(batch_size)

    def backward_ends(self, in_optimizer: bool) -> None:
        self._num_backwards += 1
        self._optimizer_trains |= in_optimizer

    def mark(self) -> None:
        """The step may end here."""
        self._marked = len(self._batch_sizes), self._num_backwards, self._optimizer_trains

    def end_step(self, kind: StepKind, at_mark: bool) -> None:
        """A broken step does not count, and the first one only until a whole one has ended: a model
        may be tried out in it. `at_mark`: it ended there, and what followed is of the next one."""
        later, num_later_backwards, trains_later = [], 0, False
        if at_mark:
            num_forwards, num_backwards, trains = self._marked
            later = self._batch_sizes[num_forwards:]
            num_later_backwards = self._num_backwards - num_backwards
            trains_later = self._optimizer_trains and not trains
            del self._batch_sizes[num_forwards:]
            self._num_backwards, self._optimizer_trains = num_backwards, trains
        count = len(self._batch_sizes)
        is_inference = count == 1 and self._num_backwards == 0
        if kind != StepKind.BROKEN:
            if self._is_of_first_step:
                self._of_steps, self._all_sizes = set(), set()
            self._is_of_first_step = kind == StepKind.FIRST
            is_training = count == self._num_backwards and not self._optimizer_trains
            self._of_steps.add(count if is_inference or is_training else 0)
            self._all_sizes.update(filter(None, self._batch_sizes))
        self._batch_sizes, self._num_backwards = later, num_later_backwards
        self._optimizer_trains = trains_later
