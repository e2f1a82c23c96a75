"""The head and the loss run in chunks of the batch, each in a checkpoint."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

layer = nn.TransformerEncoderLayer(512, 8, 2048, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 4)
body = nn.Sequential(nn.Embedding(30522, 512), encoder).cuda()
head = nn.Linear(512, 30522).cuda()
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])


def loss_of(hidden, tokens):
    logits = head(hidden).flatten(0, 1)
    return nn.functional.cross_entropy(logits, tokens.flatten(), reduction="sum")


for _ in range(4):
    tokens = torch.randint(30522, (64, 512), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        hidden = body(tokens)  # here
        parts = zip(hidden.chunk(16), tokens.chunk(16), strict=True)
        losses = [checkpoint(loss_of, *part, use_reentrant=False) for part in parts]
        loss = sum(losses) / tokens.numel()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
