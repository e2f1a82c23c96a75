"""One rank of a run whose other ranks are not there.

The process group is torch's own, on the virtual GPU's NCCL. What it would learn from other ranks,
it learns from a store that answers for them: NCCL's ids, and that all have arrived. Gloo, which
connects to each rank, is replaced by torch's process group without peers.
"""

import re
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup
from torch.distributed import distributed_c10d as c10d
from torch.distributed.rendezvous import _rendezvous_handlers

_NCCL_ID_BYTES = 128
# "default_pg/0//cuda//0": the id of a communicator by its number, by the two ranks that talk, or of
# one of several roots.
_NCCL_ID = re.compile(r"/cuda/+(.*/)?(UniqueNCCLID:)?\d+([:_]\d+)*$")
# What no rank has to wait for: all have arrived, and nobody asks for a dump.
_ARRIVALS = ("last_worker",)


class AbsentRanks(dist.Store):
    """The store of a rank alone. What the rank itself has set, it gets back."""

    def __init__(self, rank: int):
        super().__init__()
        self._rank = rank
        self._own: dict[str, bytes] = {}

    def set(self, key, value):
        self._own[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        if key in self._own:
            return self._own[key]
        if _NCCL_ID.search(key):
            return key.encode()[-_NCCL_ID_BYTES:].ljust(_NCCL_ID_BYTES, b"\0")
        raise RuntimeError(
            f"temposcope: rank {self._rank} waits for '{key}', which a rank that does not run "
            "would set: run all ranks (without --world-size)."
        )

    def add(self, key, amount):
        total = int(self._own.get(key, b"0")) + amount
        self._own[key] = str(total).encode()
        return total

    def wait(self, keys, timeout: timedelta | None = None):
        for key in keys:
            if not key.endswith(_ARRIVALS):
                self.get(key)

    def check(self, keys):
        return all(key in self._own for key in keys)

    def delete_key(self, key):
        return self._own.pop(key, None) is not None

    def num_keys(self):
        return len(self._own)

    def compare_set(self, key, expected, desired):
        if self._own.get(key, b"") == expected.encode():
            self.set(key, desired)
        return self._own.get(key, expected.encode())


class _IsFake(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, FakeProcessGroup)


class _GlooWithoutPeers(metaclass=_IsFake):
    """In the place of ProcessGroupGloo: each collective leaves the own values."""

    def __new__(cls, _store, rank, size, **_options):
        return FakeProcessGroup._create_internal(rank, size)


def _not_as_gloo(method):
    """DDP asks a backend of the type GLOO for members that ProcessGroupGloo alone has."""
    types = dist.ProcessGroup.BackendType

    def call(group, *arguments):
        method(group, *(types.CUSTOM if one == types.GLOO else one for one in arguments))

    return call


def enter(rank: int, world_size: int) -> None:
    """From here on this process is rank `rank` of `world_size`."""
    store = AbsentRanks(rank)

    def answer(_url, **_options):
        yield store, rank, world_size

    for scheme in ("env", "tcp", "file"):
        _rendezvous_handlers[scheme] = answer
    c10d.ProcessGroupGloo = _GlooWithoutPeers
    # Torch numbers the collectives of gloo's groups, to say in an error where ranks disagree.
    FakeProcessGroup._set_sequence_number_for_group = lambda _group: None
    for name in ("_register_backend", "_set_default_backend"):
        setattr(dist.ProcessGroup, name, _not_as_gloo(getattr(dist.ProcessGroup, name)))
    # A split needs to know what the other ranks choose; torch then makes a new communicator.
    c10d._get_split_source = lambda _group: None


def retire_finished_work() -> None:
    """Lets each process group drop what it has finished, as its watchdog thread does some time."""
    if not dist.is_initialized():
        return
    for group in list(c10d._world.pg_map):
        backends = map(group._get_backend, group._device_types)
        if any(isinstance(backend, c10d.ProcessGroupNCCL) for backend in backends):
            group._wait_for_pending_works()
