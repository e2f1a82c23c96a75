"""What forward puts into its module stays until the next forward, or for ever."""
import torch
from asking import find_keepers, note, noted, say
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
        self.all = []
        self.first = None

    def forward(self, x):
        y = note(self.linear(x))
        self.last = y
        self.all.append(note(y + 1))
        return y


net = nn.Sequential(Block(), Block())
with torch.no_grad():
    net(torch.zeros(32, 32))
say(find_keepers(noted))
