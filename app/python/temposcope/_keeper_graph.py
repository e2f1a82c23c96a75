"""What autograd saved, and which results of the program lead to it.

A result (`loss`) keeps its graph, and the nodes of the graph keep what they saved:

    loss ── NllLossBackward0 ── LogSoftmaxBackward0 ── ... ── AccumulateGrad ── a parameter
              saved: 5.59 GiB
"""

import collections
import gc
from typing import NamedTuple

import torch

from ._bare_look import is_a, label, mro_of, names_of, names_of_class
from ._keeper_search import TENSOR, TENSOR_BASE, Root, Search

_MOST_RESULTS = 64  # of a list of losses, those that were computed last
_MOST_INNER = 4  # results within the graph of another one, of which it is asked what they keep
_HOOKED = "saved by {} in a hook"


class Saved(NamedTuple):
    name: str  # of the node: "NllLossBackward0"
    holder: int  # id of the result whose graph has it; 0: none was found
    others: tuple[int, ...]  # ids of further results that keep it


class _Found(NamedTuple):
    name: str
    holder: int
    nodes: set[int]  # those that may have saved it


class Graph(NamedTuple):
    """That of one result."""

    steps: int  # of training, over which it reaches back
    is_whole: bool  # or was read in part


def _plain(name: str) -> str:
    """ "nllloss" of both NllLossBackward0 and aten::nll_loss_forward """
    name = name.rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return name.removesuffix("_forward").replace("_", "").lower()


class Graphs:
    """Reads the graphs of a search's results, the latest first.

    With `saved` (address of a block -> node or op that saved it) the recorder knows what was saved,
    and only the shape of the graphs is read: under its hooks SavedTensor.data raises, and while
    backward runs on several devices a node may be freed meanwhile. Without it the nodes are asked.
    Never by `_saved_*` or `saved_tensors`: those run hooks, and take a lock that the node's own
    backward holds.
    """

    def __init__(self, search: Search, saved: dict[int, str] | None):
        self.by_holder: dict[int, Graph] = {}
        self.is_whole = False  # all was read
        self._search = search
        self._asked = saved
        self._num_read = 0  # results of the search
        self._holders: dict[int, int] = {}  # id of a node -> the result that led to it first
        self._names: dict[int, str] = {}  # of node types, by id
        self._saved_names: dict[int, list[str]] = {}
        self._nodes_by_name: dict[str, _Found] = {}
        self._found: dict[int, _Found] = {}  # by block
        self._inner: dict[int, list[tuple[object, int]]] = {}  # holder -> (node, result) within
        self._alive: list = []  # nodes: their ids are theirs only as long as they live

    def read(self, share: float) -> None:
        """Those of the results that were found since the last time."""
        waiting: list[tuple[object, int]] = []
        self.is_whole = False
        while not self._search.late(share):
            if not waiting:
                results = self._search.results[self._num_read :]
                self._num_read += len(results)
                waiting = self._latest(results)
            if not waiting:
                self.is_whole = all(graph.is_whole for graph in self.by_holder.values())
                break
            node, result = waiting.pop()
            first = self._holders.get(id(node))
            if first is not None:
                self._inner.setdefault(first, []).append((node, result))
                continue
            self._read_graph(node, result, share)
            if not waiting:  # hooks may lead to other results, as those of a checkpoint do
                self._search.follow(share)
        self._take_those_of_recorder()
        self._tell_search(share)

    def close(self) -> None:
        """Refers to nothing of the program any more."""
        self._alive.clear()
        self._inner.clear()

    def _latest(self, results: list[int]) -> list[tuple[object, int]]:
        """The results with their nodes, the latest last."""
        found = []
        for result in results:
            node = TENSOR_BASE.grad_fn.__get__(self._search.object(result))
            if node is not None:
                found.append((type(node)._sequence_nr(node), -len(found), node, result))
        found.sort(key=lambda one: one[:2])
        return [(node, result) for _, _, node, result in found[-_MOST_RESULTS:]]

    def _read_graph(self, top, holder: int, share: float) -> None:
        uses: collections.Counter[int] = collections.Counter()
        self._holders[id(top)] = holder
        queue = collections.deque([top])
        is_whole = True
        while queue and (is_whole := not self._search.late(share)):
            node = queue.popleft()
            self._alive.append(node)
            self._read_node(node, holder)
            for after, _ in node.next_functions:
                if after is None:
                    continue
                if type(after) is torch._C._functions.AccumulateGrad:
                    uses[id(after)] += 1
                if id(after) not in self._holders:
                    self._holders[id(after)] = holder
                    queue.append(after)
        # Most parameters are used once a step.
        steps = sorted(uses.values())[len(uses) // 2] if uses else 0
        self.by_holder[holder] = Graph(steps, is_whole)

    def _read_node(self, node, holder: int) -> None:
        kind, name = type(node), self._name(node)
        if is_a(node, torch.autograd.function.BackwardCFunction):
            self._see_ctx(node, f"in ctx of {name}", holder)
        if self._asked is not None:
            found = self._nodes_by_name.setdefault(_plain(name), _Found(name, holder, set()))
            found.nodes.add(id(node))
            return
        if id(kind) not in self._saved_names:
            names = (name for cls in mro_of(kind) for name in names_of_class(cls))
            self._saved_names[id(kind)] = [n for n in names if n.startswith("_raw_saved_")]
        for attribute in self._saved_names[id(kind)]:
            try:
                raw = getattr(node, attribute)
            except RuntimeError:  # backward has freed it
                continue
            for saved in raw if type(raw) is tuple or type(raw) is list else (raw,):
                self._see_saved(saved, node, name, holder)

    def _see_ctx(self, node, where: str, holder: int) -> None:
        """What a function of the program's own has put into its `ctx`, which is its node."""
        names = names_of(node)
        for name, value in list(names.items()):
            self._search.add_root(value, Root("ctx", label(name), where, holder=holder))
        named = {id(names), *map(id, names.values())}
        for child in gc.get_referents(node):
            if id(child) not in named:
                self._search.add_root(child, Root("ctx", where=where, holder=holder))

    def _name(self, node) -> str:
        """By its type: an attribute that the program gave its ctx may be called `name`."""
        kind = type(node)
        if id(kind) not in self._names:
            self._names[id(kind)] = kind.name(node)
        return self._names[id(kind)]

    def _see_saved(self, saved, node, name: str, holder: int) -> None:
        try:
            data, unpack = saved.data, saved.unpack_hook
        except RuntimeError:  # it was freed, or hooks of C++ have packed it
            return
        if self._search.kind_of(data) == TENSOR:
            block = self._search.blocks.index_of(data)
            if block is not None:
                self._search.missing.pop(id(data), None)
                found = self._found.setdefault(block, _Found(name, holder, set()))
                found.nodes.add(id(node))
            return
        for packed in (data, unpack):
            root = Root("hook", where=_HOOKED.format(name), holder=holder)
            self._search.add_root(packed, root)

    def _take_those_of_recorder(self) -> None:
        """The node that saved a block, in the graph of the latest result that has such a node."""
        if not self._asked:
            return
        latest = _Found("", next(iter(self.by_holder), 0), set())
        for block, (address, _) in enumerate(self._search.blocks.asked):
            if name := self._asked.get(address):
                found = self._nodes_by_name.get(_plain(name), latest)
                self._found[block] = found._replace(name=found.name or name)

    def _tell_search(self, share: float) -> None:
        reached: dict[int, set[int]] = {}  # node of an inner result -> nodes of its graph
        for block, found in self._found.items():
            others = []
            for node, result in self._inner.get(found.holder, [])[:_MOST_INNER]:
                if id(node) not in reached:
                    reached[id(node)] = self._nodes_below(node, share)
                if reached[id(node)] & found.nodes:
                    others.append(result)
            self._search.saved[block] = Saved(found.name, found.holder, tuple(others))

    def _nodes_below(self, top, share: float) -> set[int]:
        found, queue = {id(top)}, [top]
        while queue and not self._search.budget.is_over(share):
            for after, _ in queue.pop().next_functions:
                if after is not None and id(after) not in found:
                    found.add(id(after))
                    queue.append(after)
        return found
