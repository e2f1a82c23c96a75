"""Each parameter is updated as soon as backward has its gradient: one gradient lives at a time."""

import torch
from torch import nn

net = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(12))).cuda()
optimizers = {p: torch.optim.AdamW([p], foreach=False) for p in net.parameters()}


def update(parameter):
    optimizers[parameter].step()  # here
    optimizers[parameter].zero_grad()


for parameter in net.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for _ in range(5):
    net(torch.randn(256, 2048, device="cuda")).mean().backward()
