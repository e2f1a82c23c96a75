"""An error keeps the frames through which it went: one that is kept, one that is handled, and the
one that a notebook has shown last."""
import sys

import torch
from asking import find_keepers, note, noted, say

errors = []


def step(x):
    activations = note(x + 1)
    raise ValueError("bad batch")


def cell():
    big = note(torch.zeros(1024))
    raise RuntimeError("in a cell")


try:
    step(torch.zeros(1024))
except ValueError as error:
    errors.append(error)
try:
    cell()
except RuntimeError:
    say(find_keepers(noted))
try:
    cell()
except RuntimeError as error:
    sys.last_value = error
say(find_keepers(noted))
