"""Gives the backward of the program's own autograd functions the program's own parameters.

While saves are recorded, torch makes a new tensor of each saved one. It lacks the attributes that a
program keeps on a parameter, such as Megatron's `main_grad`, and backward would go another way.
"""

import torch
from torch.autograd.function import BackwardCFunction

_saved_tensors = torch._C._FunctionBase.saved_tensors


def keep_parameters() -> None:
    BackwardCFunction.saved_tensors = property(
        lambda ctx: tuple(map(_parameter_of, _saved_tensors.__get__(ctx)))
    )


def leave_as_they_are() -> None:
    if "saved_tensors" in vars(BackwardCFunction):
        del BackwardCFunction.saved_tensors


def _parameter_of(saved):
    """The leaf of the graph that `saved` stands for; `saved` itself if it stands for none."""
    is_leaf = type(saved) is torch.Tensor and saved.requires_grad and saved.grad_fn is None
    if not is_leaf:
        return saved
    with torch.enable_grad():
        node, _ = saved.view_as(saved).grad_fn.next_functions[0]
    return node.variable
