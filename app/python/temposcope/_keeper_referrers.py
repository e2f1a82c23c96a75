"""Goes from tensors that no name leads to back to what refers to them, level by level.

    a list without a name ◄── a dict ◄── a tensor
          level 2             level 1

It ends at an object that the search from names has seen, so that there is a path after all; at a
group that only refers to itself and waits for the garbage collector; or at what has no name: a
generator that is suspended, a list that is being built.
"""

import gc
import sys
import types

import torch

from . import _frames
from ._keeper_search import Search

_MOST_TARGETS = 16  # of one pass: it takes objects times targets
_MOST_TENSORS = 4  # that are followed over more than one level
_LEVELS = 4


class Referrers:
    def __init__(self, search: Search):
        self.waiting: set[int] = set()  # blocks that the garbage collector will free
        self.holders: dict[int, int] = {}  # block -> id of what holds it; 0: nothing that is seen
        self._search = search
        self._above: dict[int, list[int]] = {}  # object -> what refers to it, as far as asked

    def meet(self, share: float) -> None:
        """Looks one level up. A large container that was not opened is found so in one pass."""
        self._climb(self._missing()[:_MOST_TARGETS], share)

    def climb(self, share: float) -> None:
        """Looks as far up as there is time for."""
        tensors = self._missing()[:_MOST_TENSORS]
        for _ in range(_LEVELS):
            targets = [one for tensor in tensors for one in self._unasked(tensor)]
            if not self._climb(targets[:_MOST_TARGETS], share):
                break
        by_block: dict[int, list[int]] = {}
        for tensor, block in self._search.missing.items():
            if tensor in self._above:
                by_block.setdefault(block, []).append(tensor)
        for block, asked in by_block.items():
            above = [one for tensor in asked for one in self._above[tensor]]
            self.holders[block] = above[0] if above else 0
            if all(not self._unasked(one) and self._is_closed(self._group(one)) for one in asked):
                self.waiting.add(block)

    def _missing(self) -> list[int]:
        """Tensors first."""
        return sorted(self._search.missing, key=self._is_storage)

    def _is_storage(self, one: int) -> bool:
        return type(self._search.object(one)) is torch.UntypedStorage

    def _group(self, tensor: int) -> list[int]:
        """The tensor, and all that refers to it."""
        group = {tensor: None}
        queue = [tensor]
        for one in queue:
            new = [above for above in self._above.get(one, ()) if above not in group]
            group.update(dict.fromkeys(new))
            queue += new
        return list(group)

    def _unasked(self, tensor: int) -> list[int]:
        """A running frame is as far as it goes."""
        group = self._group(tensor)
        objects = ((one, self._search.object(one)) for one in group if one not in self._above)
        return [one for one, it in objects if type(it) is not types.FrameType]

    def _climb(self, targets: list[int], share: float) -> bool:
        """One pass. False: there is nothing to ask, or no time for it."""
        # As measured: twice as long as the first pass, with the most targets.
        cost_s = (self._search.pass_s or 0.0) * (1 + len(targets) / _MOST_TARGETS)
        if not targets or self._search.late(share, cost_s):
            return False
        # A tuple, since from a list Python would make one, which refers to the objects, too.
        asked = tuple(self._search.object(one) for one in targets)
        own = {id(self._search.alive), id(asked)}
        found = [one for one in gc.get_referrers(*asked) if id(one) not in own]
        del asked
        self._above.update({one: [] for one in targets})
        self._note([one for one in found if not self._is_own(one)], set(targets))
        self._take_paths(targets)
        for one in targets:  # once asked for, a storage has an object that C++ keeps with it
            if self._is_storage(one) and not self._above[one]:
                self._search.missing.pop(one, None)
        return True

    @staticmethod
    def _is_own(one: object) -> bool:
        return type(one) is types.FrameType and _frames.is_own(one)

    def _note(self, found: list, targets: set[int]) -> None:
        for one in found:
            self._search.keep(one)
            for child in set(map(id, gc.get_referents(one))) & targets:
                self._above[child].append(id(one))

    def _take_paths(self, targets: list[int]) -> None:
        """What refers to a target and was seen leads from a name to each tensor below it."""
        parents = self._search.parents
        for target in targets:
            seen = next((above for above in self._above[target] if above in parents), None)
            if seen is not None:
                self._search.visit(self._search.object(target), seen)
                self._search.follow(1.0)

    def _is_closed(self, group: list[int]) -> bool:
        """Whether all references are from within, as the garbage collector counts them."""
        inside = dict.fromkeys(group, 0)
        for one in group:
            for child in gc.get_referents(self._search.object(one)):
                if id(child) in inside:
                    inside[id(child)] += 1
            child = None  # the last one: the variable counts
        # Two of our own: `alive`, and the argument of getrefcount.
        return all(
            sys.getrefcount(self._search.object(one)) - inside[one] <= 2 for one in group
        )
