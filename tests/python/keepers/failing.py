"""A defect of the search is a sentence, and no error of the program."""
import torch
from asking import find_keepers, note, noted, say

from temposcope import _keeper_graph


def fail(self):
    raise KeyError("a defect")


kept = note(torch.zeros(1024))
note(torch.zeros(1024))
_keeper_graph.Graphs.read = fail
found = find_keepers(noted)
print(found[0].failure.replace("\n", " ").partition(" in ")[0])
print([block.verdict for block in found])
