"""Finds and opens the compiled libraries of this package. Those that see torch exist once for each
version of torch that they are built for."""

import ctypes
import functools
import os
import pathlib
import re

import torch

TORCH = "2.11"  # of scripts/setup and of the wheel: of a folder that names no other


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


@functools.cache
def folder() -> pathlib.Path:
    """The folder of the libraries for the torch that is imported. Raises ImportError."""
    installed = torch.__version__.split("+")[0]
    return _folder_for(installed, _folders(programs()), on_simulated_gpu())


def _folders(base: pathlib.Path) -> dict[str, pathlib.Path]:
    """{"2.11": the folder for it}. `base` serves one torch, its torch-2.15 another one."""
    name = base / "torch_version"
    folders = {name.read_text().strip() if name.is_file() else TORCH: base}
    for place in base.glob("torch-*"):
        if (place / "libtempo_ops.so").is_file():
            folders.setdefault(place.name.removeprefix("torch-"), place)
    return folders


def _folder_for(
    installed: str, folders: dict[str, pathlib.Path], simulated: bool
) -> pathlib.Path:
    """The folder for a torch such as "2.11.0". Raises ImportError when none fits."""
    version = ".".join(installed.split(".")[:2])
    first = next(iter(folders))  # whose build has the simulated GPU
    if simulated and version != first:
        raise ImportError(
            f"a simulated GPU needs torch {first}, and torch {installed} is installed: leave out "
            f"--gpu, or run pip install 'torch=={first}.*'"
        )
    if version in folders:
        return folders[version]
    versions = sorted(folders, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    raise ImportError(
        f"this temposcope is built for torch {' and '.join(versions)}, and torch {installed} is "
        f"installed: run pip install 'torch=={first}.*', or build Temposcope with your torch"
    )


@functools.cache
def load_ops() -> None:
    """Makes `torch.ops.tempo` known, on the CPU and, where torch has CUDA, on GPUs.

    >>> temposcope.load_ops()
    >>> torch.ops.tempo.gelu(torch.randn(4, 8), False, "bit").shape
    torch.Size([4, 8])
    """
    torch.ops.load_library(str(folder() / "libtempo_ops.so"))
    cuda = folder() / "libtempo_ops_cuda.so"
    if torch.version.cuda is not None and cuda.is_file():
        torch.ops.load_library(str(cuda))


@functools.cache
def on_simulated_gpu() -> bool:
    """Whether the GPUs of this process are simulated: what kernels compute reads as zeros."""
    return hasattr(ctypes.CDLL(None), "temposcope_virtual_gpu")


def open_library(name: str) -> ctypes.PyDLL:
    """A library of ours by its file name. Its functions are called with Python's lock held."""
    return ctypes.PyDLL(str(folder() / name))
