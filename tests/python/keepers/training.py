"""A training loop with a leak: predictions in a list. Parameters, gradients and the optimizer's
state have the names that the model gives them, though the optimizer lists them, too."""
import torch
from asking import find_keepers, note, noted, say
from torch import nn

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
model.ema = {name: value.detach().clone() for name, value in model.named_parameters()}
optimizer = torch.optim.AdamW(model.parameters())
history = []
for _ in range(2):
    logits = model(torch.ones(32, 64))
    loss = logits.mean()
    loss.backward()
    history.append(logits)  # the leak
    optimizer.step()
for tensor in history:
    note(tensor)
weight = model[0].weight
for tensor in (weight, weight.grad, optimizer.state[weight]["exp_avg"], model.ema["0.weight"]):
    note(tensor)
del tensor, weight
say(find_keepers(noted))
