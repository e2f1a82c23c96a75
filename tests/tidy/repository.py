"""Lists and reads the files of the repository, for the tidy tests."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
OURS = ("app", "kernels", "models", "profiler", "tests")


def files() -> list[str]:
    """Paths of all tracked files and of new files that git does not ignore, from the root."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({path for path in listed if path and (ROOT / path).is_file()})


def cpp_files() -> list[str]:
    return [
        path
        for path in files()
        if pathlib.PurePath(path).suffix in CPP_SUFFIXES and path.startswith(OURS)
    ]


def read_text(path: str) -> str | None:
    """The text of a file, or None when it is binary."""
    data = (ROOT / path).read_bytes()
    if path.startswith("tests/fuzz/corpus/") or b"\0" in data[:4096]:
        return None
    return data.decode("utf-8")
