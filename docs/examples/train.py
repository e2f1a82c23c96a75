import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 12)
model = nn.Sequential(nn.Embedding(30522, 768), encoder, nn.Linear(768, 30522))
model.to(device).train()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    tokens = torch.randint(30522, (32, 512), device=device)
    with torch.autocast(device, torch.bfloat16):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
