"""The file through which a recorded program says what became of the recording (_program.py)."""

import json
import os


_LONGEST_MESSAGE = 300  # characters


def first_line(error: BaseException) -> str:
    """What an error says, as far as the status needs it."""
    try:
        text = str(error)
    except Exception:
        return ""
    line = next(iter(text.splitlines()), "")
    return line[:_LONGEST_MESSAGE].encode(errors="replace").decode()  # no half of a UTF-16 pair


class Status:
    """What the process that records tells the one that started it."""

    def __init__(self, path: str):
        self._path = path
        self._rank: dict = {}  # {"rank": 3} once it is known

    def claim(self, rank: int | None) -> bool:
        """Whether this process is the first that takes a step: of all, or of this rank. The others
        record nothing."""
        try:
            os.close(os.open(self._owner(rank), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        self._rank = {} if rank is None else {"rank": rank}
        return True

    def add_as(self, rank: int | None, **what) -> None:
        """What this process tells as a rank, even before it takes a step. Once another process has
        taken one, that one speaks for the rank."""
        if rank is not None and not os.path.exists(self._owner(rank)):
            what["rank"] = rank
        self.add(**what)

    def _owner(self, rank: int | None) -> str:
        return f"{self._path}.owner{'' if rank is None else rank}"

    def add(self, **what) -> None:
        line = json.dumps(self._rank | what) + "\n"
        with open(self._path, "ab", buffering=0) as file:  # whole: other processes write, too
            file.write(line.encode())
