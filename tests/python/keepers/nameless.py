"""Values without a name: in a list that is being built, and on a line that runs."""
import torch
from asking import find_keepers, note, noted, say


def ask(_):
    say(find_keepers(noted))


def train():
    [note(torch.zeros(1024)) if i < 2 else ask(i) for i in range(3)]
    return note(torch.zeros(1024)), say(find_keepers(noted))


train()
