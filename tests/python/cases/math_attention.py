"""Grouped queries and a mask: of torch's attention backends only the one that keeps all scores
takes them. With the argument "repeat" the program repeats keys and values itself."""

import sys

import torch
from torch import nn

TOKENS = 2048
REPEATS = "repeat" in sys.argv


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(512, 512, bias=False)
        self.kv = nn.Linear(512, 256, bias=False)

    def forward(self, x, mask):
        q = self.q(x).view(1, -1, 8, 64).transpose(1, 2)
        k, v = self.kv(x).view(1, -1, 2, 2, 64).permute(2, 0, 3, 1, 4)
        if REPEATS:
            k, v = (x.repeat_interleave(q.size(-3) // x.size(-3), -3) for x in (k, v))
        attend = nn.functional.scaled_dot_product_attention
        y = attend(q, k, v, mask, enable_gqa=not REPEATS)  # here
        return y.transpose(1, 2).reshape(1, -1, 512)


net = Attention().cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
mask = torch.zeros(1, 1, TOKENS, TOKENS, device="cuda", dtype=torch.bfloat16)
for _ in range(5):
    x = torch.randn(1, TOKENS, 512, device="cuda", dtype=torch.bfloat16)
    net(x, mask).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
