"""A list keeps the prediction of each step: 64 MiB a step."""

import torch
from torch import nn

net = nn.Linear(1024, 16384).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
for _ in range(12):
    out = net(torch.randn(1024, 1024, device="cuda"))  # here
    out.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(out)
