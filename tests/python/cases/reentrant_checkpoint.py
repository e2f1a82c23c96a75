"""No input of the checkpoint needs a gradient, so nothing in it is trained."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

body = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU()).cuda()
head = nn.Linear(1024, 10).cuda()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=True))  # here


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    net(torch.randn(4096, 1024, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
