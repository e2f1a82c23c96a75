"""Containers in containers, with keys and names of fields as the program writes them."""
import collections
import typing

import torch
from asking import find_keepers, note, noted, say


class Pair(typing.NamedTuple):
    first: object
    second: object


class Outputs(dict):
    """As a model of transformers gives them."""


class Batches(list):
    """A list with attributes."""


metrics = {"train": {}, "validation": collections.defaultdict(list)}
for _ in range(2):
    metrics["validation"]["logits"].append(note(torch.zeros(1024)))
pairs = {3: Pair(None, note(torch.zeros(1024)))}
waiting = collections.deque([note(torch.zeros(1024))])
chosen = {note(torch.zeros(1024))}
outputs = Outputs(logits=note(torch.zeros(1024)))
outputs.loss = note(torch.zeros(1024))
batches = Batches([note(torch.zeros(1024))])
batches.mean = note(torch.zeros(1024))
say(find_keepers(noted))
