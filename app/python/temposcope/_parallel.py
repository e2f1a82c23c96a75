"""Built-in models over many ranks, by torch's own wrappers.

models/config/parallel.h lists the strategies, and checks them against model and number of ranks.
"""

import contextlib
import functools
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleOutput,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

from ._built_in import AUTOCAST_TYPES, WEIGHT_TYPES, Loss, Model, make_batch
from ._lamb import Lamb
from ._recipes import switches_of

_LOSS_SCALE = 65536.0  # where dynamic scaling begins


def make_step(workload, strategy: str, degree: int, device: torch.device) -> Callable[[], None]:
    """A training step of this rank. `degree` is the N of "hsdp:N", "tp:N" and "pp:N"."""
    if strategy == "pp":
        model, run_backward = _pipeline(workload, degree, device)
    else:
        model = make_model(workload, strategy, degree, device)
        run_backward = _micro_batches(workload, model, device)
    parameters = list(model.parameters())
    optimizer = _make_optimizer(workload, parameters, is_sharded=strategy == "zero1")
    scales = "fp16" in workload.precision

    def step() -> None:
        loss = run_backward()
        if not scales or _unscale([parameter.grad for parameter in parameters]):
            optimizer.step()
        for parameter in parameters:
            parameter.grad = None
        del loss  # until here, as a program does that prints it

    return step


# ---- the model on this rank --------------------------------------------------------------------


def make_model(workload, strategy: str, degree: int, device: torch.device) -> nn.Module:
    """Sharded before it has memory, as a model is that is too large for one card."""
    model = Model(workload)
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    if strategy.startswith("fsdp2"):
        mesh = init_device_mesh(device.type, (world_size,))
        _shard(model, mesh, reshards=strategy == "fsdp2")
    elif strategy in ("hsdp", "tp"):
        names = ("replicate", "shard")
        mesh = init_device_mesh(
            device.type, (world_size // degree, degree), mesh_dim_names=names
        )
        if strategy == "hsdp":
            _shard(model, mesh, reshards=True)
        else:
            _split_tensors(model, mesh["shard"])
            if world_size > degree:
                _shard(model, mesh["replicate"], reshards=True)
    model.materialize(device)
    if strategy == "tp" and model.has_embeddings and world_size == degree:
        _keep_share_of_gradient(model.get_submodule(model.family.word_embeddings).weight)
    return DistributedDataParallel(model) if strategy in ("ddp", "zero1") else model


def _shard(model: Model, mesh, reshards: bool) -> None:
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh, reshard_after_forward=reshards)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshards)


def _split_tensors(model: Model, mesh) -> None:
    """Shoeybi et al. 2019 (Megatron-LM, arXiv 1909.08053), section 3: heads, the inner width and
    the vocabulary are split; positions, norms and the rest of a head are whole on each rank."""
    whole = Replicate()
    for layer in model.layers.values():
        names = layer.family
        plan: dict[str, ParallelStyle] = {path: ColwiseParallel() for path in layer.inputs()}
        plan |= {path: RowwiseParallel() for path in (names.attention_output, names.down)}
        _parallelize(layer, mesh, plan)
    if model.has_embeddings:
        rows = RowwiseParallel(input_layouts=whole)
        _parallelize(model, mesh, {model.family.word_embeddings: rows})
    norms = {"lm": model.family.final_norm, "mlm": "cls.predictions.transform.LayerNorm"}
    if model.head in norms:  # the decoder is a function of a split weight: it takes a DTensor
        into_decoder = PrepareModuleOutput(
            output_layouts=whole, desired_output_layouts=whole, use_local_output=False
        )
        _parallelize(model, mesh, {norms[model.head]: into_decoder})
    if model.head == "mlm":
        predictions = model.cls.predictions
        predictions.bias = nn.Parameter(distribute_tensor(predictions.bias, mesh, [Shard(0)]))


def _parallelize(module: nn.Module, mesh, plan: dict[str, ParallelStyle]) -> None:
    """By torch. What a collective returns is a subclass of Tensor and a view that must not be
    changed in place: Tempo's ops take no such tensor, and a residual is added in place."""
    parallelize_module(module, mesh, plan)
    for path, style in plan.items():
        if isinstance(style, RowwiseParallel):
            module.get_submodule(path).register_forward_hook(
                lambda _module, _inputs, output: torch.ops.aten._unsafe_view(output, output.shape)
            )


def _keep_share_of_gradient(parameter: nn.Parameter) -> None:
    """Torch computes the gradient of a split embedding whole on each rank. Of a weight that FSDP2
    shards, too, FSDP2 takes the gradient, and its reduction keeps a share."""
    parameter.register_hook(lambda gradient: gradient.redistribute(placements=parameter.placements))


# ---- forward and backward ----------------------------------------------------------------------


def _autocast(workload, device: torch.device):
    dtype = AUTOCAST_TYPES.get(workload.precision)
    return torch.autocast(device.type, dtype) if dtype else contextlib.nullcontext()


def _scaled(workload, loss: torch.Tensor) -> torch.Tensor:
    return loss * _LOSS_SCALE if "fp16" in workload.precision else loss


def _micro_batches(workload, model: nn.Module, device: torch.device):
    """What runs forward and backward of all micro-batches, and returns their loss."""
    batch = make_batch(workload, workload.batch_size, device)
    loss_of = Loss(workload)
    count = workload.gradient_accumulation_steps

    def micro_batch() -> torch.Tensor:
        with loss_parallel():  # where the logits are split
            with _autocast(workload, device):
                loss = loss_of(model(batch.input, **batch.others), batch.target)
                loss = loss / count if count > 1 else loss
            _scaled(workload, loss).backward()
        return loss

    def run() -> torch.Tensor:
        loss = None
        for number in range(count):
            waits = number + 1 < count and isinstance(model, DistributedDataParallel)
            with model.no_sync() if waits else contextlib.nullcontext():
                loss = loss.detach() if loss is not None else loss  # and free its graph
                one = micro_batch()
            loss = one if loss is None else loss + one.detach()
        batch.input.grad = None
        return loss

    return run


def _pipeline(workload, degree: int, device: torch.device):
    """This rank's stage of one pipeline of `degree` ranks, and what runs the schedule. A step has
    as many micro-batches as stages, or more if the workload accumulates more."""
    mesh = init_device_mesh(
        device.type,
        (dist.get_world_size() // degree, degree),
        mesh_dim_names=("replicate", "stage"),
    )
    index = mesh.get_local_rank("stage")
    count = workload.model.num_layers // degree
    model = Model(workload, index * count, (index + 1) * count)
    model.materialize(device)
    num_micro_batches = max(degree, workload.gradient_accumulation_steps)
    batch = make_batch(workload, num_micro_batches * workload.batch_size, device)
    trained: nn.Module = model
    if mesh["replicate"].size() > 1:
        replicas = mesh["replicate"].get_group()
        trained = DistributedDataParallel(model, process_group=replicas)
    stage = _stage(workload, trained, batch, mesh["stage"], device)
    return model, _schedule(workload, stage, batch, num_micro_batches)


def _stage(workload, model: nn.Module, batch, stages, device: torch.device):
    """With the shapes that a micro-batch has on its way."""
    from torch.distributed.pipelining import PipelineStage

    index, count = stages.get_local_rank(), stages.size()
    first_input = batch.input[: workload.batch_size].to("meta")
    hidden = _hidden_states(workload)
    return PipelineStage(
        model,
        index,
        count,
        device,
        input_args=(first_input if index == 0 else hidden,),
        output_args=(_output(workload, hidden) if index == count - 1 else hidden,),
        group=stages.get_group(),
    )


def _schedule(workload, stage, batch, num_micro_batches: int):
    """What runs forward and backward of all micro-batches through this stage."""
    from torch.distributed.pipelining import Schedule1F1B

    loss_of = Loss(workload)
    schedule = Schedule1F1B(
        stage,
        n_microbatches=num_micro_batches,
        loss_fn=lambda output, target: _scaled(workload, loss_of(output, target)),
    )
    inputs = [batch.input] if stage.is_first else []
    target = {"target": batch.target} if stage.is_last else {}

    def run() -> None:
        with _autocast(workload, stage.device):
            schedule.step(*inputs, **target, **batch.others)
        batch.input.grad = None

    return run


def _hidden_states(workload) -> torch.Tensor:
    """Those of a micro-batch, without memory."""
    shape = workload.batch_size, workload.seq_len, workload.model.hidden_size
    return torch.empty(shape, dtype=WEIGHT_TYPES[workload.precision], device="meta")


def _output(workload, hidden: torch.Tensor) -> torch.Tensor:
    width = {"layers": None, "squad": 2}.get(workload.head, workload.model.vocab_size)
    if width is None:
        return hidden
    dtype = AUTOCAST_TYPES.get(workload.precision, hidden.dtype)
    return torch.empty(*hidden.shape[:2], width, dtype=dtype, device="meta")


# ---- the update --------------------------------------------------------------------------------


def _make_optimizer(workload, parameters: list[nn.Parameter], is_sharded: bool):
    """Parameters that tensor parallelism splits are of a group of their own: torch updates those of
    a group together, and mixes no split and whole ones."""
    variant = switches_of(workload.recipe)["optimizer"]
    options: dict = {"lr": workload.learning_rate}
    if variant == "sgd":
        kind = torch.optim.SGD
        options["foreach"] = True
    elif variant == "lamb":
        kind = Lamb
    else:
        kind = torch.optim.AdamW
        options["fused" if variant == "adamw_fused" else "foreach"] = variant != "adamw_loop"
    if is_sharded:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(parameters, kind, **options)
    make = functools.partial(kind, **options)
    if workload.precision in ("fp16", "bf16") and variant != "sgd":
        return _MasterWeights(parameters, make)
    split = [one for one in parameters if isinstance(one, DTensor)]
    whole = [one for one in parameters if not isinstance(one, DTensor)]
    return make([{"params": group} for group in (whole, split) if group])


class _MasterWeights:
    """Updates fp32 copies of 16-bit parameters, which are made in the first step; of parameters
    that are split, of this rank's share."""

    def __init__(self, parameters: list[nn.Parameter], make: Callable):
        self._parameters = parameters
        # Empty until the first step. The optimizer must exist before the first forward: by it the
        # recorder tells micro-batches from steps.
        self._masters = [torch.empty(0, dtype=torch.float32, device=p.device) for p in parameters]
        self._optimizer: torch.optim.Optimizer = make(self._masters)

    @torch.no_grad()
    def step(self) -> None:
        for master, parameter in zip(self._masters, self._parameters):
            if master.numel() == 0:
                master.data = _local(parameter).float()
        for master, parameter in zip(self._masters, self._parameters):
            master.grad = _local(parameter.grad).float()
        self._optimizer.step()
        torch._foreach_copy_([_local(one) for one in self._parameters], self._masters)
        for master in self._masters:
            master.grad = None


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's share of a tensor that is split."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def _unscale(gradients: list[torch.Tensor]) -> bool:
    """Whether all gradients are finite. torch.amp.GradScaler takes none of 16 bits."""
    local = [_local(one) for one in gradients]
    found_inf = torch.zeros(1, dtype=torch.float32, device=local[0].device)
    inverse = torch.full_like(found_inf, 1 / _LOSS_SCALE)
    torch._amp_foreach_non_finite_check_and_unscale_(local, found_inf, inverse)
    return found_inf.item() == 0
