"""Ranks that tell each other what sizes their tensors have.

    torchrun --nproc-per-node N ranks.py broadcast|pairs|send|objects|stages|deadlock
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

CASE = sys.argv[1]
WIDTH = 256
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()


def rows_by_broadcast() -> torch.Tensor:
    """Rank 0 says how many rows there are."""
    size = torch.tensor([512] if rank == 0 else [0], device="cuda")
    dist.broadcast(size, 0)
    total = size.clone()
    dist.all_reduce(total)
    assert int(total) == world_size * int(size)
    return torch.zeros(int(size), WIDTH, device="cuda")


def rows_by_pairs() -> torch.Tensor:
    """The first rank of each pair says so: that of another pair may not run."""
    size = torch.tensor([512] if rank % 2 == 0 else [0], device="cuda")
    dist.broadcast(size, group=pair, group_src=0)
    return torch.zeros(int(size), WIDTH, device="cuda")


def rows_by_send() -> torch.Tensor:
    """A pipeline whose stages send the shape before the tensor."""
    if rank == 0:
        return torch.zeros(512, WIDTH, device="cuda")
    shape = torch.empty(2, dtype=torch.int64, device="cuda")
    dist.recv(shape, rank - 1)
    x = torch.empty(shape.clone().tolist(), device="cuda")
    dist.recv(x, rank - 1)
    return x


def rows_by_objects() -> torch.Tensor:
    if rank == 0:
        return torch.zeros(512, WIDTH, device="cuda")
    said = [None]
    dist.recv_object_list(said, rank - 1)
    return torch.zeros(said[0]["rows"], WIDTH, device="cuda")


def rows_of_stage() -> torch.Tensor:
    """Four stages, two ranks each."""
    x = torch.zeros(64, WIDTH, device="cuda")
    if stage > 0:
        dist.recv(x, rank - 2)
    return x


def rows_that_never_come() -> torch.Tensor:
    size = torch.zeros(1, dtype=torch.int64, device="cuda")
    dist.recv(size, 1 - rank)
    return torch.zeros(int(size) + 1, WIDTH, device="cuda")


def pass_on(y: torch.Tensor) -> None:
    if CASE == "stages" and stage < 3:
        dist.send(y.detach(), rank + 2)
    if CASE == "send" and rank < world_size - 1:
        dist.send(torch.tensor(y.shape, device="cuda"), rank + 1)
        dist.send(y.detach(), rank + 1)
    if CASE == "objects" and rank < world_size - 1:
        dist.send_object_list([{"rows": len(y)}], rank + 1)


stage = rank // 2
if CASE == "pairs":
    groups = [dist.new_group([first, first + 1]) for first in range(0, world_size, 2)]
    pair = groups[stage]
depth = (1, 6, 2, 1)[stage] if CASE == "stages" else 1
net = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(depth))).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rows = {
    "broadcast": rows_by_broadcast,
    "pairs": rows_by_pairs,
    "send": rows_by_send,
    "objects": rows_by_objects,
    "stages": rows_of_stage,
    "deadlock": rows_that_never_come,
}[CASE]
for _ in range(4):
    x = rows()
    y = net(x)
    pass_on(y)
    y.pow(2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("rank", rank, "has", len(x), "rows")
dist.destroy_process_group()
