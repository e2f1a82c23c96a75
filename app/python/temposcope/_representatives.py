"""Which other ranks a virtual run needs, because their memory differs from this rank's."""

import gc
import sys

import torch.distributed as dist


def representatives() -> list[int]:
    """One rank of each pipeline stage, and the one with the largest share of ZeRO's state. Empty:
    the first and the last rank stand for all."""
    if not dist.is_available() or not dist.is_initialized():
        return []
    stage = _class_in("torch.distributed.pipelining.stage", "_PipelineStageBase")
    zero = _class_in(
        "torch.distributed.optim.zero_redundancy_optimizer", "ZeroRedundancyOptimizer"
    )
    if stage is None and zero is None:
        return []
    ranks: set[int] = set()
    for thing in gc.get_objects():
        if stage is not None and issubclass(type(thing), stage):
            ranks.update(dist.get_process_group_ranks(thing.group or dist.group.WORLD))
        elif zero is not None and issubclass(type(thing), zero):
            ranks.add(_largest_share(thing))
    return sorted(ranks)


def _class_in(module: str, name: str) -> type | None:
    """None: the program has not imported it, so it has no object of it."""
    return getattr(sys.modules.get(module), name, None)


def _largest_share(optimizer) -> int:
    shares = [
        sum(parameter.numel() for group in groups for parameter in group["params"])
        for groups in optimizer._partition_parameters()
    ]
    ranks = dist.get_process_group_ranks(optimizer.process_group)
    return ranks[max(range(len(shares)), key=shares.__getitem__)]
