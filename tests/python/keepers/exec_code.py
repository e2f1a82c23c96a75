"""Code that exec runs has globals that belong to no module."""
import torch
from asking import find_keepers, note, noted, say

CODE = """
kept = [note(zeros(1024))]
say(find_keepers(noted))
"""
exec(CODE, {"note": note, "zeros": torch.zeros, "say": say, "find_keepers": find_keepers,
            "noted": noted})  # fmt: skip
