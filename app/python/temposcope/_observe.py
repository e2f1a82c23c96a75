"""Sees what a program does: modules that run, backward, optimizers. All by hooks that torch offers,
and by one wrapper: torch offers none at the begin of backward."""

import functools
import threading
from typing import Protocol

import torch
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from ._recorder import RecordingError


class Listener(Protocol):
    """What happens, in order. Depth 0 is a module that no other module calls."""

    def module_begins(self, module: torch.nn.Module, depth: int, args: tuple) -> bool:
        """Returns whether module_ends shall be called."""

    def module_ends(self, module: torch.nn.Module, depth: int) -> None: ...
    def backward_begins(self, root: object) -> None: ...
    def backward_ends(self, accumulates: bool) -> None: ...
    def optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None: ...
    def optimizer_ends(self, optimizer: torch.optim.Optimizer) -> None: ...
    def fail(self, error: RecordingError) -> None:
        """One of the calls above raised it. The program goes on."""


def _guest(hook):
    """A hook whose failure is the recording's, not the program's."""

    @functools.wraps(hook)
    def guarded(self, *args):
        try:
            return hook(self, *args)
        except RecordingError as error:
            self._listener.fail(error)

    return guarded


class Observer:
    """Tells a listener, from `start` to `stop`, on the threads on which it happens."""

    def __init__(self, listener: Listener):
        self._listener: Listener | None = listener
        self._handles: list = []
        self._calls = threading.local()
        self._backward_depth = 0
        self._engine_run_backward = None

    def start(self) -> None:
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._before_module),
            torch_module.register_module_forward_hook(self._after_module, always_call=True),
            torch_optimizer.register_optimizer_step_pre_hook(self._before_optimizer),
            torch_optimizer.register_optimizer_step_post_hook(self._after_optimizer),
        ]
        self._engine_run_backward = torch.autograd._engine_run_backward
        torch.autograd._engine_run_backward = self._run_backward

    def stop(self) -> None:
        """May be called from within a hook. The listener hears nothing more."""
        self._listener = None
        if torch.autograd._engine_run_backward == self._run_backward:
            torch.autograd._engine_run_backward = self._engine_run_backward

    def in_backward(self) -> bool:
        return self._backward_depth > 0

    def _remove_hooks(self) -> None:
        """Not from a hook of an optimizer: torch iterates over those."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # A module that is being compiled is left alone: the hooks would become part of its graph.

    @_guest
    def _before_module(self, module, args):
        if torch.compiler.is_compiling():
            return
        if self._listener is None:
            self._remove_hooks()
            return
        stack = self._calls.__dict__.setdefault("stack", [])
        stack.append(self._listener.module_begins(module, len(stack), args))

    @_guest
    def _after_module(self, module, _args, _output):
        if torch.compiler.is_compiling():
            return
        stack = self._calls.__dict__.setdefault("stack", [])
        if stack and stack.pop() and self._listener is not None:
            self._listener.module_ends(module, len(stack))

    def _run_backward(self, roots, *args, **kwargs):
        is_outermost = self._backward_depth == 0 and self._listener is not None
        self._backward_depth += 1
        if is_outermost:
            self._before_backward(roots)
        try:
            return self._engine_run_backward(roots, *args, **kwargs)
        finally:
            self._backward_depth -= 1
            if is_outermost and self._listener is not None:
                self._after_backward(bool(kwargs.get("accumulate_grad", False)))

    @_guest
    def _before_backward(self, roots):
        self._listener.backward_begins(roots)

    @_guest
    def _after_backward(self, accumulates):
        self._listener.backward_ends(accumulates)

    @_guest
    def _before_optimizer(self, optimizer, _args, _kwargs):
        if self._listener is not None:
            self._listener.optimizer_begins(optimizer)

    @_guest
    def _after_optimizer(self, optimizer, _args, _kwargs):
        if self._listener is not None:
            self._listener.optimizer_ends(optimizer)
