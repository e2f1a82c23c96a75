"""Opens the compiled libraries of this package for the torch that is imported."""

import ctypes
import functools
import pathlib

import torch

from . import _torch_folders

programs = _torch_folders.programs


@functools.cache
def folder() -> pathlib.Path:
    """The folder of the libraries for the torch that is imported. In a checkout they are built if
    there are none. Raises ImportError."""
    base = programs()
    ours = _torch_folders.Torch(
        torch.__version__, torch.version.cuda, pathlib.Path(torch.__file__).parent
    )
    try:
        return _torch_folders.folder_for(ours, base)
    except ImportError:
        if not _torch_folders.can_build_for(ours, base):
            raise
    _torch_folders.build_for(ours, base)
    return _torch_folders.folder_for(ours, base)


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
