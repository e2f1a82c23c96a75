"""Each header compiles by itself.

A source whose first include is its own header proves that with every build. Headers without such a
source are given to the compiler alone, with the flags of a source near them (compile_commands.json
of the build folder).
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

import repository

BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))


def first_include(text: str) -> str | None:
    match = re.search(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE)
    return match[1] if match else None


def proved_by_a_source(header: str) -> bool:
    """Whether some source of the same name includes the header before anything else."""
    stem = pathlib.PurePath(header).with_suffix("")
    for suffix in (".cpp", ".cu"):
        source = repository.ROOT / stem.with_suffix(suffix)
        if source.is_file() and first_include(source.read_text()) == header:
            return True
    return False


def compile_commands() -> dict[str, list[str]]:
    """Source path from the root -> its compiler and flags, without launcher, input and output."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source.suffix != ".cpp" or not source.is_relative_to(repository.ROOT):
            continue
        words = shlex.split(entry["command"])
        if pathlib.PurePath(words[0]).name == "ccache":
            words = words[1:]
        flags, skip = [], False
        for word in words:
            if skip or word in ("-c", str(source)):
                skip = False
            elif word in ("-o", "-MF", "-MT"):
                skip = True
            elif word != "-MD":
                flags.append(word)
        commands[str(source.relative_to(repository.ROOT))] = flags
    return commands


def nearest(header: str, commands: dict[str, list[str]]) -> list[str] | None:
    """The flags of the source that shares most folders with the header."""
    folders = pathlib.PurePath(header).parent.parts

    def shared(source: str) -> int:
        return len(os.path.commonprefix([folders, pathlib.PurePath(source).parent.parts]))

    best = max(sorted(commands), key=shared, default=None)
    return commands[best] if best and shared(best) > 0 else None


def compile_alone(header: str, flags: list[str]) -> str | None:
    """The compiler's complaint about a file that includes only this header."""
    result = subprocess.run(
        [*flags, "-fsyntax-only", "-x", "c++", "-"],
        input=f'#include "{header}"\n',
        capture_output=True,
        text=True,
        cwd=repository.ROOT,
    )
    return f"{header}:\n{result.stderr[:1500]}" if result.returncode else None


class Headers(unittest.TestCase):
    def test_each_compiles_by_itself(self):
        commands = compile_commands()
        work = {}
        for header in repository.cpp_files():
            if header.endswith(".h") and not proved_by_a_source(header):
                flags = nearest(header, commands)
                self.assertIsNotNone(flags, f"{header}: no source is built near it")
                work[header] = flags
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = [
                problem for problem in pool.map(compile_alone, work, work.values()) if problem
            ]
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_a_header_that_lacks_an_include_is_reported(self):
        commands = compile_commands()
        flags = next(iter(commands.values()))
        self.assertIsNotNone(compile_alone("no/such/header.h", flags))


if __name__ == "__main__":
    if not (BUILD / "compile_commands.json").exists():
        print(f"{BUILD} holds no compile_commands.json; run scripts/build --tests")
        sys.exit(77)
    unittest.main()
