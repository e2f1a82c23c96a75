"""Looks at the program's objects without running a line of its code.

A class may override `__class__`, `__dict__`, `__eq__` and `__hash__`, and a metaclass `__mro__`: so
`isinstance`, `hasattr`, `==`, `in`, a dict of classes and a plain attribute may all run code. The C
descriptors of `type`, `type()` itself and `is` cannot be overridden.
"""

import contextlib
import sys
import types
from collections.abc import Iterator

mro_of = type.__dict__["__mro__"].__get__
name_of_class = type.__dict__["__name__"].__get__
module_of_class = type.__dict__["__module__"].__get__
names_of_class = type.__dict__["__dict__"].__get__
subclasses_of = type.__dict__["__subclasses__"]
names_of_module = types.ModuleType.__dict__["__dict__"].__get__


def is_a(one: object, base: type) -> bool:
    return any(cls is base for cls in mro_of(type(one)))


def names_of(one: object) -> dict:
    """Its `__dict__`; empty: it has none, or one that its class computes. For objects of a path
    that was found only: this call may make the dict."""
    for cls in mro_of(type(one)):
        found = names_of_class(cls).get("__dict__")
        if type(found) is types.GetSetDescriptorType:
            with contextlib.suppress(Exception):
                names = found.__get__(one)
                return names if type(names) is dict else {}
    return {}


def members_of(one: object) -> Iterator[tuple[str, object]]:
    """What is in its slots, and in the fields of a class that is written in C."""
    for cls in mro_of(type(one)):
        for name, member in list(names_of_class(cls).items()):
            if type(member) is types.MemberDescriptorType:
                with contextlib.suppress(Exception):  # an empty slot
                    yield name, member.__get__(one)


def loaded_modules() -> Iterator[tuple[dict, str]]:
    """(globals, file) of each module. sys.modules may hold other things, too."""
    for module in list(sys.modules.values()):
        try:
            names = names_of_module(module)
        except TypeError:
            continue
        file = names.get("__file__")
        yield names, file if type(file) is str else ""


def label(key: object) -> str:
    """A name or a key. One of a class of its own may have a `__str__` of its own."""
    is_plain = any(type(key) is kind for kind in (str, int, float, bool))
    return str(key) if is_plain else "…"
