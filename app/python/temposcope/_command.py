"""Temposcope's own command, started from Python, and how it writes sizes."""

import os
import subprocess

import torch

from . import _library

# Of the process that asks: it may be recorded, or on a virtual GPU, and the command is not.
_NOT_INHERITED = (
    "LD_PRELOAD", "TEMPOSCOPE_RUN", "TEMPOSCOPE_VIRTUAL_GPU", "TORCH_DIST_USE_NCCL2",
)  # fmt: skip
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def temposcope(*words, variables=(), **options) -> subprocess.CompletedProcess:
    """Runs the command to its end. What it prints is text; `variables` join its environment."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    environment["TEMPOSCOPE_TORCH_FOLDER"] = os.path.dirname(torch.__file__)
    return subprocess.run(
        [str(word) for word in (_library.programs() / "temposcope", *words)],
        env=environment | dict(variables), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, errors="replace", **options,
    )  # fmt: skip


def sentence_of(ran: subprocess.CompletedProcess) -> str:
    """The last one that the command said itself."""
    ours = [line for line in ran.stderr.splitlines() if line.startswith("temposcope: ")]
    return ours[-1].removeprefix("temposcope: ") if ours else ran.stderr.strip()


def format_bytes(size_bytes: int) -> str:
    """Three digits, as reports write them: "23.2 MiB"."""
    value, unit = float(size_bytes), 0
    while round(value) >= 1024 and unit + 1 < len(_UNITS):
        value /= 1024
        unit += 1
    decimals = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f} {_UNITS[unit]}"
