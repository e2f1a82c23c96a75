"""Lists and reads the files of the repository, for the tidy tests."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
# Comments and literals of C++. The text of a string is in `raw` or in `text`; digits may be 1'000.
CPP_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^()\s\\]*)\((?P<raw>.*?)\)(?P=mark)\"|"
    r"\"(?P<text>(?:\\.|[^\"\\\n])*)\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
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


def version() -> str:
    """The version of the project."""
    (found,) = re.findall(
        r"^project\(temposcope VERSION ([0-9.]+)", read_text("CMakeLists.txt"), re.MULTILINE
    )
    return found


def load_script(name: str):
    """Imports a command in Python, whose file name is no module name: its path in the repository,
    or its name in tools/."""
    sys.dont_write_bytecode = True
    (path,) = [ROOT / name] if "/" in name else (ROOT / "tools").glob(f"*/{name}")
    sys.path.insert(0, str(path.parent))
    loader = importlib.machinery.SourceFileLoader(path.stem.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
