"""Globals that a function sets, attributes of classes, slots, what functools remembers."""
import functools

import torch
from asking import find_keepers, note, noted, say


class Store:
    items = {}


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


@functools.lru_cache
def table(n):
    return note(torch.zeros(n))


def run():
    global CACHE
    CACHE = note(torch.zeros(1024))
    Store.items["k"] = note(torch.zeros(1024))


run()
table(1024)
slots = Slots(note(torch.zeros(1024)))
later = functools.partial(table, note(torch.zeros(1024)))
say(find_keepers(noted))
