"""Trains, and reads nothing from the GPU."""

import torch

net = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(3):
    net(torch.ones(4, 8, device="cuda")).sum().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
