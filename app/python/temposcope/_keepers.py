"""Which Python objects keep blocks of memory alive: "list `history[3]`, train.py:16 (<module>)".

    names ──► graphs ──► libraries ──► a pass over all objects ──► large containers ──► back
    2-10 ms   autograd   their frames  is there a tensor at all?   errors            referrers

Each phase runs only for blocks that have no name yet, and has a share of the time. It may be asked
at any moment at which Python may run: in torch's out-of-memory observer, where all frames and
values are still there, at the end of a step, in an `except`. Not in a trace callback of the
allocator, which holds its lock.

It runs no code of the program, and leaves nothing behind.
"""

import contextlib
import gc
import os
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch

from ._frames import ThreadLine, lines_of_threads
from ._keeper_graph import Graphs
from ._keeper_referrers import Referrers
from ._keeper_roots import Roots
from ._keeper_search import Blocks, Budget, Search
from ._keeper_words import Keeper, Words

__all__ = ["BlockKeepers", "Keeper", "ThreadLine", "find_keepers", "lines_of_threads"]

_MOST_KEEPERS_SAID = 2

# Where each phase ends, as a share of the time. The rest is for the words.
_NAMES, _GRAPHS, _LIBRARIES, _LARGE, _REFERRERS = 0.5, 0.6, 0.65, 0.8, 0.85

# One question at a time: the containers of another one would look like keepers.
_asking = threading.RLock()
_LONGEST_WAIT_S = 2.0  # of a forked process, in which the lock may be held for ever


class BlockKeepers(NamedTuple):
    """What keeps one block alive. All of the keepers must let it go."""

    address: int
    bytes: int
    keepers: list[Keeper]  # at most two, those to show; "; " joins their texts
    num_more: int  # further ones
    # "cpp_only": no Python object has it. "failed": see `failure`.
    verdict: Literal["named", "cpp_only", "not_found_in_time", "waits_for_collector", "failed"]
    failure: str = ""  # a sentence, where the search failed; the keepers are those found before


def find_keepers(
    blocks: list[tuple[int, int]], budget_s: float = 0.2, saved: dict[int, str] | None = None
) -> list[BlockKeepers]:
    """What keeps these blocks alive, in their order.

    blocks    (address, bytes) of live blocks, as an allocator gives them out
    budget_s  seconds of processor time after which the search ends; the lines of what it
              has found may take a quarter more
    saved     address of a block -> autograd's node, or the op, that saved it for backward. The
              recorder knows it, and under its hooks torch tells nobody else

    Never raises, but for Ctrl-C.
    """
    answer = _Answer(blocks, saved)
    with _alone():
        answer.find(budget_s)
        return answer.of_blocks()


def rows_of(found: BlockKeepers) -> list[dict]:
    """As the table `keeper` of a trace has them; none where the search did not come to its end."""
    if found.verdict == "cpp_only":
        return [{"kind": "cpp", "text": "only C++ holds it", "file": "", "line": 0}]
    rows = [keeper._asdict() for keeper in found.keepers]
    if found.verdict == "waits_for_collector":
        rows = [row | {"kind": "collector"} for row in rows]
    if found.num_more:
        rows[-1]["text"] += f" (+{found.num_more})"
    return rows


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Without other questions, and without the garbage collector: that would take 80 ms, and free
    the cycles that are to be named. Modes of torch (`torch.set_default_device` is one) and classes
    of tensors would run code at each C getter, and a debugger at each line of the search."""
    is_locked = _asking.acquire(timeout=_LONGEST_WAIT_S)
    collects = gc.isenabled()
    gc.disable()
    try:
        with _untraced(), torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            yield
    finally:
        if collects:
            gc.enable()
        if is_locked:
            _asking.release()


@contextlib.contextmanager
def _untraced() -> Iterator[None]:
    """Trace functions that are written in C stay: they are fast, and may not be set again from
    Python. In 3.10 all stay: there `_frames` has to know of them."""
    hooks = ((sys.gettrace, sys.settrace), (sys.getprofile, sys.setprofile))
    stopped = []
    for get, set_again in hooks if sys.version_info >= (3, 11) else ():
        hook = get()
        if type(hook) is types.FunctionType or type(hook) is types.MethodType:
            set_again(None)
            stopped.append((set_again, hook))
    try:
        yield
    finally:
        for set_again, hook in stopped:
            set_again(hook)


def keepers(tensor: torch.Tensor, budget_s: float = 0.2) -> list[str]:
    """What keeps the memory of `tensor` alive, in words. All of it must let go before the memory is
    free. At most two are named, and a last text counts the others.

        >>> temposcope.keepers(logits)
        ["`logits`, train.py:13 (<module>)", "list `history[7]`, train.py:16 (<module>)"]

    Empty where the tensor has no memory, and where nothing was found in `budget_s` seconds.
    """
    storage = tensor.untyped_storage()
    block = (storage.data_ptr(), storage.nbytes())
    del storage  # it would keep the memory, too
    if 0 in block:
        return []
    found = find_keepers([block], budget_s)[0]
    more = [f"{found.num_more} more"] if found.num_more else []
    return [keeper.text for keeper in found.keepers] + more


class _Answer:
    def __init__(self, blocks: list[tuple[int, int]], saved: dict[int, str] | None):
        self._blocks = blocks
        self._saved = saved
        self._failure = ""
        self._search: Search | None = None
        self._graphs: Graphs | None = None
        self._referrers: Referrers | None = None
        self._words: Words | None = None

    def find(self, budget_s: float) -> None:
        try:
            search = self._search = Search(Blocks(self._blocks), Budget(budget_s))
            graphs = self._graphs = Graphs(search, self._saved)
            self._referrers = Referrers(search)
            try:
                self._run_phases(search, graphs)
            finally:
                self._words = Words(search, graphs)
        except Exception as error:
            self._fail(error)

    def _run_phases(self, search: Search, graphs: Graphs) -> None:
        roots = Roots(search)
        search.close_modules()
        roots.add_main()
        roots.add_frames_of_user()
        search.follow(_NAMES)
        roots.add_modules(_NAMES)
        search.follow(_NAMES)
        graphs.read(_GRAPHS)
        if search.unnamed():
            roots.add_frames_of_libraries()
            search.follow(_LIBRARIES)
            graphs.read(_LIBRARIES)  # a library's training loop has the loss
        graphs.close()
        if search.unnamed():
            search.find_unnamed_tensors(_REFERRERS)
            self._referrers.meet(_REFERRERS)
            search.open_large(_LARGE)
            roots.add_errors()
            search.follow(_LARGE)
        if search.missing:
            self._referrers.climb(_REFERRERS)

    def of_blocks(self) -> list[BlockKeepers]:
        found = []
        for index, block in enumerate(self._blocks):
            keepers: list[Keeper] = []
            try:
                keepers = self._keepers(index) if self._words is not None else []
            except Exception as error:
                self._fail(error)
            verdict = self._verdict(index, bool(keepers))
            more = max(0, len(keepers) - _MOST_KEEPERS_SAID)
            said = keepers[:_MOST_KEEPERS_SAID]
            found.append(BlockKeepers(*block, said, more, verdict, self._failure))
        return found

    def _keepers(self, block: int) -> list[Keeper]:
        search, referrers = self._search, self._referrers
        keepers = [self._words.of_tensor(*kept) for kept in search.kept[block]]
        is_parameter = any(keeper.kind == "parameter" for keeper in keepers)
        if block in search.saved and not is_parameter:  # each op with a weight saves it
            keepers += self._words.of_saved(search.saved[block])
        if not keepers and block in referrers.holders:
            me = referrers.holders[block]
            holder = search.object(me) if me else None
            keepers = [self._words.of_holder(holder)]
            if block in referrers.waiting:
                what = "a tensor" if holder is None else self._words.of_object(holder)
                text = f"waits for the garbage collector: {what}, in a cycle"
                keepers = [keepers[0]._replace(text=text)]
        return list({keeper.text: keeper for keeper in keepers}.values())

    def _verdict(self, block: int, is_named: bool) -> str:
        if is_named:
            return "waits_for_collector" if block in self._referrers.waiting else "named"
        if self._failure:
            return "failed"
        # After a pass over all objects each tensor is known, but those that gc.freeze() hides.
        is_known = self._search.pass_s is not None and gc.get_freeze_count() == 0
        has_tensor = block in self._search.missing.values()
        if is_known and not has_tensor and self._graphs.is_whole:
            return "cpp_only"
        return "not_found_in_time"

    def _fail(self, error: Exception) -> None:
        """The error itself is not kept: its frames refer to all that was found."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}, line {last.lineno}"
        said = f"{type(error).__name__} ({error})"
        self._failure = f"keepers were not found: Temposcope itself failed in {place}, with {said}"
