"""The variables of running functions, outer ones too."""
import torch
from asking import find_keepers, note, noted, say


def ask(scores):
    say(find_keepers(noted))


def validate():
    predictions = []
    for _ in range(2):
        predictions.append(note(torch.zeros(1024)))
    ask(predictions[0])


validate()
