"""Generators: that of a `for`, which no name leads to, and one in a variable."""
import torch
from asking import find_keepers, note, noted, say


def batches():
    pool = note(torch.zeros(1024))
    for i in range(4):
        yield pool[i].sum()


for loss in batches():
    say(find_keepers(noted))
    break
it = batches()
next(it)
say(find_keepers(noted))
