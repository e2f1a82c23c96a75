"""Autocast at a small batch: the weights are what takes the memory."""

import torch
from torch import nn

net = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4))).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    with torch.autocast("cuda", torch.float16):
        loss = net(torch.randn(256, 2048, device="cuda")).float().mean()  # here
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
