"""Keeps the rows of which a product says so: sizes that nobody knows."""

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    scores = net(torch.ones(32, 64, device="cuda"))
    kept = scores[scores.int().sum(1).nonzero().flatten()]  # here
    (kept.sum() + scores.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", scores.sum().item())
