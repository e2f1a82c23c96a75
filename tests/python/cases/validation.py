"""A model that is validated once, in the first of the recorded steps."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(512)
        self.up = nn.Linear(512, 2048)
        self.down = nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))  # here


model = nn.Sequential(*(Block() for _ in range(6)), nn.Linear(512, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    x = torch.randn(4096, 512, device="cuda")
    loss = F.cross_entropy(model(x), torch.randint(1000, (4096,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 0:
        with torch.no_grad():
            F.cross_entropy(model(x), torch.zeros(4096, dtype=torch.long, device="cuda"))
