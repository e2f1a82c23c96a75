"""FlexAttention with a causal mask within documents."""

import counted
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

BATCH, HEADS, TOKENS, HEAD = 2, 4, 512, 64
WIDTH = HEADS * HEAD
flex = torch.compile(flex_attention)
documents = (torch.arange(TOKENS) // 128).cuda()


def in_document(_batch, _head, query, key):
    return (query >= key) & (documents[query] == documents[key])


def with_distance(score, _batch, _head, query, key):
    return score + (key - query) * 0.01


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mask = create_block_mask(in_document, None, None, TOKENS, TOKENS, device="cuda")

    def forward(self, x):
        heads = (BATCH, TOKENS, HEADS, HEAD)
        parts = self.inputs(x).split(WIDTH, 2)
        query, key, value = (part.view(heads).transpose(1, 2) for part in parts)
        attended = flex(query, key, value, score_mod=with_distance, block_mask=self.mask)
        return self.output(attended.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))


model = Attention().cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(counted.STEPS):
    counted.begin(step)
    x = torch.randn(BATCH, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
counted.tell(scores=BATCH * HEADS * TOKENS * TOKENS * 2)
