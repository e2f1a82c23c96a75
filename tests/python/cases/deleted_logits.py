"""The logits are deleted once the loss is known: nothing is held past its last use."""

import torch
from torch import nn

layer = nn.TransformerEncoderLayer(512, 8, 2048, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 4)
model = nn.Sequential(nn.Embedding(30522, 512), encoder, nn.Linear(512, 30522)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    tokens = torch.randint(30522, (64, 512), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())  # here
        del logits
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
