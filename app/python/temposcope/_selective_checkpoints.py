"""Tells what selective checkpoints keep from forward to backward: the results of chosen ops.

They lie in a list of torch's (torch.utils.checkpoint), where no hook of saved tensors sees them.
"""

from collections.abc import Callable

import torch
from torch.utils import checkpoint

_WAY_OF_TORCH = getattr(checkpoint, "_VersionWrapper", object)
_tell: Callable[[torch.Tensor], Callable[[], None] | None] | None = None


class _Kept(_WAY_OF_TORCH):
    """An entry of that list."""

    def __init__(self, val) -> None:
        super().__init__(val)
        is_told = _tell is not None and isinstance(val, torch.Tensor)
        self._release = _tell(val) if is_told else None

    def __del__(self) -> None:
        if self._release is not None:
            self._release()


def follow(tell: Callable[[torch.Tensor], Callable[[], None] | None]) -> None:
    """`tell` hears of each tensor that is kept. What it returns is called when it is kept no
    longer."""
    global _tell
    _tell = tell
    if _WAY_OF_TORCH is not object:
        checkpoint._VersionWrapper = _Kept


def leave_as_they_are() -> None:
    global _tell
    _tell = None
    if getattr(checkpoint, "_VersionWrapper", None) is _Kept:
        checkpoint._VersionWrapper = _WAY_OF_TORCH
