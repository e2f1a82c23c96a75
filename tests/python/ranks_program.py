"""A decoder that trains in one of several parallel ways:

    torchrun [...] ranks_program.py MODE [--layers 4] [--width 1024] [--vocab 32000] [--device cuda]

MODE is single, ddp, fsdp2, hsdp, zero or pp; gloo talks and trains alone, asks
waits for another rank, in dies the last rank fails, in slow it comes last to each collective of the
last step, and in stays all wait after two recorded steps. With --after FILE it says "waits" and
trains once the file is there. The largest memory lies in the loss, where no layer has a
gradient yet.
"""

import argparse
import os
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.heads = width // 64
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width, bias=False)
        self.mlp_norm = nn.LayerNorm(width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, positions, width = x.shape
        parts = self.qkv(self.attention_norm(x)).view(batch, positions, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(context.transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x))))


class Decoder(nn.Module):
    """A whole model, or one stage of a pipeline."""

    def __init__(self, layers: int, width: int, vocab: int, is_first=True, is_last=True):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width) if is_first else nn.Identity()
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, vocab, bias=False) if is_last else nn.Identity()

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss_of(logits, tokens):
    return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for module in (*model.layers, model):
        fully_shard(module, mesh=mesh, reshard_after_forward=True)


def parallel(mode: str, model, world_size: int):
    """The model and its optimizer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn.parallel import DistributedDataParallel

    if mode in ("ddp", "zero", "slow", "stays"):
        model = DistributedDataParallel(model)
    elif mode == "fsdp2":
        shard(model, init_device_mesh("cuda", (world_size,)))
    elif mode == "hsdp":
        names = ("replicate", "shard")
        shard(model, init_device_mesh("cuda", (world_size // 8, 8), mesh_dim_names=names))
    if mode == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    return model, torch.optim.AdamW(model.parameters())


def train_pipeline(options, device, rank: int, world_size: int) -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    is_first, is_last = rank == 0, rank == world_size - 1
    layers = options.layers // world_size
    with device:
        model = Decoder(layers, options.width, options.vocab, is_first, is_last)
    micro, meta = options.batch // world_size, torch.device("meta")
    hidden = torch.empty(micro, options.positions, options.width, device=meta, dtype=torch.bfloat16)
    hidden.requires_grad_()  # since torch 2.15 it says that gradients come back
    tokens = torch.randint(options.vocab, (options.batch, options.positions), device=device)
    logits = torch.empty(micro, options.positions, options.vocab, device=meta, dtype=torch.bfloat16)
    stage = PipelineStage(
        model, rank, world_size, device,
        input_args=(tokens[:micro].to(meta) if is_first else hidden,),
        output_args=(logits if is_last else hidden,),
    )
    schedule = Schedule1F1B(stage, n_microbatches=world_size, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(options.steps):
        schedule.step(*([tokens] if is_first else []), **({"target": tokens} if is_last else {}))
        optimizer.step()
        optimizer.zero_grad()


class LastRankIsLate:
    """A hook of DDP. In the last step the last rank gives its gradients only after rank 0 has given
    its own, and by so much later as the step before took: more than clocks are off."""

    def __init__(self):
        self.step_s = 0.0
        self.is_last_step = False

    def reduce(self, bucket):
        store = dist.distributed_c10d._get_default_store()
        given = f"rank 0 gave bucket {bucket.index()}"
        if self.is_last_step and dist.get_rank() == dist.get_world_size() - 1:
            store.wait([given])
            time.sleep(self.step_s)
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        if self.is_last_step and dist.get_rank() == 0:
            store.set(given, "")
        return work.get_future().then(lambda done: done.value()[0])


def train(options, device, world_size: int) -> None:
    with device:
        model = Decoder(options.layers, options.width, options.vocab)
    model, optimizer = parallel(options.mode, model, world_size)
    late = LastRankIsLate()
    if options.mode == "slow":
        model.register_comm_hook(late, LastRankIsLate.reduce)
    for step in range(options.steps):
        late.is_last_step = step == options.steps - 1
        began_s = time.monotonic()
        if options.mode == "stays" and step == 3:
            print("stays", flush=True)
            threading.Event().wait()
        tokens = torch.randint(options.vocab, (options.batch, options.positions), device=device)
        loss_of(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
        late.step_s = time.monotonic() - began_s


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("mode")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--after")
    for name, value in (("layers", 4), ("width", 1024), ("vocab", 128000), ("batch", 4),
                        ("positions", 1024), ("steps", 4)):
        arguments.add_argument(f"--{name}", type=int, default=value)
    options = arguments.parse_args()
    if options.after:
        print("waits", flush=True)
        while not os.path.exists(options.after):
            time.sleep(0.05)
    torch.set_default_dtype(torch.bfloat16 if options.device == "cuda" else torch.float32)
    rank, world_size = 0, 1
    device = torch.device("cpu")
    if options.device == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if options.mode != "single":
        on_nccl = options.device == "cuda" and options.mode != "gloo"
        dist.init_process_group("nccl" if on_nccl else "gloo")
        rank, world_size = dist.get_rank(), dist.get_world_size()
    if options.mode == "gloo":
        dist.all_reduce(torch.ones(4, device=device))
        dist.barrier(dist.new_group(backend="gloo"))
    if options.mode == "asks":
        dist.distributed_c10d._get_default_store().get("from rank 0")
    if options.mode == "dies" and rank == world_size - 1:
        raise ValueError("this rank is unlucky")
    if options.mode == "pp":
        train_pipeline(options, device, rank, world_size)
    else:
        train(options, device, world_size)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
