"""Names what FSDP2 makes of a model: the parameters that it gathers, their whole gradients, and the
buffers through which both go.

None belongs to the model while it exists: `parameters()` lists the shards.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence

import torch

from ._terms import Category

_PACKAGE = "torch.distributed.fsdp._fully_shard"
_MODULES = ("_fsdp_param", "_fsdp_param_group")
_Tell = Callable[[Sequence[torch.nn.Parameter], torch.Tensor, str, Category], None]
_tell: _Tell | None = None
_ways_of_torch: list[tuple[type, str, Callable]] = []


def follow(tell: _Tell) -> None:
    """`tell` hears of each such tensor: of which sharded parameters it is, the tensor, what stands
    behind their common name ("", ".grad" or ".all_gather_output"), and its category. In a program
    without FSDP2 this does nothing; it may be asked for again."""
    global _tell
    params, groups = (sys.modules.get(f"{_PACKAGE}.{name}") for name in _MODULES)
    if params is None or groups is None:
        return
    _tell = tell
    if not _ways_of_torch:
        _put(params.FSDPParam, "to_unsharded", _after(_tell_gathered))
        _put(params.FSDPParam, "to_accumulated_grad_if_needed", _after(_tell_gradient))
        _put(groups.FSDPParamGroup, "post_backward", _before(_tell_gradients))
        _put(groups.FSDPParamGroup, "post_backward", _after(_tell_reduced))
        _put(groups.FSDPParamGroup, "unshard", _after(_tell_gathering))


def leave_as_they_are() -> None:
    global _tell
    _tell = None
    while _ways_of_torch:
        kind, name, method = _ways_of_torch.pop()
        setattr(kind, name, method)


def _put(kind: type, name: str, wrapped: Callable[[Callable], Callable]) -> None:
    method = getattr(kind, name, None)
    if method is not None:  # else a version of torch without it
        _ways_of_torch.append((kind, name, method))
        setattr(kind, name, wrapped(method))


def _after(see: Callable[[object], None]) -> Callable[[Callable], Callable]:
    def wrap(method):
        @functools.wraps(method)
        def call(self, *args, **kwargs):
            result = method(self, *args, **kwargs)
            _see(see, self)
            return result

        return call

    return wrap


def _before(see: Callable[[object], None]) -> Callable[[Callable], Callable]:
    def wrap(method):
        @functools.wraps(method)
        def call(self, *args, **kwargs):
            _see(see, self)
            return method(self, *args, **kwargs)

        return call

    return wrap


def _see(see: Callable[[object], None], part: object) -> None:
    if _tell is None:
        return
    with contextlib.suppress(AttributeError):  # a version of torch that names its parts otherwise
        see(part)


def _tell_gathered(param) -> None:
    for tensor in [*param.all_gather_outputs, *getattr(param, "_unsharded_inner_tensors", ())]:
        _tell([param.sharded_param], tensor, "", Category.PARAMETER)


def _tell_gradient(param) -> None:
    whole = getattr(param, "_unsharded_param", None)
    for gradient in (getattr(whole, "grad", None), param.unsharded_accumulated_grad):
        if gradient is not None:
            _tell([param.sharded_param], gradient, ".grad", Category.GRADIENT)


def _tell_gradients(group) -> None:
    for param in group.fsdp_params:
        _tell_gradient(param)


def _tell_gathering(group) -> None:
    _tell_buffer(group, getattr(group, "_all_gather_result", None), "all_gather_output")


def _tell_reduced(group) -> None:
    context = group.comm_ctx
    newest = getattr(context, "reduce_scatter_states", ())[-1:]  # a list since torch 2.15
    state = newest[0] if newest else getattr(context, "reduce_scatter_state", None)
    _tell_buffer(group, state, "reduce_scatter_input")


def _tell_buffer(group, holder, name: str) -> None:
    buffer = getattr(holder, name, None)
    if buffer is not None:
        shards = [param.sharded_param for param in group.fsdp_params]
        _tell(shards, buffer, f".{name}", Category.WORKSPACE)
