"""Logits that a function caps before the loss. With "accuracy" something else reads them, too."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

model = nn.Sequential(nn.Embedding(32000, 256), nn.Linear(256, 32000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    tokens = torch.randint(32000, (8192,), device="cuda")
    logits = model(tokens)
    loss = F.cross_entropy(30 * torch.tanh(logits / 30), tokens)  # here
    if "accuracy" in sys.argv:
        correct = (logits.argmax(-1) == tokens).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
