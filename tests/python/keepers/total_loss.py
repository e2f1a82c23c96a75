"""A loss that is summed up without torch.no_grad() keeps the graph of each step."""
import torch
from asking import find_keepers, note_outputs, noted, say
from torch import nn

model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))
note_outputs(model[0])


def evaluate():
    total_loss = 0
    for _ in range(3):
        loss = model(torch.randn(4, 8)).square().mean()
        total_loss += loss
    say(find_keepers(noted))


evaluate()
