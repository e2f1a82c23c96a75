"""The lines of the program that set a variable or an attribute, or put something into it.

From bytecode, which knows nested functions and needs no source. Its instructions differ from one
version of Python to the next: two loads in one (3.13), LOAD_FAST_BORROW (3.14), methods that are
loaded as attributes (3.12), lines by another attribute (3.13). What is read here is the same in
all: the beginning of an instruction's name, and the names that it has as its argument.
"""

import dis
import sys
import tokenize
import types
import warnings
from typing import NamedTuple

from ._bare_look import mro_of, names_of_class

_GROWING = {
    *("append", "appendleft", "extend", "insert", "add"),
    *("put", "put_nowait", "update", "setdefault"),
}
_METHOD_LOADS = ("LOAD_METHOD", "LOAD_ATTR")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "LOAD_SUPER_ATTR")
_MOST_BYTES_OF_SOURCE = 1 << 18


def of_attribute(name: str) -> str:
    """As a key: `x.loss` does not set the variable `loss`."""
    return f".{name}"


class Writes(NamedTuple):
    """The last line for each name."""

    stored: dict[str, int]  # x = ..., self.x = ...
    grown: dict[str, int]  # x.append(...), x[i] = ...


def _line(instruction: dis.Instruction) -> int:
    """0: it begins no line."""
    if sys.version_info >= (3, 13):
        return instruction.line_number or 0
    return instruction.starts_line or 0


def _names(instruction: dis.Instruction) -> list[str]:
    argument = instruction.argval
    if instruction.opname in _ATTRIBUTES:
        return [of_attribute(argument)] if type(argument) is str else []
    if instruction.opname == "LOAD_CONST":
        return []
    pair = argument if type(argument) is tuple else (argument,)
    return [name for name in pair if type(name) is str]


def _own_writes(code: types.CodeType) -> Writes:
    writes, line = Writes({}, {}), code.co_firstlineno
    before, last = "", ""  # the names that were loaded last
    store = ("", 0)  # the last instruction: a store to this name, and the line of the one before
    for instruction in dis.get_instructions(code):
        line = _line(instruction) or line
        operation, names = instruction.opname, _names(instruction)
        if operation in _METHOD_LOADS and instruction.argval in _GROWING:
            writes.grown[last] = line
        elif operation == "STORE_SUBSCR":  # x[i] = ..., where i may be a name, too
            writes.grown[last] = writes.grown[before] = line
        elif operation.startswith("DELETE_") and names == [store[0]]:  # `except ... as x` ends
            writes.stored[store[0]] = store[1]
        store = ("", 0)
        for name, part in zip(names, _parts(operation)):
            if part.startswith("STORE"):
                store = (name, writes.stored.get(name, 0))
                writes.stored[name] = line
            elif part.startswith("LOAD"):
                before, last = last, name
    return writes


def _parts(operation: str) -> list[str]:
    """ "STORE_FAST_LOAD_FAST" does two things with two names. """
    for second in ("_STORE_FAST", "_LOAD_FAST", "_LOAD_FAST_BORROW"):
        first = operation.removesuffix(second)
        if first != operation and first.startswith(("STORE_FAST", "LOAD_FAST")):
            return [first, second[1:]]
    return [operation]


class CodeLines:
    """Of the code that was asked about. It is read once."""

    def __init__(self, is_late):
        self._is_late = is_late  # () -> bool: from then on only what was read counts
        self._writes: dict[int, tuple[types.CodeType, Writes]] = {}
        self._modules: dict[str, types.CodeType | None] = {}

    def line(self, code: types.CodeType, name: str, grows: bool) -> int:
        """The last line of a function or module that writes to the name; 0: none. `grows`: what
        was written is in a container that has the name."""
        own = self._of(code) if _has(code, name) else Writes({}, {})
        first, second = (own.grown, own.stored) if grows else (own.stored, own.grown)
        return first.get(name) or self._nested(code, name, grows) or second.get(name) or 0

    def _nested(self, code: types.CodeType, name: str, grows: bool) -> int:
        """Of the functions in it that mean the same variable."""
        found = 0
        for inner in code.co_consts:
            if type(inner) is types.CodeType and name not in inner.co_varnames + inner.co_cellvars:
                found = self.line(inner, name, grows) or found
        return found

    def line_in_methods(self, one: object, name: str, grows: bool) -> tuple[types.CodeType, int]:
        """Where the class of an object sets its attribute, by preference after __init__."""
        constructor = None
        for cls in mro_of(type(one)):
            for method in list(names_of_class(cls).values()):
                if type(method) is not types.FunctionType:
                    continue
                line = self.line(method.__code__, of_attribute(name), grows)
                if line and method.__name__ != "__init__":
                    return method.__code__, line
                if line:
                    constructor = constructor or (method.__code__, line)
        return constructor or (None, 0)

    def of_module(self, file: str) -> types.CodeType | None:
        """Of one that is not being run now. It is compiled, and not run."""
        if file not in self._modules:
            self._modules[file] = None if self._is_late() else _compiled(file)
        return self._modules[file]

    def _of(self, code: types.CodeType) -> Writes:
        if id(code) not in self._writes:
            if self._is_late():
                return Writes({}, {})
            self._writes[id(code)] = code, _own_writes(code)
        return self._writes[id(code)][1]


def _has(code: types.CodeType, name: str) -> bool:
    names = code.co_names + code.co_varnames + code.co_cellvars + code.co_freevars
    return name.removeprefix(".") in names


def _compiled(file: str) -> types.CodeType | None:
    try:
        with tokenize.open(file) as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = source.read(_MOST_BYTES_OF_SOURCE + 1)
            if len(text) > _MOST_BYTES_OF_SOURCE:
                return None
            return compile(text, file, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return None
