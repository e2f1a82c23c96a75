"""Finds which tensors of the asked blocks can be reached from names of the program, and over what.

    roots                  variables of running frames, globals of the user's modules
      │ gc.get_referents   breadth first: one C call an object, which makes no `__dict__`
      ▼
    tensors                matched with the blocks by the address of their bytes

An object is remembered by its id and that of its parent, so a path is walked only for what was
found. The search goes until each block has a name or a share of the time is over. Names come first,
as 10^7 objects of a data set take seconds to look at and few of them lie between a name and a
tensor.
"""

import bisect
import collections
import gc
import heapq
import sys
import time
import types
from typing import NamedTuple

import torch

from . import _frames
from ._bare_look import is_a, loaded_modules, module_of_class, mro_of, names_of_module
from ._bare_look import subclasses_of

TENSOR_BASE = torch._C.TensorBase
_STORAGE = torch.UntypedStorage
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_ATOMS = (
    *(int, float, complex, str, bytes, bool, type(None), range, slice, property),
    *(types.CodeType, types.BuiltinFunctionType, types.ModuleType),
    *(types.GetSetDescriptorType, types.WrapperDescriptorType),
    *(torch.dtype, torch.device, torch.Size),
)
_LARGE = 4000  # elements of a container that waits until all else was looked at
_FEW = 64  # elements: of more it is asked first whether they are numbers and texts
_MOST_KEEPERS = 8  # of one block
_CLOCK_MASK = 63  # each 64th object the clock is looked at
_SECONDS_PER_OBJECT = 50e-9  # of a pass over all objects: twice what was measured
_SECONDS_PER_ELEMENT = 100e-9  # to see what is in a container

# How objects of a type are treated.
SKIPPED, PLAIN, CONTAINER, TENSOR, MODULE, CLASS = range(6)


class Budget:
    """Of processor time, so that a busy machine finds as much as an idle one."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._begin = time.thread_time()

    def is_over(self, share: float = 1.0, cost_s: float = 0.0) -> bool:
        """Whether this share of the time is over, or will be after what costs `cost_s`."""
        return time.thread_time() - self._begin + cost_s > share * self.seconds


class Blocks:
    """The blocks that were asked about: (address, bytes), as an allocator gives them out."""

    def __init__(self, blocks: list[tuple[int, int]]):
        self.asked = blocks
        self._sorted = sorted((address, size, i) for i, (address, size) in enumerate(blocks))

    def index_of(self, tensor: object) -> int | None:
        """Of the block in which its bytes are. Not data_ptr() of a tensor: that would copy a lazy
        clone. To ask what has no storage of its own takes a millisecond, for the error's text."""
        try:
            if type(tensor) is _STORAGE:
                if _STORAGE.device.__get__(tensor).type == "meta":  # torch warns: it has no bytes
                    return None
                address = _STORAGE.data_ptr(tensor)
            elif TENSOR_BASE.layout.__get__(tensor) is not torch.strided:
                return None
            else:
                address = torch._C._data_address(tensor)
        except Exception:
            return None
        found = bisect.bisect_right(self._sorted, (address, sys.maxsize, 0)) - 1
        if found < 0:
            return None
        begin, size, index = self._sorted[found]
        return index if address < begin + size else None


class Root(NamedTuple):
    """Where a path begins: a variable, or what has no name, as an exception that is handled.
    _keeper_roots.py finds them."""

    kind: str  # "global", "local", "library", "ctx", "hook", "error"
    name: str = ""  # of the variable
    where: str = ""  # "of train() at train.py:15", "the exception that is being handled"
    file: str = ""
    line: int = 0  # that a frame runs
    code: types.CodeType | None = None  # of the frame
    holder: int = 0  # of what autograd keeps: the tensor whose graph leads to it


def _tensor_classes() -> list[type]:
    found = [torch.Tensor]
    for cls in found:
        found += subclasses_of(cls)
    return list({id(cls): cls for cls in found}.values())


class Search:
    """What was found so far. `alive` is the only container that refers to objects of the program:
    all others hold ids, so that none of them looks like a keeper."""

    def __init__(self, blocks: Blocks, budget: Budget):
        self.blocks = blocks
        self.budget = budget
        self.alive: list = []
        self._places: dict[int, int] = {}  # of an object by its id, in `alive`
        self.parents: dict[int, int] = {}  # id of an object -> that of its parent, or of a root
        self.roots: dict[int, Root] = {}
        # (id of a tensor, id of its parent) for each block
        self.kept: list[list[tuple[int, int]]] = [[] for _ in blocks.asked]
        self.saved: dict[int, object] = {}  # what _keeper_graph.py knows of a block
        self.results: list[int] = []  # tensors that lead to a graph
        self.modules: list[int] = []
        self.missing: dict[int, int] = {}  # tensors without a name -> their block
        self.is_cut = False
        self.pass_s: float | None = None  # what a pass over all objects took
        self._tensor_classes = [*_tensor_classes(), _STORAGE]
        # By id, since a metaclass may have a __hash__ of its own.
        self._kinds = dict.fromkeys(map(id, _ATOMS), SKIPPED)
        self._kinds |= dict.fromkeys(map(id, (*SEQUENCES, *_DICTS)), CONTAINER)
        self._kinds |= dict.fromkeys(map(id, self._tensor_classes), TENSOR)
        self._closed: set[int] = set()  # classes of libraries
        self._named: set[int] = set()  # blocks of which no more keepers are looked for
        self._queue: collections.deque[int] = collections.deque()  # places in `alive`
        self._large: list[tuple[int, int]] = []  # (elements, place), a heap

    # ---- what was found

    def object(self, me: int):
        return self.alive[self._places[me]]

    def keep(self, one: object) -> None:
        """An id is that of one object only as long as the object lives."""
        if id(one) not in self._places:
            self._places[id(one)] = len(self.alive)
            self.alive.append(one)

    def kind_of(self, one: object) -> int:
        return self._kinds.get(id(type(one)), PLAIN)

    def unnamed(self) -> list[int]:
        """The blocks that nothing is known of."""
        return [i for i, kept in enumerate(self.kept) if not kept and i not in self.saved]

    def late(self, share: float, cost_s: float = 0.0) -> bool:
        """The same as Budget.is_over, and remembers that something was left out."""
        is_late = self.budget.is_over(share, cost_s)
        self.is_cut |= is_late
        return is_late

    # ---- roots

    def add_root(self, value: object, root: Root) -> None:
        if self.kind_of(value) != SKIPPED:
            self.roots[id(root)] = root
            self.visit(value, id(root))

    def close_modules(self) -> None:
        """The globals of modules count as seen: functions refer to them, and would lead to all
        that there is."""
        self.parents.update((id(names), 0) for names, _ in loaded_modules())

    def close_named(self) -> None:
        """No more keepers of blocks that have one."""
        self._named = {block for block, kept in enumerate(self.kept) if kept}

    # ---- the search

    def _sort(self, cls: type) -> int:
        mro = mro_of(cls)
        if any(base is type for base in mro):
            kind = CLASS
        elif any(base is torch.nn.Module for base in mro):
            kind = MODULE
        elif any(base is types.ModuleType for base in mro):
            kind = SKIPPED
        else:
            kind = PLAIN
        self._kinds[id(cls)] = kind
        return kind

    def visit(self, one: object, parent: int) -> None:
        me = id(one)
        kind = self._kinds.get(id(type(one)))
        if kind == SKIPPED:
            return
        if kind is None:
            kind = self._sort(type(one))
        if kind == TENSOR:
            self._see_tensor(one, parent)
        if me in self.parents or me in self._closed:
            return
        if kind == CLASS and not self._is_users(one):
            self._closed.add(me)
            return
        self.parents[me] = parent
        self.keep(one)
        if kind == TENSOR and type(one) is not _STORAGE:
            self._open_tensor(one)
        elif kind == MODULE:
            self.modules.append(me)
        if kind == CONTAINER and len(one) > _LARGE:
            heapq.heappush(self._large, (len(one), self._places[me]))
        else:
            self._queue.append(self._places[me])

    def _see_tensor(self, tensor: object, parent: int) -> None:
        """Even one that was seen before: it may have several keepers."""
        block = self.blocks.index_of(tensor)
        if block is None or block in self._named:
            return
        self.missing.pop(id(tensor), None)
        kept = self.kept[block]
        if len(kept) < _MOST_KEEPERS and (id(tensor), parent) not in kept:
            kept.append((id(tensor), parent))

    def _open_tensor(self, tensor) -> None:
        """What the garbage collector does not see. Only C getters: a subclass may override them."""
        is_leaf = TENSOR_BASE.is_leaf.__get__(tensor)
        if not is_leaf:
            self.results.append(id(tensor))
        # Of others torch warns that they have no gradient.
        may_have = TENSOR_BASE.requires_grad if is_leaf else TENSOR_BASE.retains_grad
        if may_have.__get__(tensor):
            self.visit(TENSOR_BASE.grad.__get__(tensor), id(tensor))
        layout = TENSOR_BASE.layout.__get__(tensor)
        if layout is torch.sparse_coo:
            self.visit(TENSOR_BASE._values(tensor), id(tensor))
            self.visit(TENSOR_BASE._indices(tensor), id(tensor))
        elif any(layout is compressed for compressed in _COMPRESSED):
            self.visit(TENSOR_BASE.values(tensor), id(tensor))

    @staticmethod
    def _is_users(cls: type) -> bool:
        """Whether a class may lead to something. Those of libraries are many."""
        try:
            module = module_of_class(cls)
        except AttributeError:
            return False
        if type(module) is not str:
            return False
        found = sys.modules.get(module)
        if module == "__main__" or not is_a(found, types.ModuleType):
            return module == "__main__"
        file = names_of_module(found).get("__file__")
        return type(file) is str and _frames.is_user_file(file)

    def follow(self, share: float) -> None:
        """Visits all that what was visited leads to, but for large containers."""
        num_opened = 0
        while self._queue:
            num_opened += 1
            if num_opened & _CLOCK_MASK == 0 and self.late(share):
                return
            place = self._queue.popleft()
            if not self._open(self.alive[place], share):
                self._queue.appendleft(place)  # a later phase has more time
                return

    def open_large(self, share: float) -> None:
        """Opens large containers, smallest first, while a tensor has no name. Nothing can stop the
        first look at one."""
        while self._large and self._lacks_names():
            if self.late(share, _SECONDS_PER_ELEMENT * self._large[0][0]):
                return
            self._open(self.alive[heapq.heappop(self._large)[1]], share)
            self.follow(share)

    def _open(self, one: object, share: float) -> bool:
        """Visits what an object refers to. False: the time is over."""
        # Most are atoms, or were seen: a call of visit for each of them would double the time.
        kinds, parents, me, num_visited = self._kinds, self.parents, id(one), 0
        for child in self._children(one):
            kind = kinds.get(id(type(child)))
            if kind == SKIPPED or kind != TENSOR and id(child) in parents:
                continue
            self.visit(child, me)
            num_visited += 1
            if num_visited & _CLOCK_MASK == 0 and self.late(share):
                return False
        return True

    def _lacks_names(self) -> bool:
        """Without a pass over all objects it is not known whether a tensor exists at all."""
        return bool(self.missing) or self.pass_s is None and bool(self.unnamed())

    def _children(self, one: object):
        kind = type(one)
        if kind is types.FrameType:  # the garbage collector sees nothing of one that runs
            return () if _frames.is_own(one) else _frames.locals_of(one).values()
        if self._kinds.get(id(kind)) == CONTAINER and len(one) > _FEW:
            return () if self._holds_atoms(one) else gc.get_referents(one)
        return gc.get_referents(one)

    def _holds_atoms(self, many) -> bool:
        """Asked in C: four times as fast as a loop. The keys of a dict may be tensors, too."""
        kinds = set(map(id, map(type, many)))
        if is_a(many, dict):
            kinds |= set(map(id, map(type, dict.values(many))))
        return all(self._kinds.get(kind) == SKIPPED for kind in kinds)

    def find_unnamed_tensors(self, share: float) -> None:
        """All tensors that no name leads to, in one pass over all objects: an instance refers to
        its class. Nothing can stop a pass, so there is none if it may take too long."""
        begin = time.thread_time()
        if self.late(share, _SECONDS_PER_OBJECT * sys.getallocatedblocks()):
            return
        unnamed = set(self.unnamed())
        for one in gc.get_referrers(*self._tensor_classes):
            if self.kind_of(one) == TENSOR and self.blocks.index_of(one) in unnamed:
                self.keep(one)
                self.missing[id(one)] = self.blocks.index_of(one)
        self.pass_s = time.thread_time() - begin
