"""A data set of 1 GiB lies on the GPU before the first step."""

import torch
from torch import nn

data = [torch.randn(1024, 1024, device="cuda") for _ in range(256)]
net = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(5):
    net(data[i]).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
