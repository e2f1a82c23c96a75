"""48 frozen layers, each with an adapter whose dropout keeps an output and a mask."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(512, 512).requires_grad_(False)
        self.drop = nn.Dropout(0.1)
        self.down = nn.Linear(512, 4, bias=False)
        self.up = nn.Linear(4, 512, bias=False)

    def forward(self, x):
        return torch.relu(self.base(x) + self.up(self.down(self.drop(x))))  # here


net = nn.Sequential(*(Block() for _ in range(48))).cuda()
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for _ in range(5):
    net(torch.randn(4096, 512, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
