"""Each header compiles by itself.

A source whose first include is its own header proves that, if the compiler gets the source alone,
as in the preset `dev`. Headers without such a source are given to the compiler alone, with the
flags of a source near them (compile_commands.json of the build folder). The preset `release`
compiles sources in batches, so only the first source of a batch proves its header there:
TEMPOSCOPE_ALL_HEADERS=1 also gives the other headers to the compiler alone, which takes minutes.
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

ALL_HEADERS = os.environ.get("TEMPOSCOPE_ALL_HEADERS") == "1"
BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))


def first_include(text: str) -> str | None:
    match = re.search(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE)
    return match[1] if match else None


def sources_of(file: pathlib.Path) -> list[str]:
    """The sources of ours that this compiler run reads: the file itself, or those of a batch."""
    files = [file]
    if file.parent.name == "Unity":
        files = [pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', file.read_text())]
    return [
        str(source.relative_to(repository.ROOT))
        for source in files
        if source.suffix in (".cpp", ".cu") and source.is_relative_to(repository.ROOT)
    ]


def flags_of(command: str, file: str) -> list[str]:
    """The compiler and its flags, without launcher, input and output."""
    words = shlex.split(command)
    if pathlib.PurePath(words[0]).name == "ccache":
        words = words[1:]
    flags, skip = [], False
    for word in words:
        if skip or word in ("-c", file):
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word != "-MD":
            flags.append(word)
    return flags


class Build:
    """What compile_commands.json says."""

    def __init__(self):
        self.flags = {}  # of each .cpp, by its path from the root
        self.first = set()  # the sources that a compiler run reads before any other
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            sources = sources_of(pathlib.Path(entry["file"]))
            self.first.update(sources[:1])
            flags = flags_of(entry["command"], entry["file"])
            self.flags.update({source: flags for source in sources if source.endswith(".cpp")})

    def proves(self, header: str) -> bool:
        """Whether the source of the same name begins with the header and, for ALL_HEADERS, a
        compiler run begins with that source."""
        stem = pathlib.PurePath(header).with_suffix("")
        sources = [str(stem.with_suffix(suffix)) for suffix in (".cpp", ".cu")]
        return any(
            first_include((repository.ROOT / source).read_text()) == header
            for source in sources
            if source in self.first or (not ALL_HEADERS and source in self.flags)
        )


def nearest(header: str, commands: dict[str, list[str]]) -> list[str] | None:
    """The flags of the source that shares most folders with the header, or better its name."""
    own = str(pathlib.PurePath(header).with_suffix(".cpp"))
    if own in commands:
        return commands[own]
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
        build = Build()
        work = {}
        for header in repository.cpp_files():
            if header.endswith(".h") and not build.proves(header):
                flags = nearest(header, build.flags)
                self.assertIsNotNone(flags, f"{header}: no source is built near it")
                work[header] = flags
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = [
                problem for problem in pool.map(compile_alone, work, work.values()) if problem
            ]
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_a_header_that_lacks_an_include_is_reported(self):
        flags = next(iter(Build().flags.values()))
        self.assertIsNotNone(compile_alone("no/such/header.h", flags))


if __name__ == "__main__":
    if not (BUILD / "compile_commands.json").exists():
        print(f"{BUILD} holds no compile_commands.json; run scripts/build --tests")
        sys.exit(77)
    unittest.main()
