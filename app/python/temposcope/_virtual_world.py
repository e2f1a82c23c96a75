"""One rank of a run whose other ranks are not there.

The process group is torch's own, on the virtual GPU's NCCL. What it would learn from other ranks,
it learns from a store that answers for them: NCCL's ids, and that all have arrived. Gloo, which
connects to each rank, is replaced by torch's process group without peers. Small messages between
ranks that run come through a folder (profiler/capture/values/rank_messages.h), and so do Python's
objects, which torch sends as bytes. Of objects that are gathered each absent rank holds those of
this one.
"""

import functools
import inspect
import io
import os
import pickle
import re
import traceback
import urllib.parse
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup
from torch.distributed import distributed_c10d as c10d
from torch.distributed.rendezvous import _rendezvous_handlers
from torch.nn.parallel import DistributedDataParallel

from ._ranks import Rank

_NCCL_ID_BYTES = 128
# "default_pg/0//cuda//0": the id of a communicator by its number, by the two ranks that talk, or of
# one of several roots.
_NCCL_ID = re.compile(r"/cuda/+(.*/)?(UniqueNCCLID:)?\d+([:_]\d+)*$")
# What no rank has to wait for: all have arrived, and nobody asks for a dump.
_ARRIVALS = ("last_worker",)
_RUN_ALL = "run all ranks (without --world-size)"


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
            f"would set: {_RUN_ALL}."
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


def _init_helper_of_ddp():
    """DDP asks the work of an all_reduce for its result, which work without peers has not."""
    init_helper = DistributedDataParallel._ddp_init_helper

    def call(ddp, *arguments, **options):
        backend = ddp.process_group._get_backend(torch.device(ddp.device_type))
        if isinstance(backend, FakeProcessGroup):
            raise RuntimeError(
                "temposcope: DDP on gloo gets no result from ranks that do not run: give "
                f"init_process_group nccl, or {_RUN_ALL}."
            )
        return init_helper(ddp, *arguments, **options)

    return call


# ---- objects, which torch sends as bytes


def _copies(thing, count: int) -> list:
    """As the objects that come back from other processes."""
    said = pickle.dumps(thing)
    return [pickle.loads(said) for _ in range(count)]


class _NoObject(Exception):
    """The bytes of an object are those of a rank that does not run."""


def _tensor_to_object(tensor, tensor_size, _group, weights_only=False):
    """Torch's own needs NumPy. `weights_only` came with torch 2.15, here and in the others."""
    said = bytes(tensor.tolist()[: int(tensor_size)])
    if not any(said):
        raise _NoObject
    return torch.load(io.BytesIO(said), weights_only=True) if weights_only else pickle.loads(said)


def _all_gather_object(object_list, obj, group=None, weights_only=False):
    if dist.get_rank(group) < 0:
        return
    size = dist.get_world_size(group)
    if len(object_list) < size:
        raise IndexError(f"object_list has {len(object_list)} places, and the group {size} ranks")
    object_list[:size] = _copies(obj, size)


def _gather_object(
    obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False
):
    if dist.get_rank(group) < 0:
        return
    destination = _global_rank(group, dst, group_dst)
    c10d._validate_output_list_for_rank(dist.get_rank(), destination, object_gather_list)
    if object_gather_list is not None:
        _all_gather_object(object_gather_list, obj, group)


def _global_rank(group, rank: int | None, group_rank: int | None) -> int:
    if group_rank is None:
        return rank or 0
    return dist.get_global_rank(group or dist.group.WORLD, group_rank)


def _objects_of_absent_rank(source: int | str) -> RuntimeError:
    return RuntimeError(
        f"temposcope: rank {dist.get_rank()} waits for objects of {source}, which does not run "
        f"with it: {_RUN_ALL}."
    )


def _broadcast_object_list_of(broadcast):
    """Of a source that runs, or that another rank stands for, come its objects. Of another one,
    what a rank has in the list counts as what it gets; None is a place for it."""

    @functools.wraps(broadcast)
    def call(object_list, src=None, group=None, device=None, group_src=None, **options):
        if not object_list:
            raise ValueError("object_list of broadcast_object_list is empty")
        own = list(object_list)
        try:
            broadcast(object_list, src, group, device, group_src=group_src, **options)
        except _NoObject:
            object_list[:] = own
            if all(thing is None for thing in own):
                source = _global_rank(group, src, group_src)
                raise _objects_of_absent_rank(f"rank {source}") from None

    return call


def _scatter_object_list(
    scatter_object_output_list,
    scatter_object_input_list=None,
    src=None,
    group=None,
    group_src=None,
    weights_only=False,
):
    rank = dist.get_rank(group)
    if rank < 0:
        return
    source = _global_rank(group, src, group_src)
    if source != dist.get_rank():
        raise _objects_of_absent_rank(f"rank {source}")
    size, given = dist.get_world_size(group), len(scatter_object_input_list or ())
    if given != size:
        raise ValueError(f"scatter_object_input_list has {given} objects for {size} ranks")
    (scatter_object_output_list[0],) = _copies(scatter_object_input_list[rank], 1)


def _recv_object_list_of(receive):
    @functools.wraps(receive)
    def call(object_list, src=None, *arguments, **options):
        try:
            return receive(object_list, src, *arguments, **options)
        except _NoObject:
            source = "another rank" if src is None else f"rank {src}"
            raise _objects_of_absent_rank(source) from None

    return call


# ---- the process


def _line_of_program() -> str:
    """The line of the user's program that runs, "train.py:12"."""
    folders = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
    not_its = (*(folder + os.sep for folder in folders), "<frozen")
    frames = reversed(traceback.extract_stack())
    lines = (frame for frame in frames if not frame.filename.startswith(not_its))
    line = next(lines, None)
    return "the program" if line is None else f"{os.path.basename(line.filename)}:{line.lineno}"


def _check(url: str, own: Rank) -> None:
    """`url` may end in ?rank=3&world_size=64; env:// takes from variables what it does not say."""
    parts = urllib.parse.urlsplit(url)
    said = dict(os.environ) if parts.scheme == "env" else {}
    said |= {name.upper(): value for name, value in urllib.parse.parse_qsl(parts.query)}
    numbers = {name: said.get(name.upper(), "") for name in own._fields}
    asked = own._replace(**{name: int(text) for name, text in numbers.items() if text.isdecimal()})
    if asked != own:
        raise RuntimeError(
            f"temposcope: {_line_of_program()} calls this process {asked}, and it is {own}: leave "
            "both numbers to the launcher (RANK, WORLD_SIZE), or give the program's to "
            "--world-size."
        )


def _without_store(init_process_group):
    """A store of the program's own would wait for absent ranks. Without it torch asks for ours,
    which checks the rank."""
    signature = inspect.signature(init_process_group)

    @functools.wraps(init_process_group)
    def call(*arguments, **options):
        bound = signature.bind(*arguments, **options)
        bound.arguments["store"] = None
        return init_process_group(*bound.args, **bound.kwargs)

    return call


def enter(rank: int, world_size: int) -> None:
    """From here on this process is rank `rank` of `world_size`."""
    own = Rank(rank, world_size)
    store = AbsentRanks(rank)

    def answer(url, **_options):
        _check(url, own)
        yield store, *own

    for scheme in ("env", "tcp", "file"):
        _rendezvous_handlers[scheme] = answer
    c10d.ProcessGroupGloo = _GlooWithoutPeers
    # Torch numbers the collectives of gloo's groups, to say in an error where ranks disagree.
    FakeProcessGroup._set_sequence_number_for_group = lambda _group: None
    FakeProcessGroup._set_default_timeout = lambda _group, _timeout: None
    for name in ("_register_backend", "_set_default_backend"):
        setattr(dist.ProcessGroup, name, _not_as_gloo(getattr(dist.ProcessGroup, name)))
    DistributedDataParallel._ddp_init_helper = _init_helper_of_ddp()
    replaced = {"init_process_group": _without_store(c10d.init_process_group)}
    for function in (
        _all_gather_object,
        _gather_object,
        _scatter_object_list,
    ):
        replaced[function.__name__[1:]] = function
    for name, of in (
        ("broadcast_object_list", _broadcast_object_list_of),
        ("recv_object_list", _recv_object_list_of),
    ):
        replaced[name] = of(getattr(c10d, name))
    for module in (c10d, dist):
        vars(module).update(replaced)
    c10d._tensor_to_object = _tensor_to_object
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
