"""A loss in chunks: the logits of a large vocabulary never exist as a whole.

A cross entropy of N tokens and V classes keeps the logits, their copy in float32, the log-softmax
and its gradient: up to 14 bytes for each of N x V values. In chunks that a checkpoint runs again,
N / 8 rows of them exist at a time. The outermost layer that makes the logits returns a promise of
them, which a cross entropy keeps chunk by chunk; any other use makes them as usual.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from ._swapped_class import Swapped

CHUNKS = 8
# Below these, logits are not what fills a GPU.
_SMALLEST_VOCABULARY = 8192
_LEAST_EXPANSION = 4  # classes for each feature


def is_head(module: nn.Module) -> bool:
    """Whether a module makes the logits of a vocabulary."""
    return (
        isinstance(module, nn.Linear)
        and module.out_features >= _SMALLEST_VOCABULARY
        and module.out_features >= _LEAST_EXPANSION * module.in_features
    )


class HeadPlan(NamedTuple):
    chunks: int = CHUNKS


class Head(Swapped):
    """[..., C] to a promise of [..., V] while it trains; to logits otherwise."""

    def forward(self, input):
        is_plain = type(self.weight) in (nn.Parameter, torch.Tensor)  # FSDP2 and TP shard others
        if not (self.training and torch.is_grad_enabled() and is_plain and input.dim() > 1):
            return super().forward(input)
        if torch.compiler.is_compiling():
            return super().forward(input)
        return PromisedLogits(super().forward, input, self.out_features, self._temposcope.chunks)


class PromisedLogits(torch.Tensor):
    """The logits that `head` makes of `features`, without memory of their own. What only changes
    their shape or type, or each logit alone, gives a promise again; a cross entropy is computed in
    chunks; all else gets the logits themselves."""

    @staticmethod
    def __new__(cls, head, features, classes, chunks, dtype=None):
        if dtype is None:
            is_cast = torch.is_autocast_enabled(features.device.type)
            dtype = torch.get_autocast_dtype(features.device.type) if is_cast else features.dtype
        return torch.Tensor._make_wrapper_subclass(
            cls,
            (*features.shape[:-1], classes),
            dtype=dtype,
            device=features.device,
            requires_grad=True,
        )

    def __init__(self, head, features, classes, chunks, dtype=None):
        self._head: Callable[[torch.Tensor], torch.Tensor] = head
        self._features: torch.Tensor = features  # [..., C], one row for each of the promise's
        self._chunks: int = chunks
        self._made: torch.Tensor | None = None

    def _like(
        self,
        features: torch.Tensor,
        dtype: torch.dtype | None = None,
        head: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> "PromisedLogits":
        return PromisedLogits(
            head or self._head, features, self.shape[-1], self._chunks, dtype or self.dtype
        )

    def make(self) -> torch.Tensor:
        """The logits, made once."""
        if self._made is None:
            self._made = self._head(self._features).to(self.dtype)
        return self._made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        keep = _KEPT.get(func)
        if keep is not None and args and isinstance(args[0], PromisedLogits):
            kept = keep(*args, **kwargs)
            if kept is not NotImplemented:
                return kept
        if func in _ATTRIBUTES:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        return func(*map(_made, args), **{name: _made(value) for name, value in kwargs.items()})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Code in C++ that meets a promise: autograd's and the profiler's."""
        kwargs = kwargs or {}
        return func(*map(_made, args), **{name: _made(value) for name, value in kwargs.items()})


def _made(value: object) -> object:
    if isinstance(value, PromisedLogits):
        return value.make()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_made, value))
    return value


# What asks about a tensor without its values.
_ATTRIBUTES = {
    getattr(torch.Tensor, name).__get__
    for name in ("shape", "dtype", "device", "requires_grad", "ndim", "layout", "is_cuda")
} | {torch.Tensor.size, torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.__len__}


# ---- what gives a promise again: rows are features' rows, so the same call goes to the features --


def _keep_flatten(logits, start_dim=0, end_dim=-1):
    end = end_dim % logits.dim()
    if end == logits.dim() - 1 and start_dim % logits.dim() != end:
        return NotImplemented
    return logits._like(logits._features.flatten(start_dim, end))


def _keep_view(logits, *shape):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list, torch.Size)):
        shape = tuple(shape[0])
    if not all(isinstance(size, int) for size in shape):
        return NotImplemented  # view(dtype)
    classes, rows = logits.shape[-1], logits.numel() // logits.shape[-1]
    known = 1
    for size in shape[:-1]:
        known *= size if size != -1 else 1
    if not shape or (shape[-1] != classes and not (shape[-1] == -1 and known == rows)):
        return NotImplemented
    return logits._like(logits._features.reshape(*shape[:-1], logits._features.shape[-1]))


def _keep_item(logits, index):
    """logits[..., :-1, :] and other parts of the rows."""
    index = index if isinstance(index, tuple) else (index,)
    if not all(item is Ellipsis or isinstance(item, (slice, int)) for item in index):
        return NotImplemented
    whole = slice(None)
    if Ellipsis in index:
        if index[-1] is not Ellipsis and index[-1] != whole:
            return NotImplemented
    elif len(index) == logits.dim() and index[-1] != whole:
        return NotImplemented
    return logits._like(logits._features[index])


def _keep_to(logits, *args, **kwargs):
    dtype = kwargs.get("dtype", args[0] if args else None)
    if not isinstance(dtype, torch.dtype) or set(kwargs) - {"dtype"} or len(args) > 1:
        return NotImplemented
    return logits._like(logits._features, dtype)


def _keep_each(func: Callable) -> Callable:
    """A function of each logit alone, such as a soft cap: c * tanh(logits / c)."""

    def keep(logits, *numbers, **kwargs):
        if kwargs or not all(type(number) in (int, float) for number in numbers):
            return NotImplemented
        head, dtype = logits._head, logits.dtype

        def head_and_more(features):
            return func(head(features).to(dtype), *numbers)

        return logits._like(logits._features, head=head_and_more)

    return keep


def _keep_cross_entropy(
    logits,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """As torch's, of [N, V] and the classes [N]: equal up to the order of a sum."""
    is_plain = logits.dim() == 2 and target.dim() == 1 and not target.is_floating_point()
    if not is_plain or size_average is not None or reduce is not None:
        return NotImplemented
    dtype = logits.dtype

    def loss_of(features, classes):
        return F.cross_entropy(
            logits._head(features).to(dtype),
            classes,
            weight,
            ignore_index=ignore_index,
            reduction="none" if reduction == "none" else "sum",
            label_smoothing=label_smoothing,
        )

    losses = [
        checkpoint(loss_of, features, classes, use_reentrant=False)
        for features, classes in zip(
            logits._features.chunk(logits._chunks), target.chunk(logits._chunks), strict=True
        )
    ]
    if reduction == "none":
        return torch.cat(losses)
    total = torch.stack(losses).sum()
    if reduction == "sum":
        return total
    counts = target != ignore_index
    return total / (counts.sum() if weight is None else (weight[target * counts] * counts).sum())


_KEPT: dict[Callable, Callable] = {
    torch.Tensor.flatten: _keep_flatten,
    torch.flatten: _keep_flatten,
    torch.Tensor.view: _keep_view,
    torch.Tensor.reshape: _keep_view,
    torch.reshape: _keep_view,
    torch.Tensor.__getitem__: _keep_item,
    torch.Tensor.contiguous: lambda logits: logits,
    torch.Tensor.float: lambda logits: logits._like(logits._features, torch.float32),
    torch.Tensor.to: _keep_to,
    F.cross_entropy: _keep_cross_entropy,
} | {
    func: _keep_each(func)
    for func in (
        torch.tanh,
        torch.Tensor.tanh,
        torch.mul,
        torch.Tensor.mul,
        torch.Tensor.__mul__,
        torch.Tensor.__rmul__,
        torch.div,
        torch.Tensor.div,
        torch.Tensor.__truediv__,
    )
}
