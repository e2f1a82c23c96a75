"""A recipe on a program that knows nothing of it: its models are swapped when they are first
trained."""

import weakref
from collections.abc import Callable

import torch
import torch.nn as nn
from torch.nn.modules import module as torch_module

from ._recipes import switches_of
from ._swap import SwapReport, swap


class Applied:
    """Swaps every model at its first call with gradients in training mode, from now to `end`.

    recipe   as for temposcope.swap; a wrong one is a ValueError here
    layers   names of classes whose modules count as layers: ["Block"]
    tell     is called with the model and its report: `lambda model, report: print(report)`
    """

    def __init__(
        self, recipe: str, layers: list[str], tell: Callable[[nn.Module, SwapReport], None]
    ):
        switches_of(recipe)
        self._recipe, self._layers, self._tell = recipe, frozenset(layers), tell
        self._done: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._handle = torch_module.register_module_forward_pre_hook(self._before_module)

    def end(self) -> None:
        """Models that are swapped stay so."""
        self._handle.remove()

    def _before_module(self, module, _args):
        """The outermost module is called first, and its modules count as done with it. A loss or
        another module without parameters is no model."""
        if module in self._done or torch.compiler.is_compiling():
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if next(module.parameters(), None) is None:
            return
        self._done.update(module.modules())
        classes = {type(m) for m in module.modules() if type(m).__name__ in self._layers}
        self._tell(module, swap(module, self._recipe, tuple(classes)))
