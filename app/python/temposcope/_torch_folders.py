"""Which compiled libraries serve which torch. Nothing here imports torch: `temposcope doctor` runs
this file to ask what the torch of the user's Python gets, and prints what it answers.

    bin/                the programs, and the libraries for one torch: torch_version names it
    bin/torch-2.15/     the libraries for another one
    bin/torch-2.15-cpu/ the same for a torch without CUDA
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
import typing

TORCH = "2.11"  # of scripts/setup and of the wheel: of a folder that names no other
OLDEST = (2, 8)
TESTED = {  # where
    "2.8": "the CPU and simulated GPUs",
    "2.9": "the CPU and simulated GPUs",
    "2.10": "the CPU and simulated GPUs",
    "2.11": "the CPU, simulated GPUs and an H200",
    "2.12": "the CPU and simulated GPUs",
    "2.13": "the CPU and simulated GPUs",
    "2.14": "the CPU and simulated GPUs",
    "2.15": "the CPU and simulated GPUs",
}


class Torch(typing.NamedTuple):
    """A torch that is installed."""

    version: str  # "2.15.0+cu132"
    cuda: str | None  # "13.2"
    folder: pathlib.Path  # `torch` of its environment

    @property
    def minor(self) -> str:
        """ "2.15": what one build of the libraries serves."""
        return ".".join(re.findall(r"\d+", self.version)[:2])

    @property
    def names(self) -> list[str]:
        """Of the folders that serve it, the best one first."""
        return [self.minor] if self.cuda else [self.minor, f"{self.minor}-cpu"]


def number_of(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", minor))


def programs() -> pathlib.Path:
    """The folder of the programs: `bin` of an installed package, or of the build.

    TEMPOSCOPE_LIBRARIES names another one. Raises ImportError when there is none.
    """
    package = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("TEMPOSCOPE_LIBRARIES")
    places = [pathlib.Path(named)] if named else [package / "bin", package.parent.parent]
    for place in places:
        if (place / "libtempo_ops.so").is_file():
            return place
    raise ImportError(
        f"the libraries of temposcope are not in {places[-1]}: run scripts/build again, or name "
        "their folder in TEMPOSCOPE_LIBRARIES"
    )


def folders_in(base: pathlib.Path) -> dict[str, pathlib.Path]:
    """{"2.11": the folder for it}. Only complete folders have the file torch_version."""
    name = base / "torch_version"
    folders = {name.read_text().strip() if name.is_file() else TORCH: base}
    for place in base.glob("torch-*"):
        if (place / "torch_version").is_file():
            folders.setdefault(place.name.removeprefix("torch-"), place)
    return folders


class NoLibraries(ImportError):
    """Nothing is built for a torch. One sentence says what to do."""


def folder_for(torch: Torch, base: pathlib.Path) -> pathlib.Path:
    """The folder for this torch. Raises NoLibraries when none fits."""
    folders = folders_in(base)
    for name in torch.names:
        if name in folders:
            return folders[name]
    if _failure_of(torch, base).exists():
        raise _build_failed(torch, base)
    versions = sorted(folders, key=number_of)
    raise NoLibraries(
        f"this temposcope is built for torch {_listed(versions)}, and torch {torch.version} "
        f"is installed: {_remedy(torch, versions[-1])}"
    )


def _listed(words: list[str]) -> str:
    """ "2.8, 2.11 and 2.15" """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _remedy(torch: Torch, newest: str) -> str:
    install = f"run pip install 'torch=={newest.removesuffix('-cpu')}.*'"
    if number_of(torch.minor) < OLDEST:
        return install
    return f"{install}, or in a checkout scripts/build --torch {torch.minor}"


# ---- a torch that nothing was built for ---------------------------------------------------------


def checkout_of(base: pathlib.Path) -> pathlib.Path | None:
    """The checkout whose scripts/build has made `base`; None for an installed package."""
    root = base.parent.parent
    is_one = base == root / "build/bin" and (root / "scripts/build").is_file()
    return root if is_one and os.access(base, os.W_OK) else None


def can_build_for(torch: Torch, base: pathlib.Path) -> bool:
    has_headers = (torch.folder / "include/ATen").is_dir()
    compiler = shlex.split(os.environ.get("CXX", ""))[:1] or ["c++"]  # "ccache g++"
    has_compiler = shutil.which(compiler[0]) is not None
    is_possible = has_headers and has_compiler and not _failure_of(torch, base).exists()
    return checkout_of(base) is not None and number_of(torch.minor) >= OLDEST and is_possible


def _failure_of(torch: Torch, base: pathlib.Path) -> pathlib.Path:
    """The output of a build that failed: it is not tried again, which would take minutes."""
    return base / f"torch-{torch.version}.failed"


def _build_failed(torch: Torch, base: pathlib.Path) -> NoLibraries:
    return NoLibraries(
        f"building the libraries for torch {torch.version} failed, as {_failure_of(torch, base)} "
        "says: fix that and remove this file to build again, or run pip install "
        f"'torch=={TORCH}.*'"
    )


@contextlib.contextmanager
def _one_at_a_time(base: pathlib.Path):
    """Ranks of one program start together."""
    with open(base / "torch-build.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_for(torch: Torch, base: pathlib.Path) -> None:
    """Builds the libraries for this torch, once, and says so. Raises NoLibraries."""
    with _one_at_a_time(base):
        if not folders_in(base).keys().isdisjoint(torch.names):
            return
        if _failure_of(torch, base).exists():  # another rank has tried
            raise _build_failed(torch, base)
        log, begin = base / f"torch-{torch.minor}.log", time.monotonic()
        print(f"temposcope: building its libraries for torch {torch.version}, once, in about 5 "
              f"minutes ({log} tells how far it is) ...", file=sys.stderr, flush=True)  # fmt: skip
        ours = re.compile("LD_|PYTHON|TEMPOSCOPE_(?!DEPS$)")  # a simulated GPU, a recording
        environment = {name: value for name, value in os.environ.items() if not ours.match(name)}
        command = [checkout_of(base) / "scripts/build", "--only-torch", torch.folder]
        with open(log, "w", encoding="utf-8") as output:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        if done.returncode != 0:
            log.replace(_failure_of(torch, base))
            raise _build_failed(torch, base)
        print(f"temposcope: built in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


# ---- for `temposcope doctor` --------------------------------------------------------------------


def find_torch() -> Torch | None:
    """The torch of this Python, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = pathlib.Path(next(iter(spec.submodule_search_locations)))
    told = runpy.run_path(str(folder / "version.py"))
    return Torch(told["__version__"], told.get("cuda"), folder)


def answer() -> dict:
    """What doctor shows."""
    torch, base = find_torch(), programs()
    if torch is None:
        return {"torch": None}
    try:
        folder, sentence = str(folder_for(torch, base)), ""
    except ImportError as error:
        folder, sentence = None, str(error)
    return {
        "torch": torch.version,
        "torch_folder": str(torch.folder),
        "libraries": folder,
        "sentence": sentence,
        "is_built_at_first_use": folder is None and can_build_for(torch, base),
        "tested_on": TESTED.get(torch.minor, ""),
    }


if __name__ == "__main__":
    print(json.dumps(answer()))
