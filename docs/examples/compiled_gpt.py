"""A small GPT, compiled.

temposcope run --gpu h100-sxm -- python compiled_gpt.py
temposcope run --gpu h100-sxm -o eager.tscope -- python compiled_gpt.py eager
temposcope compare eager.tscope compiled_gpt.tscope --by line
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, TOKENS, WORDS, BATCH = 768, 12, 4, 1024, 50304, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), wide, nn.GELU(), narrow)

    def forward(self, x):
        heads = (*x.shape[:2], HEADS, WIDTH // HEADS)
        parts = self.qkv(self.norm(x)).split(WIDTH, dim=2)
        query, key, value = (part.view(heads).transpose(1, 2) for part in parts)
        context = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(context.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


model = GPT().cuda()
loss_of = model if "eager" in sys.argv else torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(4):
    ids = torch.randint(WORDS, (BATCH, TOKENS), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.memory_stats()["requested_bytes.all.peak"])
