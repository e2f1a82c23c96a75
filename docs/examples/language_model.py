import sys

import torch
from torch import nn

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 22
device = "cuda" if torch.cuda.is_available() else "cpu"
layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 12)
model = nn.Sequential(nn.Embedding(50257, 768), encoder, nn.Linear(768, 50257))
model.to(device).train()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    tokens = torch.randint(50257, (batch, 1024), device=device)
    with torch.autocast(device, torch.bfloat16):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
