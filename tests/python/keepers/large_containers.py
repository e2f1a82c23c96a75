"""A list of many tensors beside larger containers, of which those of numbers are not opened."""
import torch
from asking import find_keepers, note, noted, say

samples = [{"id": i, "x": [i, i + 1]} for i in range(100_000)]
index = {i: str(i) for i in range(100_000)}
cache = [torch.zeros(1) for _ in range(3000)]
cache[2500] = note(torch.zeros(1024))
deep = [[i] for i in range(100_000)]
deep[77].append({"x": note(torch.zeros(1024))})
say(find_keepers(noted))
