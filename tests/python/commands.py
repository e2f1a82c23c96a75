"""What tests of temposcope's commands share. They take the folder of the built programs as their
argument."""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


def temposcope(*words, **surroundings) -> subprocess.CompletedProcess:
    environment = os.environ | {"TEMPOSCOPE_PYTHON": sys.executable}
    return subprocess.run([BIN / "temposcope", *words], capture_output=True, text=True,
                          **{"env": environment} | surroundings)  # fmt: skip


def query(file, sql: str, values: dict | None = None) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(file)) as trace:
        return trace.execute(sql, values or {}).fetchall()


def thorough(case):
    """A test that `scripts/test` leaves out: others hold its kind in less time."""
    case.is_thorough = True
    return case


class _OfTier(unittest.TestLoader):
    """Loads the cases of one tier, quick or thorough; without the variable, those of both."""

    def getTestCaseNames(self, test_case):
        tier = os.environ.get("TEMPOSCOPE_TIER", "")
        names = super().getTestCaseNames(test_case)
        return [name for name in names if tier in ("", self.tier_of(test_case, name))]

    @staticmethod
    def tier_of(test_case, name: str) -> str:
        marked = (test_case, getattr(test_case, name))
        return "thorough" if any(getattr(it, "is_thorough", False) for it in marked) else "quick"


def main() -> None:
    unittest.main("__main__", testLoader=_OfTier())


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "out.tscope"

    def query(self, sql: str, file=None, values: dict | None = None) -> list[tuple]:
        """Of the trace that most tests of the class are about."""
        return query(file or self.file, sql, values)

    def succeed(self, *words, **surroundings) -> subprocess.CompletedProcess:
        ran = temposcope(*words, **surroundings)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def told(self, *words) -> dict:
        """What a command says as JSON."""
        return json.loads(self.succeed(*words, "--json").stdout)
