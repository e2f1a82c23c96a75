"""An optimizer of bitsandbytes, named by the first argument, for four linear layers."""

import sys

import bitsandbytes
import counted
import torch
from torch import nn

WIDTH, LAYERS = 1024, 4

model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).cuda()
optimizer = getattr(bitsandbytes.optim, sys.argv[1])(model.parameters(), lr=1e-3)
for step in range(counted.STEPS):
    counted.begin(step)
    model(torch.randn(64, WIDTH, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
states = {}  # by address: maps of the 8-bit code are shared
for state in optimizer.state.values():
    for value in state.values():
        if isinstance(value, torch.Tensor):
            states[value.data_ptr()] = value.nbytes, getattr(value, "is_paged", False)
counted.tell(
    on_device=sum(size for size, is_paged in states.values() if not is_paged),
    paged=sum(size for size, is_paged in states.values() if is_paged),
)
