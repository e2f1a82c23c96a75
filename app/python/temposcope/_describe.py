"""Tells the recorder what tensors are: parameters, buffers, gradients, optimizer state, inputs."""

import ctypes
import gc
import math
import weakref
from collections.abc import Iterator

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import _recorder
from ._layers import layers_of
from ._names import OF_OPTIMIZER, Names
from ._recorder import Category
from ._swapped_class import name_of_class

_PRECISIONS = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
}
_DEEPEST_CONTAINER = 16
_DEEPEST_STATE = 2  # of a quantized parameter: its scales have scales
_LOSS_TYPES = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}


def tensors_in(value: object, name: str, depth: int = 0):
    """(name, tensor) of each tensor in nested lists, tuples and dicts, as far as a container that
    holds itself could go on for ever."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth == _DEEPEST_CONTAINER:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in(item, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            named = f"{name}.{index}" if name else f"input_{index}"
            yield from tensors_in(item, named, depth + 1)


def plain_tensors_in(tensor: object):
    """The tensor, or of one of a wrapper class (DTensor, quantized) the tensors in it."""
    if not isinstance(tensor, torch.Tensor):
        return
    if is_traceable_wrapper_subclass(tensor):
        parts, _ = tensor.__tensor_flatten__()
        for part in parts:
            yield from plain_tensors_in(getattr(tensor, part))
    elif tensor.layout == torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(
        tensor
    ):
        yield tensor


_recorder.set_inner_tensors(plain_tensors_in)


def describe(tensor: object, name: str, category: Category) -> None:
    for plain in plain_tensors_in(tensor):
        _recorder.describe(plain, name, category)


def _parts_of_quantized(parameter: torch.nn.Parameter) -> Iterator[tuple[str, torch.Tensor]]:
    """What a parameter of few bits keeps beside them, as bitsandbytes' does: scales, their own
    scales ("quant_state.state2.absmax"), tables of values."""
    if type(parameter) is torch.nn.Parameter:
        return
    found = [(name, value, 0) for name, value in vars(parameter).items()]
    while found:
        name, value, depth = found.pop()
        if isinstance(value, torch.Tensor):
            yield name, value
        elif depth < _DEEPEST_STATE and type(value).__name__.endswith("State"):
            inner = vars(value).items() if hasattr(value, "__dict__") else ()
            found += [(f"{name}.{key}", one, depth + 1) for key, one in inner]


def describe_living_models() -> None:
    """Those that live, before one of them has run: their parameters are known all the same. Of a
    module that is being copied nothing is there yet."""
    found = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    modules = [one for one in found if {"_modules", "_parameters", "_buffers"} <= vars(one).keys()]
    inner = {id(child) for module in modules for child in vars(module)["_modules"].values()}
    whole = {id(module) for module in modules}
    names = Names()
    for model in modules:
        children = map(id, filter(None, vars(model)["_modules"].values()))
        is_outermost = id(model) not in inner and whole.issuperset(children)
        if is_outermost and next(model.parameters(), None) is not None:
            names.add_model(model)
            describe_model(names, model, names.prefix(model))


def describe_model(names: Names, model: torch.nn.Module, prefix: str) -> None:
    layers = (names.path(layer) for layer in layers_of(model))
    types = ((names.path(module), name_of_class(module)) for module in model.modules())
    _recorder.add_modules(
        [path.decode() for path in layers if path is not None],
        {path.decode(): name for path, name in types if path is not None},
    )
    for name, buffer in model.named_buffers():
        describe(buffer, prefix + name, Category.PARAMETER)
    for name, parameter in model.named_parameters():
        own_name = names.parameter(parameter) or prefix + name
        describe(parameter, own_name, Category.PARAMETER)
        for part, tensor in _parts_of_quantized(parameter):
            describe(tensor, f"{own_name}.{part}", Category.PARAMETER)


class Described:
    """Which tensors a recording knows by their names: to ask costs less than to say it again."""

    def __init__(self):
        self._known: dict[int, tuple[weakref.ref, int]] = {}

    def is_new(self, tensor: torch.Tensor) -> bool:
        """Whether it was not asked for yet, or has another storage since."""
        try:
            storage = tensor.untyped_storage()._cdata
        except (RuntimeError, NotImplementedError):  # it has none of its own
            return True
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == storage:
            return False
        self._known[id(tensor)] = weakref.ref(tensor), storage
        return True


def describe_gradients(names: Names, described: Described, parameters) -> None:
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None and described.is_new(gradient):
            name = f"{names.parameter(parameter) or 'parameter'}.grad"
            describe(gradient, name, Category.GRADIENT)


def describe_optimizer(
    names: Names, described: Described, optimizer: torch.optim.Optimizer
) -> None:
    """Its parameters, as far as no model has them, and its state."""
    for group_index, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group["params"]):
            if names.parameter(parameter) is None:
                names.add_parameter(parameter, f"{OF_OPTIMIZER}.{group_index}.{index}")
                describe(parameter, names.parameter(parameter), Category.PARAMETER)
    for parameter, state in optimizer.state.items():
        of = names.parameter(parameter) if isinstance(parameter, torch.Tensor) else None
        for name, tensor in tensors_in(state, of or type(optimizer).__name__):
            if tensor is not parameter and described.is_new(tensor):
                describe(tensor, name, Category.OPTIMIZER_STATE)


def describe_inputs(args: object, kwargs: dict | None = None) -> None:
    """What goes into a model and was made by no recorded op of another model."""
    named = [*tensors_in(list(args), ""), *tensors_in(kwargs or {}, "")]
    for name, tensor in named:
        if tensor.grad_fn is None:
            describe(tensor, name, Category.INPUT)


def precision_of(model: torch.nn.Module) -> str:
    """"fp32", "bf16", ...; empty: it has no parameters of such a type."""
    types = (p.dtype for p in model.parameters() if p.is_floating_point())
    return _PRECISIONS.get(next(types, None), "")


def autocast_precision(device: str) -> str | None:
    """"amp-bf16" inside of torch.autocast."""
    if not torch.is_autocast_enabled(device):
        return None
    return f"amp-{_PRECISIONS.get(torch.get_autocast_dtype(device), 'other')}"


def batch_of(args: object, kwargs: dict | None = None) -> dict:
    """The batch size, and where token ids go in, the sequence length."""
    for _, tensor in [*tensors_in(kwargs or {}, ""), *tensors_in(list(args), "")]:
        if tensor.dim() == 0:
            continue
        is_tokens = tensor.dim() == 2 and not tensor.is_floating_point() and not tensor.is_nested
        return {"batch_size": tensor.size(0), "seq_len": tensor.size(1) if is_tokens else 0}
    return {}


def loss_of(roots: object) -> float:
    """The value that backward begins with, read without an op; NaN: not one number on the CPU."""
    root = roots[0] if isinstance(roots, (list, tuple)) and roots else roots
    number = _LOSS_TYPES.get(getattr(root, "dtype", None))
    if type(root) is not torch.Tensor or root.device.type != "cpu" or number is None:
        return math.nan
    if root.numel() != 1 or torch._C._functorch.is_functorch_wrapped_tensor(root):
        return math.nan
    return number.from_address(root.data_ptr()).value
