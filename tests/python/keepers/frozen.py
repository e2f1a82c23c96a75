"""After gc.freeze() the garbage collector shows nothing, and names lead on."""
import gc

import torch
from asking import find_keepers, note, noted, say

kept = [note(torch.zeros(1024))]
gc.freeze()
say(find_keepers(noted))
