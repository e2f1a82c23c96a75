"""Finds and opens the compiled libraries of this package. They are built for one version of
torch."""

import ctypes
import functools
import os
import pathlib

import torch

TORCH = "2.11"

_installed = torch.__version__.split("+")[0]
if not _installed.startswith(TORCH + "."):
    raise ImportError(
        f"this temposcope is built for torch {TORCH}, and torch {_installed} is installed: "
        f"run pip install 'torch=={TORCH}.*', or build Temposcope with your torch"
    )


def folder() -> pathlib.Path:
    """The folder of the programs and libraries: `bin` of an installed package, or of the build.

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
