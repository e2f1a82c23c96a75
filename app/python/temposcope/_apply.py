"""A recipe on a program that knows nothing of it: its models are swapped when they are first
trained."""

import dataclasses
import difflib
import weakref
from collections.abc import Callable, Iterable

import torch
import torch.nn as nn
from torch.nn.modules import module as torch_module

from ._recipes import switches_of
from ._swap import Left, SwapReport, swap


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
        by_name = {type(m).__name__: type(m) for m in module.modules()}
        classes = tuple(by_name[name] for name in self._layers if name in by_name)
        report = swap(module, self._recipe, classes)
        unknown = [_unknown_layer(name, by_name) for name in sorted(self._layers - by_name.keys())]
        self._tell(module, dataclasses.replace(report, left=(*report.left, *unknown)))


def _unknown_layer(name: str, classes: Iterable[str]) -> Left:
    close = difflib.get_close_matches(name, classes, 1)
    hint = f": did you mean {close[0]}?" if close else ""
    return Left(f"layers of class {name}", f"no module has this class{hint}", ())
