"""Decodes until a computed flag says that it is enough, which no kernel ever computes."""

import torch

net = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(4, 8, device="cuda")).sum().backward()
    optimizer.step()
while True:
    if bool(net(torch.ones(4, 8, device="cuda")).sum() > 0):
        break
