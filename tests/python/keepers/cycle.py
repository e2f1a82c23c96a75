"""What only refers to itself waits for the garbage collector, and is not freed by the question."""
import gc
import weakref

import torch
from asking import find_keepers, note, noted, say


class Batch:
    def __init__(self):
        self.x = note(torch.zeros(1024))
        self.me = self


gc.disable()
ref = weakref.ref(Batch())
say(find_keepers(noted))
print("alive", ref() is not None, "collects", gc.isenabled())
gc.collect()
print("alive", ref() is not None)
