import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
left_head = nn.Linear(256, 65536).to(device)
right_head = nn.Linear(256, 65536).to(device)
optimizer = torch.optim.SGD([*left_head.parameters(), *right_head.parameters()])
for step in range(4):
    inputs = torch.randn(49152, 256, device=device)
    left = left_head(inputs)
    loss = left.mean()
    right = right_head(inputs)
    loss = loss + right.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
