"""How a module is replaced in place: it stays the same object and gets a class of two bases, what
replaces it and its own class.

So hooks, parameters, buffers, their names, `isinstance` and references from elsewhere stay, and
`super().forward` is the module's own. Copies and pickles name both bases, because the class itself
is made at run time.
"""

import functools

import torch.nn as nn

from ._library import load_ops


class Swapped:
    """The first base of a replaced module; `_temposcope` of the module says what it does."""

    def __reduce_ex__(self, protocol):
        state = self.__getstate__() if hasattr(self, "__getstate__") else self.__dict__
        return _rebuild, (*type(self).__bases__,), state


@functools.cache
def _composed(kind: type[Swapped], base: type[nn.Module]) -> type[nn.Module]:
    return type(f"Tempo{base.__name__}", (kind, base), {"__module__": base.__module__})


def _rebuild(kind: type[Swapped], base: type[nn.Module]) -> nn.Module:
    load_ops()  # for a pickle in a program that has not called swap
    return base.__new__(_composed(kind, base))


def name_of_class(module: nn.Module) -> str:
    """The name of a module's class, as it is without `put` and without FSDP2's fully_shard."""
    kind = type(module)
    while len(kind.__bases__) == 2 and _is_put_over(kind.__bases__[0]):
        kind = kind.__bases__[1]
    return kind.__name__


def _is_put_over(kind: type) -> bool:
    return issubclass(kind, Swapped) or kind.__module__.startswith("torch.distributed.fsdp")


def put(module: nn.Module, kind: type[Swapped], plan) -> None:
    """Makes `module` a `kind` over its own class, with `plan` as its `_temposcope`."""
    module.__class__ = _composed(kind, type(module))
    module._temposcope = plan


def take_away(module: nn.Module) -> None:
    """Undoes `put`; not for a module that got yet another class since, as FSDP does."""
    if issubclass(type(module).__bases__[0], Swapped):
        module.__class__ = type(module).__bases__[1]
        del module._temposcope
