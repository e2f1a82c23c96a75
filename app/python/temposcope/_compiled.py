"""Where compiled code allocates: the modules and lines of the program that its lines stand for.

torch.compile runs code that Inductor writes. Its lines are nobody's, but while it is written, each
of its buffers has an FX node, which knows its module and its line. They go into a file beside the
code, so that code from Inductor's cache has them, too. The recorder reads that file
(profiler/capture/python/compiled_code.h).
"""

import collections
import importlib.machinery
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ._frames import is_user_file

_CODE_CACHE = "torch._inductor.codecache"
_BUFFER = re.compile(r"\s*(buf\d+)\b")
_NODES = re.compile(r"# Topologically Sorted Source Nodes: \[(.*?)\]")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class _Place(NamedTuple):
    module: str  # "h.0.mlp"; empty: the model itself
    op: str  # "addmm"
    file: str  # of the program; empty: not known
    line: int
    function: str


def follow() -> None:
    """From now on places are written of all code that Inductor writes."""
    after_import(_CODE_CACHE, _patch)


def after_import(name: str, then: Callable[[types.ModuleType], None]) -> None:
    """Calls `then` with this module, once it is there."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
    elif not any(isinstance(one, _AfterImport) and one.name == name for one in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport(name, then))


class _AfterImport:
    """Finds a module as the other finders do, and calls `then` once it is imported."""

    def __init__(self, name: str, then: Callable[[types.ModuleType], None]):
        self.name = name
        self._then = then

    def find_spec(self, name, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, found), None)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_then(module: types.ModuleType) -> None:
            run(module)
            sys.meta_path.remove(self)
            self._then(module)

        spec.loader.exec_module = run_and_then
        return spec


def _patch(codecache: types.ModuleType) -> None:
    cache = codecache.PyCodeCache
    load = cache.load_by_key_path.__func__
    if getattr(load, "_is_ours", False):
        return

    def load_and_tell(cls, key, path, *args, **kwargs):
        try:
            _write_places(path)
        except Exception as error:  # of another version: then nobody knows the places
            tell_once("The lines of compiled code are not known", error)
        return load(cls, key, path, *args, **kwargs)

    load_and_tell._is_ours = True
    cache.load_by_key_path = classmethod(load_and_tell)


_told: set[str] = set()


def tell_once(what: str, error: Exception) -> None:
    if what not in _told:
        _told.add(what)
        print(
            f"temposcope: {what}, because this version of torch differs: "
            f"{type(error).__name__}: {error}",
            file=sys.stderr,
        )


def _write_places(path: str) -> None:
    """Beside the code at `path`, if it was written just now. Two processes may write the same."""
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    graph = V.graph
    if not isinstance(graph, GraphLowering):
        return  # from the cache
    with open(path, encoding="utf-8") as file:
        lines = dict(_places_of_lines(file.read().splitlines(), graph))
    folder, name = os.path.split(path)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=name, delete=False) as file:
        json.dump({"lines": lines}, file)
    os.replace(file.name, path + ".places.json")


def _places_of_lines(code: list[str], graph) -> Iterator[tuple[int, _Place]]:
    """A line that makes a buffer has the buffer's place, and another one that of the comment above
    it, which names the nodes that follow."""
    order = {node: index for index, node in enumerate(graph.module.graph.nodes)}
    nodes = {node.name: node for node in order if node.op == "call_function"}
    for node in list(nodes.values()):
        if node.meta.get("from_node"):  # the name of the node that it was made of
            nodes.setdefault(node.meta["from_node"][0].name, node)
    buffers = dict(_nodes_of_buffers(graph, order))
    commented = None
    for number, text in enumerate(code, 1):
        comment = _NODES.search(text)
        if comment:
            names = comment[1].replace(" ", "").split(",")
            named = [nodes[name] for name in names if name in nodes]
            commented = _place_of(named[-1]) if named else None
        buffer = _BUFFER.match(text)
        node = buffers.get(buffer[1]) if buffer else None
        place = _place_of(node) if node is not None else commented
        if place is not None:
            yield number, place


def _nodes_of_buffers(graph, order: dict) -> Iterator[tuple[str, object]]:
    """The node whose value a buffer holds, else the last of those that a kernel fuses."""
    for buffer in (*graph.buffers, *graph.name_to_buffer.values()):
        node = buffer.get_origin_node() if hasattr(buffer, "get_origin_node") else None
        if node is None and hasattr(buffer, "get_origins"):
            origins = [one for one in buffer.get_origins() if one.op == "call_function"]
            node = max(origins, key=lambda one: order.get(one, -1), default=None)
        if node is not None:
            yield buffer.get_name(), node


def _place_of(node) -> _Place:
    op = node.meta.get("original_aten") or node.target
    name = getattr(op, "_opname", None) or getattr(op, "__name__", None) or str(op)
    known = _nearest_with_line(node)
    frames = _FRAME.findall(known.meta.get("stack_trace") or "")
    of_program = [frame for frame in frames if is_user_file(frame[0])]
    file, line, function = (of_program or frames or [("", "0", "")])[-1]
    return _Place(_module_of(node) or _module_of(known), name, file, int(line), function)


def _nearest_with_line(node):
    """A pass of Inductor's may put nodes that know no line in the place of the program's. The first
    that uses such a node, or that it uses, has the line."""
    seen, queue = {node}, collections.deque([node])
    while queue:
        one = queue.popleft()
        if one.meta.get("stack_trace"):
            return one
        for near in (*one.users, *one.all_input_nodes):
            if near not in seen:
                seen.add(near)
                queue.append(near)
    return node


def _module_of(node) -> str:
    """Of a node of backward, that of its forward. "h.0.mlp" of "L['self']._modules['h'][0].mlp"."""
    modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not modules:
        return ""
    path = list(modules.values())[-1][0]
    path = re.sub(r"\._modules\['([^']*)'\]", r".\1", path)
    path = re.sub(r"\['?(\w+)'?\]", r".\1", path)
    path = re.sub(r"^L\.\w+\.?|__self___|\b_orig_mod\b\.?", "", path)
    return path.strip(".")
