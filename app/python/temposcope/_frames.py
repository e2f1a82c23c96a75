"""Frames of the program: which are its own, what their variables are, which line each thread runs.

No function here leaves a frame of this package in a variable: a list of frames in a frame of that
list is a cycle, and what its frames hold would stay until the garbage collector runs.
"""

import ctypes
import functools
import os
import sys
import sysconfig
import threading
import traceback
import types
from typing import NamedTuple

import torch

from ._bare_look import is_a, names_of

# As code objects spell it, which need not be the absolute path.
_PACKAGE = os.path.dirname((lambda: None).__code__.co_filename) + os.sep
_PROGRAMS = _PACKAGE + "programs" + os.sep  # these run as the user's
_INSTALLED = ("site-packages", "dist-packages")
_locals_to_fast = ctypes.pythonapi.PyFrame_LocalsToFast  # does nothing from Python 3.13 on
_locals_to_fast.argtypes = [ctypes.py_object, ctypes.c_int]
_locals_to_fast.restype = None
_OPTIMIZED = 1  # flag of a function's code: its variables are in the frame, and not in a dict


def _has_installed(folder: str) -> bool:
    """Whether `pip install --target` has put packages there."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".dist-info") for entry in entries)
    except OSError:
        return False


_LIBRARIES = (
    *(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")),
    *(os.path.join(folder, "") for folder in sys.path if folder and _has_installed(folder)),
    os.path.join(os.path.dirname(torch.__file__), ""),
    "<frozen",
    "<eval_with_key>",
)


def is_own_file(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_PROGRAMS)


@functools.lru_cache(maxsize=1 << 14)  # a program imports thousands of files
def is_user_file(file: str) -> bool:
    if not file or is_own_file(file) or file.startswith(_LIBRARIES):
        return False
    return not any(folder in file for folder in _INSTALLED)


def is_own(frame: types.FrameType) -> bool:
    return is_own_file(frame.f_code.co_filename)


def place(code: types.CodeType, line: int | None) -> str:
    """ "step() at train.py:9" """
    return f"{code.co_name}() at {os.path.basename(code.co_filename)}:{line or code.co_firstlineno}"


def _runs_here(frame: types.FrameType) -> bool:
    """Whether it is on the stack of this thread."""
    caller = sys._getframe(1)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is frame


def _may_clear(frame: types.FrameType) -> bool:
    """While a trace function of Python runs for a frame, Python 3.10 takes its variables back from
    the dict: an empty one would delete them. On another thread it may run just now."""
    if sys.version_info < (3, 11):
        hooks = (sys.gettrace, sys.getprofile, threading.gettrace, threading.getprofile)
        return frame.f_trace is None and all(hook() is None for hook in hooks)
    return frame.f_trace is None or _runs_here(frame)


def locals_of(frame: types.FrameType) -> dict:
    """The variables of a frame; of a module's frame, its globals.

    Until Python 3.12 `f_locals` of a function is a dict that stays in the frame: after `del x` it
    would keep x. So it is copied and emptied, unless more than this function and the frame refer to
    it: then the program has called locals(). Then the frame has to forget that it was asked, or the
    next trace function would fill the dict again. From 3.13 on it is a proxy that keeps nothing.
    """
    names = frame.f_locals
    if not frame.f_code.co_flags & _OPTIMIZED:  # a module, a class body, exec
        return names if is_a(names, dict) else {}  # exec takes any mapping, with its own code
    copy = dict(names)
    is_kept = sys.version_info < (3, 13) and sys.getrefcount(names) == 3  # and the argument
    if is_kept and _may_clear(frame):
        names.clear()
        _locals_to_fast(frame, 0)  # what is in the dict: nothing
    return copy


def variables_of(frame: types.FrameType) -> dict:
    """Those that are no globals."""
    names = locals_of(frame)
    return {} if names is frame.f_globals else names


def frames_by_thread() -> dict[int, list[types.FrameType]]:
    """The frames of each thread, innermost first, without those of this package."""
    found: dict[int, list[types.FrameType]] = {}
    for thread, frame in sys._current_frames().items():
        frames = found.setdefault(thread, [])
        while frame is not None:
            if not is_own(frame):
                frames.append(frame)
            frame = frame.f_back
    return found


def codes_of_modules() -> dict[int, types.CodeType]:
    """The code of each module that is being run, by the id of its globals. Of code that exec runs
    with the globals of the module that it is in, the inner one counts."""
    codes: dict[int, types.CodeType] = {}
    for frames in frames_by_thread().values():
        for frame in frames:
            if frame.f_code.co_name == "<module>":
                codes.setdefault(id(frame.f_globals), frame.f_code)
    return codes


def names_of_threads() -> dict[int, str]:
    """Of those that `threading` started. Not threading.enumerate(), which takes a lock, nor
    current_thread(), which registers a thread that C++ has started."""
    names = {}
    for thread, started in list(threading._active.items()):
        name = names_of(started).get("_name")
        if not is_a(started, threading._DummyThread) and type(name) is str:
            names[thread] = name
    names.pop(threading.main_thread().ident, None)
    return names


def is_started_by_python(thread: int) -> bool:
    return thread == threading.main_thread().ident or thread in names_of_threads()


class ThreadLine(NamedTuple):
    """The innermost line of the program that a thread runs."""

    thread: str  # "this thread", "main thread", "thread loader"
    function: str
    file: str
    line: int


def lines_of_threads() -> list[ThreadLine]:
    """One for each thread that runs a line of the program, that of the asking thread first. On
    autograd's threads runs none: then the main thread, which waits for them, comes first."""
    asking, main = threading.get_ident(), threading.main_thread().ident
    names = names_of_threads()
    lines = []
    for thread, frames in frames_by_thread().items():
        user = next((f for f in frames if is_user_file(f.f_code.co_filename)), None)
        if user is None:
            continue
        of_others = "main thread" if thread == main else f"thread {names.get(thread, thread)}"
        name = "this thread" if thread == asking else of_others
        code = user.f_code
        line = ThreadLine(name, code.co_name, code.co_filename, user.f_lineno or 0)
        lines.append(((thread != asking, thread != main), line))
    return [line for _, line in sorted(lines, key=lambda ordered: ordered[0])]


class StackLine(NamedTuple):
    file: str
    line: int
    function: str


def stack_of_this_thread() -> list[StackLine]:
    """Its lines, outermost first. Around those of a thread that C++ has started, as autograd does,
    are those of the main thread, which waits for it."""
    asking, main = threading.get_ident(), threading.main_thread().ident
    frames = frames_by_thread()
    stack = frames.get(asking, [])
    if not is_started_by_python(asking):
        stack = stack + frames.get(main, [])
    return [StackLine(f.f_code.co_filename, f.f_lineno or 0, f.f_code.co_name) for f in stack[::-1]]


def stack_of_error(error: BaseException) -> list[StackLine]:
    """The lines that it came through, outermost first."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [StackLine(f.f_code.co_filename, line, f.f_code.co_name) for f, line in steps]
    return [line for line in lines if not is_own_file(line.file)]
