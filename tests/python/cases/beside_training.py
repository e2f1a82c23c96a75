"""Memory runs out beside the training.

    beside_training.py outputs|gradients|checkpoint
"""

import io
import sys

import torch
from torch import nn
from torch.nn import functional as F

WORDS, WIDTH, TOKENS = 32768, 1024, 8192


def make_model() -> nn.Module:
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(4)]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, nn.Linear(WIDTH, WORDS)).cuda()


def batch() -> torch.Tensor:
    return torch.randint(WORDS, (TOKENS,), device="cuda")


def evaluate(model: nn.Module) -> torch.Tensor:
    total = torch.zeros((), device="cuda")
    for _ in range(60):
        total = total + F.cross_entropy(model(batch()), batch())
    return total


def load_copies() -> list:
    file = io.BytesIO()
    torch.save([torch.empty(1 << 28) for _ in range(3)], file)  # of 1 GiB each
    loaded = []
    for _ in range(20):
        file.seek(0)
        loaded.append(torch.load(file, map_location="cuda"))
    return loaded


model = make_model()
if sys.argv[1] == "checkpoint":
    load_copies()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    F.cross_entropy(model(batch()), batch()).backward()
    optimizer.step()
    optimizer.zero_grad()
if sys.argv[1] == "gradients":
    evaluate(model)
outputs = []
with torch.no_grad():
    for _ in range(60):
        outputs.append(model(batch()))
