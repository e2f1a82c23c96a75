"""The functions with which a program records itself, or says where its steps and phases are."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Literal

import torch

from . import _session
from ._recorder import Phase

_PHASES = {phase.name.lower(): phase for phase in Phase}


class Recording:
    """What runs in the block of `record`: its value.

    with temposcope.record("step.tscope", model, optimizer) as recording:
        train_an_epoch()
    print(f"{recording.recorded_steps} steps")
    """

    def __init__(self, session: "_session.Session"):
        self._session = session

    @property
    def recorded_steps(self) -> int:
        """Steps that came to their end, so far."""
        return self._session.recorded_steps

    def step(self) -> None:
        """As `temposcope.step()`, for this recording."""
        self._session.end_marked_step()


@contextlib.contextmanager
def record(
    path: str | os.PathLike,
    model: torch.nn.Module | None = None,
    *optimizers: torch.optim.Optimizer,
    stacks: bool | Literal["all"] = False,
) -> Iterator[Recording]:
    """Records the training steps of the block into the trace `path` (`NAME.tscope`).

        with temposcope.record("step.tscope", model, optimizer):
            for batch in batches:
                model(**batch).loss.backward()
                optimizer.step()
                optimizer.zero_grad()

    path        the trace to write; one that exists is replaced
    model       gives modules and parameters their names; without it the first model that runs does.
                The device is the model's: the CPU, or the first GPU. Its first input tells the
                batch size, [batch_size, ...], and as token ids, [batch_size, seq_len], the length
    optimizers  a step ends when all of them have run (docs/record_your_program.md), or where the
                program calls `step()`. Without any, those that live count, as for `temposcope run`
    stacks      records the lines of Python that led to each allocation, too; "all": and the C++
                functions below them

    In the trace sizes are bytes and times nanoseconds (docs/trace_format.md).

    If the block raises, what was recorded is kept, with the state "incomplete". Raises
    RecordingError where the device or the file cannot be recorded to; if that turns out in the
    block, at its end. Warns if no step ran, since then there is no file.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is {type(model).__name__}: give a torch.nn.Module")
    for optimizer in optimizers:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
    kinds = {False: "", True: "python", "all": "all"}
    if stacks not in kinds:
        raise ValueError(f"stacks is {stacks!r}: give True, False or \"all\"")
    session = _session.Session(
        os.fspath(path), stacks=kinds[stacks], finds_optimizers=not optimizers
    )
    session.watch()
    try:
        for optimizer in optimizers:
            session.add_optimizer(optimizer)
        if model is not None:
            session.add_model(model)
            session.start_where_trained()
        yield Recording(session)
    except BaseException as error:
        if not isinstance(error, (GeneratorExit, SystemExit)):
            session.fails_with(error)
        session.end(complete=False)
        raise
    session.end(complete=True)
    if session.error is not None:
        raise session.error
    if not session.has_rows:
        warnings.warn(f"no step ran in the block: {session.file} was not written", stacklevel=3)


def step() -> None:
    """A step ends here, and the next one begins. From then on only these marks count.

        for batch in batches:
            loss = model(batch).square().mean()
            update_by_hand(model, torch.autograd.grad(loss, model.parameters()))
            temposcope.step()

    Without a recording it does nothing, so that it may stay in the program.
    """
    session = _session.active()
    if session is not None:
        session.end_marked_step()


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """What runs in the block belongs to the phase "forward", "loss", "backward", "optimizer" or
    "inference".

        with temposcope.phase("loss"):
            loss = my_loss(model(x), y)  # a number: [] or [1]

    Phases are found without it: forward until backward begins, and the optimizer after it. Raises
    ValueError for another name. Without a recording it does nothing.
    """
    if name not in _PHASES:
        raise ValueError(f"{name!r} is not a phase; choose one of {', '.join(_PHASES)}")
    session = _session.active()
    if session is None:
        yield
        return
    session.begin_marked_phase(_PHASES[name])
    try:
        yield
    finally:
        session.end_marked_phase()
