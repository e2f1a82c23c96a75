"""Trains without a look at values, and reads some in the end: the same sum three times."""

import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    model(torch.randn(4, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print([int(torch.full((4, 6), 1, device="cuda").sum()) for _ in range(3)])
