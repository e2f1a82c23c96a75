"""Norms of a class of the program's own, which no technique replaces, and GELU as a function."""

import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024))

    def forward(self, x):
        return F.layer_norm(x, (1024,), self.weight)  # here


layers = [nn.Sequential(LayerNorm(), nn.Linear(1024, 1024)) for _ in range(6)]
model = nn.Sequential(nn.Linear(1024, 1024), *layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.randn(16384, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
