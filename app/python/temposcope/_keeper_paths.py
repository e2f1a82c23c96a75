"""The way from a root to an object, as the program would write it: `net.0.last`.

    root `net` ── __dict__ ── "_modules" ── "0" ── a Block ── "last" ── the tensor

Some of these links have a meaning only together with the next one: after `_modules` a key of a dict
is the name of a module, after the closure of a function an index is the name of a variable.
"""

import types
from collections.abc import Callable
from typing import NamedTuple

import torch

from . import _frames
from ._bare_look import is_a, label, members_of, mro_of, name_of_class, names_of, names_of_class
from ._keeper_search import SEQUENCES, TENSOR_BASE

_GROUPS = ("_modules", "_parameters", "_buffers")  # of a module: their keys are attributes
_LONGEST_KEY = 40  # characters
_UNORDERED = (set, frozenset)
_FRAMES = (  # of what runs in steps
    (types.GeneratorType, "gi_frame"),
    (types.CoroutineType, "cr_frame"),
    (types.AsyncGeneratorType, "ag_frame"),
)


def frame_in(one: object) -> types.FrameType | None:
    """Of a generator; None: it has ended, or is none."""
    found = (getattr(one, name) for kind, name in _FRAMES if type(one) is kind)
    return next(found, None)


def _index_of(child: object, elements) -> int | None:
    return next((i for i, element in enumerate(elements) if element is child), None)


def _key_of(child: object, names: dict) -> object:
    return next((key for key, value in list(dict.items(names)) if value is child), None)


class _StateOf(NamedTuple):
    parameter: str


class Path:
    """Grows by one link at a time. `kind` says what the object is kept by, in the end."""

    def __init__(self, name: str, kind: str, name_of_parameter: Callable[[object], str]):
        self.text = name
        self.kind = kind
        self.outer = ""  # ", in the frame of step() at train.py:9 that `errors[0]` keeps"
        self.attribute = ""  # the last one on the way
        self.owner: object = None  # the object that has it
        self.is_whole_text = False  # the text says all, without `` and lines
        self._name_of_parameter = name_of_parameter
        # What the next link goes on with: "names", a group, "state", _StateOf, a function.
        self._opened: object = None
        self._owner: object = None

    def open_names(self) -> None:
        """The first object is a dict of attributes."""
        self._opened = "names"

    def add(self, parent: object, child: object) -> None:
        if self.is_whole_text:
            return
        opened, self._opened = self._opened, None
        if is_a(parent, type):
            self._opened, self._owner = "names", None
        elif is_a(parent, dict):
            self._add_key(opened, parent, child)
        elif any(is_a(parent, kind) for kind in SEQUENCES):
            self._add_element(opened, parent, child)
        elif type(parent) is types.FunctionType:
            self._opened = parent
        elif type(parent) is types.FrameType:
            self._enter_frame(parent, "frame of", child, "exception")
        elif (frame := frame_in(parent)) is not None:
            self._enter_frame(frame, "generator", child, "generator")
        elif type(parent) is types.CellType or type(parent) is types.TracebackType:
            pass
        else:
            self._add_attribute(parent, child)

    # ---- links of each kind

    def _add_key(self, opened, parent: dict, child: object) -> None:
        key = _key_of(child, parent)
        if opened == "names":
            self._name_attribute(label(key), child)
        elif opened in _GROUPS:
            self._see(f".{label(key)}", "attribute", label(key))
        elif opened == "state" and key is None:  # a parameter, which is a key
            self._see(".state{…}", "container")
        elif opened == "state":
            self._opened = _StateOf(self._name_of_parameter(key))
        elif type(opened) is types.FunctionType:
            self._add_to_function(opened, parent, label(key))
        elif type(opened) is _StateOf:
            self.text = f"optimizer state {label(key)} of {opened.parameter}"
            self.kind = "optimizer"
            self.is_whole_text = True
        elif key is None and type(parent) is not dict:
            self._add_attribute(parent, child)
        else:
            text = repr(key[:_LONGEST_KEY]) if type(key) is str else label(key)
            self._see(f"[{text}]", "container")

    def _add_element(self, opened, parent, child: object) -> None:
        if type(opened) is types.FunctionType:
            self._add_to_function(opened, parent, child)
            return
        base = next(kind for kind in SEQUENCES if is_a(parent, kind))
        if base in _UNORDERED:
            self._see("{…}", "container")
            return
        index = _index_of(child, base.__iter__(parent))
        fields = names_of_class(type(parent)).get("_fields") if base is tuple else None
        if index is None and type(parent) is not base:
            self._add_attribute(parent, child)
        elif type(fields) is tuple and index is not None and index < len(fields):
            self._see(f".{label(fields[index])}", "attribute", label(fields[index]))
        else:
            self._see(f"[{'?' if index is None else index}]", "container")

    def _add_to_function(self, function: types.FunctionType, group, found: object) -> None:
        """`group` is its closure, its defaults, or the dict of its attributes. `found` is what is
        in it, or the key of that."""
        code = function.__code__
        self.kind = "closure"
        self.outer = f", in {_frames.place(code, code.co_firstlineno)}"
        if group is function.__closure__:
            index = _index_of(found, group)
            self.text += f" -> closure variable {code.co_freevars[index]}"
        elif group is function.__defaults__ or group is function.__kwdefaults__:
            self.text += " -> default argument"
        else:
            self.text, self.outer = f"{self.text}.{found}", ""
            self.kind, self.attribute, self.owner = "attribute", found, None

    def _enter_frame(self, frame: types.FrameType, what: str, child: object, kind: str) -> None:
        through = f" that `{self.text}` keeps" if self.text.strip("[]0123456789.") else ""
        where = _frames.place(frame.f_code, frame.f_lineno)
        self.outer = f", in the {what} {where}{through}"
        self.text = label(_key_of(child, _frames.locals_of(frame)) or "?")
        self.kind, self.attribute, self.owner = kind, "", None

    def _add_attribute(self, parent: object, child: object) -> None:
        names = names_of(parent)
        self._owner = parent
        if child is names:
            self._opened = "names"
            return
        key = _key_of(child, names)
        if key is None and is_a(parent, TENSOR_BASE):
            if _has_gradient(parent) and child is TENSOR_BASE.grad.__get__(parent):
                self._see(".grad", "gradient")
            return
        if key is None:
            key = next((name for name, member in members_of(parent) if member is child), None)
        if key is not None:
            self._name_attribute(label(key), child)
        elif is_a(parent, BaseException):
            self.text += ".args" if is_a(child, tuple) else ""
        else:
            self.text += f" -> {name_of_class(type(parent))}"

    def _name_attribute(self, key: str, child: object) -> None:
        is_group = key in _GROUPS and self._owner_is(torch.nn.Module)
        is_state = key == "state" and self._owner_is(torch.optim.Optimizer)
        if is_group or is_state:
            self._opened = key
        else:
            self._see(f".{key}", "attribute", key)

    def _owner_is(self, base: type) -> bool:
        return any(cls is base for cls in mro_of(type(self._owner)))

    def _see(self, text: str, kind: str, attribute: str = "") -> None:
        self.text += text
        if self.kind not in ("closure", "exception", "generator"):  # those are rarer: they stay
            self.kind = kind
        if attribute:
            self.attribute, self.owner = attribute, self._owner


def _has_gradient(tensor: object) -> bool:
    """Torch warns where the gradient of another tensor is asked for."""
    return TENSOR_BASE.is_leaf.__get__(tensor) or TENSOR_BASE.retains_grad.__get__(tensor)
