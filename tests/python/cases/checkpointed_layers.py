"""Each layer runs in a checkpoint: what is left is the loss over a large vocabulary."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(512, 8, 2048, activation="gelu", batch_first=True)
            for _ in range(4)
        )

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


model = nn.Sequential(nn.Embedding(30522, 512), Encoder(), nn.Linear(512, 30522)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    tokens = torch.randint(30522, (32, 512), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())  # here
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
