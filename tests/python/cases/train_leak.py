import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
layer = nn.TransformerEncoderLayer(512, 8, 2048, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 4)
model = nn.Sequential(nn.Embedding(30522, 512), encoder, nn.Linear(512, 30522))
model.to(device).train()
optimizer = torch.optim.AdamW(model.parameters())
history = []
for step in range(8):
    length = 256 + 37 * (step % 4)
    tokens = torch.randint(30522, (8, length), device=device)
    with torch.autocast(device, torch.bfloat16):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    history.append(logits)  # the leak
    optimizer.step()
    optimizer.zero_grad()
