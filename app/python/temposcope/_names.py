"""Paths of modules and names of parameters, for models that are found while they run."""

import itertools
import weakref
from typing import NamedTuple

import torch

from ._swapped_class import name_of_class

# The name that a wrapper gives to the module in it.
_WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_WRAPPED_MODEL = "module"  # of DistributedDataParallel
# In front of the names of parameters that no model has, as far as is known.
OF_OPTIMIZER = "param_groups"


def _unwrapped(name: str) -> str:
    parts = name.split(".")
    while parts and parts[0] in (*_WRAPPED, _WRAPPED_MODEL):
        parts.pop(0)
    return ".".join(part for part in parts if part not in _WRAPPED)


def inner_model(model: torch.nn.Module) -> torch.nn.Module:
    """The module in DistributedDataParallel and the like, which have it as their only child."""
    while True:
        children = list(model.named_children())
        if len(children) != 1 or children[0][0] not in (*_WRAPPED, _WRAPPED_MODEL):
            return model
        model = children[0][1]


class _Model(NamedTuple):
    ref: weakref.ref
    prefix: str  # in front of the names of its modules
    own_name: str  # of its class, and a number where a model of that class lives already


class Names:
    """The modules of the main model have the names that it gives them ("encoder.layer.0"). Those of
    a further model have its class in front ("Discriminator.main.0")."""

    def __init__(self):
        self._paths: dict[int, tuple[weakref.ref, bytes]] = {}
        self._parameters: dict[int, tuple[weakref.ref, str]] = {}
        self._models: list[_Model] = []

    def models(self) -> list[tuple[torch.nn.Module, str]]:
        """The models that live, each with what stands in front of the names of its modules."""
        known = ((known.ref(), known.prefix) for known in self._models)
        return [(model, prefix) for model, prefix in known if model is not None]

    def prefix(self, model: torch.nn.Module) -> str | None:
        """None: it was not added."""
        return next((prefix for known, prefix in self.models() if known is model), None)

    def knows(self, module: torch.nn.Module) -> bool:
        found = self._paths.get(id(module))
        return found is not None and found[0]() is module

    def path(self, module: torch.nn.Module) -> bytes | None:
        """None: it belongs to no model so far."""
        found = self._paths.get(id(module))
        return found[1] if found is not None and found[0]() is module else None

    def is_main(self, model: torch.nn.Module) -> bool:
        return any(known is model and prefix == "" for known, prefix in self.models())

    @property
    def has_main(self) -> bool:
        return any(prefix == "" for _, prefix in self.models())

    def make_main(self, model: torch.nn.Module) -> bool:
        """Renames a model that was beside the main one so far. False: it is part of another."""
        known = next((known for known in self._models if known.ref() is model), None)
        if known is None:
            return False
        self._models.remove(known)
        for module in model.modules():
            self._paths.pop(id(module), None)
        for parameter in model.parameters():
            self._parameters.pop(id(parameter), None)
        self.add_model(model)
        return True

    def add_model(self, model: torch.nn.Module, may_be_main: bool = True) -> None:
        """The first that may be it and has parameters is the main one."""
        self._models = [known for known in self._models if known.ref() is not None]
        own_name = self._free_name(name_of_class(inner_model(model)))
        has_parameters = next(model.parameters(), None) is not None
        is_main = may_be_main and has_parameters and not self.has_main
        prefix = "" if is_main else own_name + "."
        self._models.append(_Model(weakref.ref(model), prefix, own_name))
        self._add_modules(model, own_name)

    def add_missing(self, module: torch.nn.Module) -> None:
        """Names a module that its model got after the model was named, or that is no child."""
        for model, prefix in self.models():
            if any(child is module for child in model.modules()):
                self._add_modules(model, prefix.rstrip(".") or name_of_class(model))
                return
        self._remember(module, name_of_class(module).encode())

    def parameter(self, tensor: torch.Tensor) -> str | None:
        found = self._parameters.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def common(self, parameters) -> str:
        """What the names of all have in front, in whole parts: "layers.3" of "layers.3.a.weight"
        and "layers.3.b.weight"; of one its name."""
        names = [(self.parameter(one) or "").split(".") for one in parameters]
        parts = itertools.takewhile(lambda part: len(set(part)) == 1, zip(*names))
        return ".".join(part[0] for part in parts)

    def add_parameter(self, tensor: torch.Tensor, name: str) -> None:
        self._parameters[id(tensor)] = (weakref.ref(tensor), name)

    def _add_modules(self, model: torch.nn.Module, own_name: str) -> None:
        prefix = self.prefix(model)
        for name, module in model.named_modules():
            if not self.knows(module):
                path = prefix + _unwrapped(name) if name else own_name
                self._remember(module, path.rstrip(".").encode() or own_name.encode())
        for name, parameter in model.named_parameters():
            if (self.parameter(parameter) or OF_OPTIMIZER).startswith(OF_OPTIMIZER):
                self.add_parameter(parameter, prefix + _unwrapped(name))

    def _remember(self, module: torch.nn.Module, path: bytes) -> None:
        self._paths[id(module)] = (weakref.ref(module), path)

    def _free_name(self, name: str) -> str:
        taken = {known.own_name for known in self._models}
        free, number = name, 1
        while free in taken:
            number += 1
            free = f"{name}#{number}"
        return free
