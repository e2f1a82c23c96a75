"""AdamW's step makes a temporary for each parameter, all at once."""

import torch
from torch import nn

net = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(12))).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(5):
    net(torch.randn(256, 2048, device="cuda")).mean().backward()
    optimizer.step()  # here
    optimizer.zero_grad()
