"""A small GPT with a tied embedding, compiled in the mode of the first argument, or for dynamic
shapes. Prints what torch counts in the last two of its six steps."""

import sys

import counted
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, TOKENS, VOCABULARY, BATCH = 128, 4, 2, 64, 512, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        heads = (batch, tokens, HEADS, WIDTH // HEADS)
        parts = self.inputs(self.first_norm(x)).split(WIDTH, dim=2)
        query, key, value = (part.view(heads).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.second_norm(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def main(mode: str) -> None:
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    dynamic = mode == "dynamic"
    run = torch.compile(model, mode=None if dynamic else mode, dynamic=dynamic or None)
    for step in range(counted.STEPS):
        counted.begin(step)
        tokens = TOKENS - 8 * (step % 4) if dynamic else TOKENS
        ids, labels = torch.randint(0, VOCABULARY, (2, BATCH, tokens)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(ids, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    counted.tell(graphs=torch._dynamo.utils.counters["stats"]["unique_graphs"])


main(sys.argv[1])
