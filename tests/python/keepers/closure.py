"""A function keeps the variables that it uses of the function around it."""
import torch
from asking import find_keepers, note, noted, say

callbacks = []


def register(x):
    features = note(x * 2)
    callbacks.append(lambda: features.mean())


def bias(x, extra=note(torch.zeros(1024)), *, factor=note(torch.zeros(1024))):
    return x * factor + extra


register(torch.zeros(1024))
bias.cache = [note(torch.zeros(1024))]
say(find_keepers(noted))
