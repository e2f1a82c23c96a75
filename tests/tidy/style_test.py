"""Checks formatting, line length, marks of unfinished work, machine paths and unused files."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

import repository

MAX_COLUMNS = 100
# A longer file is a prompt to look for the part that wants its own name, not to cut it in two.
MAX_LINES = 700
TEXT_SUFFIXES = repository.CPP_SUFFIXES | {".py", ".sh", ".cmake", ".md", ".txt", ".json", ""}
# The marks are written in two parts, so that this file does not report itself.
UNFINISHED = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b"
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(root|work)/|/tmp/" + "ts/")
URL = re.compile(r"https?" + "://")
# Only app/commands knows how the command line spells a field. The window shows the errors of the
# others, and those of the worker.
WITHOUT_OPTIONS = (
    "models/",
    "profiler/",
    "app/panels/",
    "app/user/",
    "app/worker/",
    "app/workspace/",
)
# The worker's own command line, and a command that is written into a data file.
MAY_NAME_OPTIONS = {"app/worker/worker_main.cpp", "app/user/user_calibration.cpp",
                    "app/workspace/planner_form.cpp"}
OPTION_NAME = re.compile(r'"[^"]*(?<![\w-])--[a-z][^"]*"')
SET_UP_FILES = ("scripts/", "cmake/", ".ci/", "CMakeLists.txt", "CMakePresets.json")


def line_problems(path: str, text: str) -> list[str]:
    """Problems of single lines of a file, as `path:line: sentence`."""
    problems = []
    suffix = pathlib.PurePath(path).suffix
    is_code = suffix in repository.CPP_SUFFIXES | {".py"}
    for number, line in enumerate(text.splitlines(), start=1):

        def report(sentence: str) -> None:
            problems.append(f"{path}:{number}: {sentence}")

        if is_code and len(line) > MAX_COLUMNS:
            report(f"the line has {len(line)} columns; at most {MAX_COLUMNS} are allowed")
        if suffix in TEXT_SUFFIXES and "\t" in line:
            report("the line has a tab; indent with spaces")
        if is_code and line != line.rstrip():
            report("the line ends with white space")
        if suffix in TEXT_SUFFIXES and UNFINISHED.search(line):
            report("the line has a mark of unfinished work; finish it or open an issue")
        if MACHINE_PATH.search(line):
            report("a path of one machine")
        is_comment = line.lstrip().startswith("//")
        in_program = is_code and not path.endswith(".py")
        knows_none = path.startswith(WITHOUT_OPTIONS) and path not in MAY_NAME_OPTIONS
        if in_program and knows_none and not is_comment and OPTION_NAME.search(line):
            report("an option of the command line; name the field (models::Error::fields)")
        if path.startswith(SET_UP_FILES) and URL.search(line):
            report("the line has a URL; set-up files must refer to packages by name")
    return problems


def unused_files(paths: list[str], texts: dict[str, str]) -> list[str]:
    """Problems of sources that no CMakeLists.txt names and of headers that no file includes."""
    named = {
        os.path.normpath(os.path.join(os.path.dirname(path), name))
        for path, text in texts.items()
        if path.endswith("CMakeLists.txt")
        for name in re.findall(r"[\w./-]+\.(?:cpp|cu)\b", text)
    }
    included = {
        match
        for path, text in texts.items()
        if pathlib.PurePath(path).suffix in repository.CPP_SUFFIXES
        for match in re.findall(r'#include "([^"]+)"', text)
    }
    problems = []
    for path in paths:
        pure = pathlib.PurePath(path)
        if pure.suffix not in repository.CPP_SUFFIXES or not path.startswith(repository.OURS):
            continue
        if pure.suffix in {".h", ".cuh"}:
            if path not in included:
                problems.append(f"{path}: no file includes it")
            continue
        if path not in named:
            problems.append(f"{path}: no CMakeLists.txt names it")
    return problems


class Repository(unittest.TestCase):
    def setUp(self):
        self.texts = {}
        for path in repository.files():
            text = repository.read_text(path)
            if text is not None:
                self.texts[path] = text

    def assert_none(self, problems: list[str]) -> None:
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_lines(self):
        self.assert_none(
            [problem for path, text in self.texts.items() for problem in line_problems(path, text)]
        )

    def test_every_file_is_used(self):
        self.assert_none(unused_files(list(self.texts), self.texts))

    def test_files_are_short(self):
        self.assert_none(
            [
                f"{path}: {text.count(chr(10))} lines, more than {MAX_LINES}; "
                "which part of it is an idea that deserves its own file?"
                for path, text in self.texts.items()
                if pathlib.PurePath(path).suffix in repository.CPP_SUFFIXES
                and text.count("\n") > MAX_LINES
            ]
        )

    def test_formatting(self):
        clang_format = os.environ.get("CLANG_FORMAT") or shutil.which("clang-format")
        self.assertTrue(clang_format, "clang-format is not installed; run scripts/setup")
        paths = repository.cpp_files()
        if not paths:
            return
        result = subprocess.run(
            [clang_format, "--dry-run", "-Werror", "--ferror-limit=1", *paths],
            cwd=repository.ROOT,
            capture_output=True,
            text=True,
        )
        where = sorted(
            {line.split(": error:")[0] for line in result.stderr.splitlines() if ": error:" in line}
        )
        self.assertEqual(
            result.returncode,
            0,
            "not formatted; run scripts/format:\n" + ("\n".join(where) or result.stderr),
        )


class Checks(unittest.TestCase):
    """Tests of the checks themselves."""

    def test_bad_lines_are_reported(self):
        bad = [
            "x" * (MAX_COLUMNS + 1),
            "\tint x;",
            "// TO" + "DO: later",
            'open("/ro' + 'ot/a");',
            "a ",
        ]
        for line in bad:
            self.assertEqual(len(line_problems("profiler/x.cpp", f"int a;\n{line}\n")), 1, line)
        self.assertEqual(line_problems("profiler/x.cpp", "int a;  // fine\n"), [])
        option = 'fail("choose a shorter --seq")\n'
        for folder in WITHOUT_OPTIONS:
            self.assertEqual(len(line_problems(folder + "x.cpp", option)), 1, folder)
        self.assertEqual(line_problems("app/commands/x.cpp", option), [])
        self.assertEqual(line_problems("profiler/x.cpp", '/// a command adds "--seq"\n'), [])
        self.assertEqual(len(line_problems("scripts/setup", "get ht" + "tp://x\n")), 1)

    def test_unused_files_are_reported(self):
        texts = {
            "app/CMakeLists.txt": "SOURCES main.cpp panels/../panels/a.cpp",
            "app/main.cpp": "",
            "app/panels/a.cpp": '#include "app/used.h"',
            "app/used.h": "",
            "app/alone.h": "",
            "app/a.cpp": "",
        }
        self.assertEqual(
            unused_files(list(texts), texts),
            ["app/alone.h: no file includes it", "app/a.cpp: no CMakeLists.txt names it"],
        )


if __name__ == "__main__":
    unittest.main()
