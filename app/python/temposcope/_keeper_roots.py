"""Where a search for keepers begins: variables of modules and of what runs, and errors."""

import sys
import types

from . import _frames
from ._bare_look import is_a, label, loaded_modules, names_of_module
from ._keeper_search import SKIPPED, Root, Search


class Roots:
    """Adds them to a search, kind by kind: what is near to the program first."""

    def __init__(self, search: Search):
        self._search = search
        self._codes = _frames.codes_of_modules()

    def add_main(self) -> None:
        """The globals of the program itself."""
        main = sys.modules.get("__main__")
        if is_a(main, types.ModuleType):
            self._add_names(names_of_module(main), "__main__")

    def add_modules(self, share: float) -> None:
        """Those of the user's modules, which may be many."""
        for names, file in loaded_modules():
            if not _frames.is_user_file(file) or names.get("__name__") == "__main__":
                continue
            if self._search.late(share):
                return
            self._add_names(names, file)

    def _add_names(self, names: dict, file: str) -> None:
        code = self._codes.get(id(names))
        of_module = names.get("__file__")
        file = of_module if type(of_module) is str else file
        file = code.co_filename if code is not None else file
        for name, value in list(names.items()):
            if self._search.kind_of(value) != SKIPPED:
                self._search.add_root(value, Root("global", label(name), file=file, code=code))

    def add_frames_of_user(self) -> None:
        """The variables of all functions of the program that run."""
        self._add_frames(of_user=True)

    def add_frames_of_libraries(self) -> None:
        """They say nothing new of a block that has a name: each function that gets a tensor keeps
        it."""
        self._search.close_named()
        self._add_frames(of_user=False)

    def _add_frames(self, of_user: bool) -> None:
        names = _frames.names_of_threads()
        for thread, frames in _frames.frames_by_thread().items():
            in_thread = f" in thread {names[thread]}" if thread in names else ""
            for frame in frames:
                if _frames.is_user_file(frame.f_code.co_filename) == of_user:
                    self._add_frame(frame, in_thread)

    def _add_frame(self, frame: types.FrameType, in_thread: str) -> None:
        code, line = frame.f_code, frame.f_lineno or 0
        if id(frame.f_globals) not in self._search.parents:  # of exec: no module has them
            self._search.parents[id(frame.f_globals)] = 0
            self._add_names(frame.f_globals, code.co_filename)
        function, _, at = _frames.place(code, line).partition(" at ")
        where = f"of {function}{in_thread} at {at}"
        for name, value in _frames.variables_of(frame).items():
            root = Root("local", label(name), where, code.co_filename, line, code)
            self._search.add_root(value, root)

    def add_errors(self) -> None:
        """Those that are being handled, and the last one that a notebook or a prompt has shown."""
        for error in sys._current_exceptions().values():
            if type(error) is tuple:  # until Python 3.11, as sys.exc_info()
                error = error[1]
            root = Root("error", where="the exception that is being handled")
            self._search.add_root(error, root)
        names = names_of_module(sys)
        for name in ("last_exc", "last_value"):  # the first from Python 3.12 on
            if (error := names.get(name)) is not None:
                root = Root("error", where="sys.last_value, the error shown last")
                self._search.add_root(error, root)
