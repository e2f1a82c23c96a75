"""What is said of a keeper: "list `history[3]`, train.py:16 (<module>)"."""

import os
import types
from typing import NamedTuple

from . import _frames
from ._bare_look import is_a, label, name_of_class, names_of
from ._code_lines import CodeLines, of_attribute
from ._keeper_graph import Graph, Graphs, Saved
from ._keeper_paths import Path, frame_in
from ._keeper_search import CONTAINER, SEQUENCES, TENSOR_BASE, Budget, Root, Search

_KINDS_OF_ROOTS = {"local": "frame", "error": "exception", "ctx": "autograd", "hook": "autograd"}
_MOST_NAMES = 4  # of a frame, one of which is the keeper
_MOST_KEYS = 3
_GENERATOR = 0x20 | 0x80 | 0x200  # flags of the code: generator, coroutine, async generator
_CHECKPOINT = "_NoopSaveInputsBackward"
_LINES = 0.25  # of the search's time, beside it: lines are what people look for


class Keeper(NamedTuple):
    """One reason for which a block of memory is not free."""

    # What it is kept by: "variable" (of a module), "frame" (a variable of a running function),
    # "attribute", "container", "parameter", "gradient", "optimizer", "autograd", "closure",
    # "generator", "exception"
    kind: str
    text: str
    file: str = ""  # that has the line
    line: int = 0  # that puts it there, or that the frame runs; 0: not known


class _Place(NamedTuple):
    text: str  # " (set at line 12)", ", train.py:16 (<module>)"
    file: str
    line: int


class Words:
    """Puts into words what a search, its graphs and its referrers have found."""

    def __init__(self, search: Search, graphs: Graphs):
        self._search = search
        self._graphs = graphs
        self._lines = CodeLines(Budget(_LINES * search.budget.seconds).is_over)
        self._owners = self._find_owners()

    def _find_owners(self) -> dict[int, tuple[int, str]]:
        """(module, name) of each parameter and buffer. A module that is deep in another one is
        further away from names than its parameters, which an optimizer lists, too."""
        found: dict[int, tuple[int, str]] = {}
        for module in self._search.modules:
            names = names_of(self._search.object(module))
            for group in ("_parameters", "_buffers"):
                of_group = names.get(group)
                for name, tensor in list(dict.items(of_group)) if is_a(of_group, dict) else ():
                    if tensor is not None:
                        found.setdefault(id(tensor), (module, label(name)))
        return found

    # ---- tensors that names lead to

    def of_tensor(self, me: int, parent: int | None = None) -> Keeper:
        """`parent`: over which of the ways."""
        parent = self._search.parents[me] if parent is None else parent
        if me in self._owners:
            return Keeper("parameter", f"`{self._parameter(me)}`")
        if parent in self._owners and self._is_gradient(me, parent):
            return Keeper("gradient", f"`{self._parameter(parent)}.grad`")
        root, chain = self._chain(me, parent)
        path = self._path(root, chain)
        if path.is_whole_text:
            return Keeper(path.kind, path.text)
        if root.holder:
            return self._of_holder_of(root, path)
        if not root.name:
            name = path.text.removeprefix(".")
            text = f"`{name}`{path.outer}: {root.where}" if name else root.where
            return Keeper(path.kind, text)
        place = self._place(root, path, self._search.kind_of(chain[0]) == CONTAINER)
        is_plain = self._search.kind_of(chain[0]) == CONTAINER and not path.outer
        kind = f"{name_of_class(type(chain[0]))} " if is_plain else ""
        return Keeper(path.kind, f"{kind}`{path.text}`{place.text}{path.outer}", *place[1:])

    def _is_gradient(self, me: int, parameter: int) -> bool:
        gradient = TENSOR_BASE.grad.__get__(self._search.object(parameter))
        return gradient is self._search.object(me)

    def _of_holder_of(self, root: Root, path: Path) -> Keeper:
        """Of what a result's graph keeps."""
        holder = self.of_tensor(root.holder)
        text = f"`{path.text}` {root.where}" if root.name else root.where
        return holder._replace(kind="autograd", text=f"{text}, {_kept_through(holder)}")

    def _parameter(self, me: int) -> str:
        module, name = self._owners[me]
        path = self._path(*self._chain(module, self._search.parents[module]))
        return f"{path.text}.{name}".removeprefix(".")

    def _name_of_parameter(self, key: object) -> str:
        return self._parameter(id(key)) if id(key) in self._owners else "a parameter"

    def _chain(self, me: int, parent: int) -> tuple[Root, list]:
        """The root, and the objects from there on."""
        search, chain = self._search, [me]
        while parent not in search.roots and parent in search.parents:
            chain.append(parent)
            parent = search.parents[parent]
        objects = [search.object(one) for one in reversed(chain)]
        return search.roots.get(parent) or _root_of_library(objects[0]), objects

    def _path(self, root: Root, chain: list) -> Path:
        kind = _KINDS_OF_ROOTS.get(root.kind, "variable")
        path = Path(root.name, kind, self._name_of_parameter)
        if root.kind == "library":
            path.open_names()
        for parent, child in zip(chain, chain[1:]):
            path.add(parent, child)
        return path

    # ---- lines

    def _place(self, root: Root, path: Path, is_container: bool) -> _Place:
        """The line that puts it there, as far as the bytecode tells."""
        in_container = path.text.endswith(("]", "}"))
        attribute = path.attribute
        if attribute and path.owner is not None:
            code, line = self._lines.line_in_methods(path.owner, attribute, in_container)
            if code is not None and _frames.is_user_file(code.co_filename):
                where = f" {root.where}" if root.kind == "local" else ""
                text = f"{where}, set in {_frames.place(code, line)}"
                return _Place(text, code.co_filename, line)
            attribute = "" if code is not None else attribute  # set by the code of a library
        code = root.code
        if code is None and root.kind == "global":
            code = self._lines.of_module(root.file)
        line = 0
        if code is not None and attribute:
            line = self._lines.line(code, of_attribute(attribute), in_container)
        if code is not None and not line:
            line = self._lines.line(code, root.name, is_container)
        if root.kind == "local":
            is_other = line and line != root.line
            text = f" {root.where}{f' (set at line {line})' if is_other else ''}"
            return _Place(text, root.file, line or root.line)
        file = os.path.basename(root.file)
        return _Place(f", {file}{f':{line}' if line else ''} (<module>)", root.file, line)

    # ---- what autograd keeps

    def of_saved(self, saved: Saved) -> list[Keeper]:
        name = "a checkpoint, as its input" if saved.name == _CHECKPOINT else saved.name
        if not saved.holder:
            return [Keeper("autograd", f"saved by {name}")]
        holder = self.of_tensor(saved.holder)
        graph = self._graphs.by_holder.get(saved.holder, Graph(0, True))
        reach = f", whose graph reaches back {graph.steps} steps" if graph.steps > 1 else ""
        reach = reach if graph.is_whole else ", read in part"
        text = f"saved by {name}, {_kept_through(holder)}{reach}"
        others = [self.of_tensor(other) for other in saved.others]
        others = [other for other in others if other.text != holder.text]
        also = [one._replace(kind="autograd", text=f"also {one.text}") for one in others]
        return [holder._replace(kind="autograd", text=text), *also]

    # ---- what has no name

    def of_holder(self, holder: object | None) -> Keeper:
        """Of an object that no name leads to. None: nothing that the garbage collector sees."""
        if holder is None:
            lines = _frames.lines_of_threads()
            if not lines:
                return Keeper("frame", "a value without a name, on a running line or in C++")
            line = lines[0]
            at = f"{os.path.basename(line.file)}:{line.line}"
            return Keeper("frame", f"a value of {at} without a name", line.file, line.line)
        frame = holder if type(holder) is types.FrameType else frame_in(holder)
        if frame is None:
            return Keeper(_kind_of_holder(holder), f"held by {self.of_object(holder)}")
        names = ", ".join(f"`{name}`" for name in list(_frames.locals_of(frame))[:_MOST_NAMES])
        where = _frames.place(frame.f_code, frame.f_lineno)
        is_generator = frame.f_code.co_flags & _GENERATOR  # until Python 3.10 its frame is found
        kind, what = ("generator", "generator") if is_generator else ("frame", "the frame of")
        text = f"held by {what} {where}" + (f", as one of {names}" if names else "")
        return Keeper(kind, text, frame.f_code.co_filename, frame.f_lineno or 0)

    def of_object(self, one: object) -> str:
        if any(type(one) is kind for kind in SEQUENCES):
            kind = name_of_class(type(one))
            return f"a {kind} of {len(one)} without a name, on a running line or in C++"
        if type(one) is dict:
            keys = ", ".join(repr(label(key)) for key in list(one)[:_MOST_KEYS])
            return f"a dict with {keys}"
        return f"an object of {name_of_class(type(one))}"


def _root_of_library(names: object) -> Root:
    """The globals of a module that is not the user's."""
    if type(names) is not dict:
        return Root("library", "…")
    return Root("library", label(names.get("__name__")), file=label(names.get("__file__", "")))


def _kept_through(holder: Keeper) -> str:
    """The holder may be kept through another result itself."""
    return "kept through " + holder.text.rpartition("kept through ")[2]


def _kind_of_holder(one: object) -> str:
    is_container = is_a(one, dict) or any(is_a(one, kind) for kind in SEQUENCES)
    return "container" if is_container else "attribute"
