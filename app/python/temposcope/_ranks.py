"""Which rank of a distributed run this process is, from what its launcher or torch says."""

import hashlib
import json
import os
from typing import NamedTuple

import torch.distributed as dist

# What launchers set, in the order in which they are believed: torchrun and accelerate, Open MPI,
# MPICH and Intel MPI, Slurm. Slurm comes last, because torchrun runs under it, too.
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_PROCESS = "TEMPOSCOPE_RANK_PROCESS"  # "4711 3 1": its id, RANK and LOCAL_RANK
_PROCESSES_OF_NODE = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS_PER_NODE",
)


class Rank(NamedTuple):
    rank: int = 0
    world_size: int = 1

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world_size}"


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def from_environment() -> Rank:
    for rank_name, size_name in _RANKS:
        rank, size = _number(rank_name), _number(size_name)
        if rank is not None and size is not None and rank < size:
            return Rank(rank, size)
    return Rank()


def local_rank() -> int:
    """Which one of its node's processes this is, from its launcher; 0 without one."""
    ranks = (_number(name) for name in _LOCAL_RANKS)
    return next((rank for rank in ranks if rank is not None), 0)


def in_torch() -> Rank | None:
    """What torch.distributed says; None: it is not initialized."""
    if dist.is_available() and dist.is_initialized():
        return Rank(dist.get_rank(), dist.get_world_size())
    return None


def current() -> Rank:
    """What torch.distributed says, or until it is initialized what the launcher said."""
    return in_torch() or from_environment()


def take_environment() -> None:
    """The rank that is in the environment is this process: those that it starts inherit it, and are
    not the rank."""
    started = _as_started()
    if os.environ.get(_PROCESS, "").partition(" ")[2] != started:
        os.environ[_PROCESS] = f"{os.getpid()} {started}"


def launched() -> int | None:
    """The rank as which a launcher started this process. None: it may be what launches ranks, which
    Slurm gives numbers, too, or what a rank started."""
    pid, _, started = os.environ.get(_PROCESS, "").partition(" ")
    is_inherited = started == _as_started() and pid != str(os.getpid())
    return None if is_inherited else _number("RANK")


def _as_started() -> str:
    """Of two ranks never the same, nor of a launcher and a rank that it starts."""
    return " ".join(os.environ.get(name, "-") for name in ("RANK", "LOCAL_RANK"))


def known() -> int | None:
    """The rank that this process surely is."""
    rank = in_torch()
    return launched() if rank is None else rank.rank


def launch_id() -> str:
    """The same on all nodes of a launch; of launches on one machine at one time different, because
    each needs a port of its own. Virtual ones need none: see _virtual_launch. Empty: not known."""
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    launch = [os.environ.get(name, "") for name in names]
    if not all(launch[1:]):
        return ""
    return hashlib.sha256("\n".join(launch).encode()).hexdigest()[:16]


def run_id(own: str) -> str:
    """Of no other run, the same on all nodes where that can be known; else `own`. Without --rdzv-id
    torchrun calls every launch on fixed nodes "none"."""
    is_named = os.environ.get("TORCHELASTIC_RUN_ID", "") not in ("", "none")
    return (is_named and launch_id()) or own


def file_in(folder: str, rank: int) -> str:
    """The trace of a rank: names sort as ranks do."""
    return os.path.join(folder, f"rank-{rank:04}.tscope")


def give_each_process_a_card(variable: str = "TEMPOSCOPE_VIRTUAL_GPU") -> None:
    """A node with several processes has as many virtual GPUs, so that each finds the card of its
    local rank. Called before the first call of CUDA, which reads the variable."""
    processes = max((_number(name) or 1 for name in _PROCESSES_OF_NODE), default=1)
    text = os.environ.get(variable)
    if text is None or processes == 1:
        return
    machine = json.loads(text)
    if len(machine["devices"]) == 1:
        machine["devices"] *= processes
        os.environ[variable] = json.dumps(machine)


def folder_of_launch(status: str) -> str:
    """What the ranks of a virtual launch share, beside the file of their status."""
    return f"{status}.ranks"
