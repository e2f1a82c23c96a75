"""Reads a truth value often in each step, in more steps than are recorded: train or infer."""

import sys

import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if sys.argv[1] == "train" else None
for _ in range(16):
    with torch.set_grad_enabled(optimizer is not None):
        y = model(torch.randn(4, 8, device="cuda"))
    for _ in range(300):
        bool(y[0, 0] > 0.5)
    if optimizer is not None:
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
print("done")
