"""Which modules of a model are its layers: the blocks that it is a stack of."""

from collections import Counter
from collections.abc import Iterator

import torch.nn as nn
from torch.nn.parameter import is_lazy

from ._names import inner_model

_LISTS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


def layers_of(model: nn.Module) -> Iterator[nn.Module]:
    """In the order of the model: of T5 the blocks of the encoder, then those of the decoder; of a
    ResNet the blocks of all its stages."""
    blocks = _blocks_of(model)
    if any(map(_is_stage, blocks)):
        blocks = set()
    for child in model.children():
        if child in blocks:
            yield child
        else:
            yield from layers_of(child)


def _blocks_of(module: nn.Module) -> set[nn.Module]:
    """What a list holds, where most of it is of one class that has modules in it. So the list of a
    block's different parts is none."""
    if not isinstance(module, _LISTS):
        return set()
    composed = [child for child in module.children() if next(child.children(), None) is not None]
    classes = Counter(type(inner_model(child)) for child in composed)
    most = max(classes.values(), default=0)
    is_stack = 2 * most > len(module) and (most > 1 or isinstance(module, nn.ModuleList))
    return set(composed) if is_stack else set()


def _is_stage(block: nn.Module) -> bool:
    """Whether most of it is a stack of blocks alone. A block may hold a list of norms, or one of
    wrapped projections with activations between them, as of LoRA."""
    stacks = [(holder, _blocks_of(holder)) for holder in (block, *block.children())]
    pure = [blocks for holder, blocks in stacks if blocks == set(holder.children())]
    inner = {part for blocks in pure for part in blocks}
    return bool(inner) and 2 * sum(map(_num_parameters, inner)) >= _num_parameters(block)


def _num_parameters(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters() if not is_lazy(each))
