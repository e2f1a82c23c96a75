"""Sees what a program does: modules that run, backward, optimizers. All by hooks that torch offers,
and by wrappers: torch offers none at the begin of backward, nor of its profiler."""

import atexit
import threading
import time
from collections.abc import Callable
from typing import Protocol

import torch
from torch.autograd import profiler
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from . import _compiled, _fsdp, _saved_tensors, _selective_checkpoints


_REST_S = 0.05


def _let_threads_rest() -> None:
    """Before Python shuts down. A thread of autograd that drops what Python made needs Python's
    lock. Python before 3.14 ends a thread that asks for it too late, and C++ then aborts."""
    if torch.cuda.is_initialized():
        time.sleep(_REST_S)


class Listener(Protocol):
    """What happens, in order. Depth 0 is a module that no other module calls. No call raises."""

    def module_begins(self, module: torch.nn.Module, depth: int, args: tuple) -> bool:
        """Returns whether module_ends shall be called."""

    def module_ends(self, module: torch.nn.Module, depth: int, returns: bool) -> None:
        """`returns`: it has a result, and no error left it."""

    def backward_begins(self, root: object) -> None: ...
    def backward_ends(self, accumulates: bool, is_whole: bool) -> None: ...
    def optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None: ...
    def optimizer_ends(self, optimizer: torch.optim.Optimizer) -> None: ...

    def profiler_begins(self) -> None: ...
    def profiler_has_ended(self) -> None: ...

    def result_is_kept(self, tensor: torch.Tensor) -> Callable[[], None] | None:
        """A selective checkpoint keeps it for backward, until what this returns is called."""


class _Calls(threading.local):
    """The modules that run on this thread, outermost first: (module, whether its end is told)."""

    def __init__(self):
        self.stack: list[tuple[torch.nn.Module, bool]] = []


class Observer:
    """Tells a listener, from `start` to `stop`, on the threads on which it happens."""

    def __init__(self, listener: Listener):
        self._listener: Listener | None = listener
        self._handles: list = []
        self._calls = _Calls()
        # Of the process: backward on a GPU runs a checkpoint's forward on a thread of its own.
        self._backward_depth = 0
        self._engine_run_backward = None
        self._on_profiler: tuple[Callable[[], None], ...] = ()  # what torch does

    def start(self) -> None:
        atexit.unregister(_let_threads_rest)
        atexit.register(_let_threads_rest)
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._before_module),
            torch_module.register_module_forward_hook(self._after_module, always_call=True),
            torch_optimizer.register_optimizer_step_pre_hook(self._before_optimizer),
            torch_optimizer.register_optimizer_step_post_hook(self._after_optimizer),
        ]
        self._engine_run_backward = torch.autograd._engine_run_backward
        torch.autograd._engine_run_backward = self._run_backward
        self._on_profiler = profiler._run_on_profiler_start, profiler._run_on_profiler_stop
        profiler._run_on_profiler_start = self._before_profiler
        profiler._run_on_profiler_stop = self._after_profiler
        _saved_tensors.keep_parameters()
        _selective_checkpoints.follow(self._listener.result_is_kept)
        _compiled.follow()

    def stop(self) -> None:
        """May be called from within a hook. The listener hears nothing more."""
        self._listener = None
        if profiler._run_on_profiler_start == self._before_profiler:
            profiler._run_on_profiler_start, profiler._run_on_profiler_stop = self._on_profiler
        _saved_tensors.leave_as_they_are()
        _selective_checkpoints.leave_as_they_are()
        _fsdp.leave_as_they_are()
        if torch.autograd._engine_run_backward == self._run_backward:
            torch.autograd._engine_run_backward = self._engine_run_backward

    def in_backward(self) -> bool:
        return self._backward_depth > 0

    def in_module(self) -> bool:
        """On this thread."""
        return bool(self._calls.stack)

    def _remove_hooks(self) -> None:
        """Not from a hook of an optimizer: torch iterates over those."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # A module that is being compiled is left alone: the hooks would become part of its graph.

    def _before_module(self, module, args):
        if torch.compiler.is_compiling():
            return
        listener = self._listener
        if listener is None:
            self._remove_hooks()
            return
        stack = self._calls.stack
        stack.append((module, False))
        stack[-1] = module, listener.module_begins(module, len(stack) - 1, args)

    def _after_module(self, module, _args, output):
        if torch.compiler.is_compiling():
            return
        stack = self._calls.stack
        for depth in reversed(range(len(stack))):
            if stack[depth][0] is module:
                self._end_modules(depth, output is not None)  # torch has none of one that fails
                return

    def _end_modules(self, depth: int, returns: bool) -> None:
        """Ends those of this thread from this depth on. Torch tells no end of a module that Ctrl-C
        cut off, so it ends with the next one around it."""
        stack = self._calls.stack
        while len(stack) > depth:
            module, is_told = stack.pop()
            listener = self._listener
            if is_told and listener is not None:
                listener.module_ends(module, len(stack), returns and len(stack) == depth)

    def _run_backward(self, roots, *args, **kwargs):
        listener = self._listener if self._backward_depth == 0 else None
        self._backward_depth += 1
        if listener is not None:
            listener.backward_begins(roots)
        is_whole = False
        try:
            gradients = self._engine_run_backward(roots, *args, **kwargs)
            is_whole = True
            return gradients
        finally:
            self._backward_depth -= 1
            if listener is not None:
                listener.backward_ends(bool(kwargs.get("accumulate_grad", False)), is_whole)

    def _before_profiler(self) -> None:
        if self._listener is not None:
            self._listener.profiler_begins()
        self._on_profiler[0]()

    def _after_profiler(self) -> None:
        self._on_profiler[1]()
        if self._listener is not None:
            self._listener.profiler_has_ended()

    def _before_optimizer(self, optimizer, _args, _kwargs):
        listener = self._listener
        if listener is not None:
            listener.optimizer_begins(optimizer)

    def _after_optimizer(self, optimizer, _args, _kwargs):
        listener = self._listener
        if listener is not None:
            listener.optimizer_ends(optimizer)
