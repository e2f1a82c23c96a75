"""Which optimizers a program uses, and whether each has run in this step."""

import gc
import weakref
from collections.abc import Iterator

import torch

# The program is done with an optimizer that has not run while another one has run more than twice
# as often as in the step before. Before the first step ends, this many times.
_MOST_RUNS_IN_FIRST_STEP = 16


def _is_optimizer(thing: object) -> bool:
    """type(), since asking some lazy objects for their class imports what they stand for."""
    return issubclass(type(thing), torch.optim.Optimizer)


def _living() -> list[torch.optim.Optimizer]:
    """Not those that hold another one, as Lightning's and accelerate's do: that one runs."""
    found = [one for one in gc.get_objects() if _is_optimizer(one)]
    return [one for one in found if not any(map(_is_optimizer, vars(one).values()))]


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


class Optimizers:
    """Those of a program. With `finds_others` all that live when the first of them runs belong to
    the program."""

    def __init__(self, finds_others: bool):
        self._used: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._finds_others = finds_others
        self._one_lives = False
        self._questions = 0  # whether there is one
        self._runs: dict[int, int] = {}  # in this step, by id
        self._runs_of_last_step: dict[int, int] = {}
        self._models_of_step: dict[int, weakref.ref] = {}  # by id

    def __iter__(self) -> Iterator[torch.optim.Optimizer]:
        return iter(self._used)

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        self._used.add(optimizer)
        self._one_lives = True

    def begins(self, optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
        """Those that are found now: they may train later, or never."""
        self.add(optimizer)
        if not self._finds_others:
            return []
        self._finds_others = False
        others = _living()
        for other in others:
            self.add(other)
        return others

    def model_begins(self, model: torch.nn.Module) -> None:
        self._models_of_step[id(model)] = weakref.ref(model)

    def begins_again(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the step was over before, since this one has run in it and no other one is waited
        for. A critic may run often before its actor does, whose model runs, too. From here on the
        others do not count until they run."""
        if id(optimizer) not in self._runs or self._waits():
            return False
        self._used = weakref.WeakSet(one for one in self._used if id(one) in self._runs)
        return True

    def _waits(self) -> bool:
        """For an optimizer of a model that runs in this step, and that no other one has updated."""
        models = filter(None, (ref() for ref in self._models_of_step.values()))
        open_parameters = {id(parameter) for model in models for parameter in model.parameters()}
        for one in self._used:
            if id(one) in self._runs:
                open_parameters.difference_update(map(id, parameters_of(one)))
        waiting = (one for one in self._used if id(one) not in self._runs)
        return any(id(p) in open_parameters for one in waiting for p in parameters_of(one))

    def ends(self, optimizer: torch.optim.Optimizer) -> bool:
        """Returns whether each that the program uses has run in this step."""
        runs = self._runs
        runs[id(optimizer)] = runs.get(id(optimizer), 0) + 1
        before = self._runs_of_last_step.get(id(optimizer))
        if runs[id(optimizer)] > (2 * before if before else _MOST_RUNS_IN_FIRST_STEP):
            self._used = weakref.WeakSet(one for one in self._used if id(one) in runs)
        return all(id(one) in runs for one in self._used)

    def end_step(self) -> None:
        self._models_of_step = {}
        self._runs_of_last_step, self._runs = self._runs, {}

    def may_update(self, model: torch.nn.Module) -> bool:
        """Whether an optimizer of the program has parameters of it."""
        known = {id(parameter) for parameter in model.parameters()}
        optimizers = list(self._used) or _living()
        return any(id(parameter) in known for one in optimizers for parameter in parameters_of(one))

    def any(self) -> bool:
        """Whether the program has one, even if it has not run yet. It takes long to look for it, so
        only the 1st, 2nd, 4th, 8th, ... question is looked into."""
        if not self._one_lives:
            self._questions += 1
            is_power_of_two = self._questions & (self._questions - 1) == 0
            self._one_lives = is_power_of_two and bool(_living())
        return self._one_lives
