"""Weak references keep nothing."""
import weakref

import torch
from asking import find_keepers, note, noted, say

x = note(torch.zeros(1024))
seen = [weakref.ref(x)]
by_name = weakref.WeakValueDictionary(x=x)
say(find_keepers(noted))
