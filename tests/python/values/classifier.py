"""A classifier of ten classes, and its accuracy."""

import torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.MaxPool2d(2), torch.nn.Flatten())
model.append(torch.nn.Linear(4 * 15 * 15, 10))
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    labels = torch.randint(0, 10, (8,), device="cuda")
    logits = model(torch.randn(8, 3, 32, 32, device="cuda"))
    torch.nn.functional.cross_entropy(logits, labels).backward()
    correct = (logits.argmax(1) == labels).sum()
    optimizer.step()
    optimizer.zero_grad()
