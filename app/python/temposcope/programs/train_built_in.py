"""Trains a built-in model on this rank:

    torchrun train_built_in.py WORKLOAD [--parallel fsdp2] [--batch 4]

WORKLOAD is the JSON of a workload, as traces hold it. The program ends when its recorder ends it,
or after --steps steps.
"""

import argparse
import json
import os
import types

import torch
import torch.distributed as dist

from temposcope._built_in import WEIGHT_TYPES
from temposcope._parallel import make_step
from temposcope._session import active
from temposcope._swapped_modules import SaveChoice


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("workload")
    arguments.add_argument("--parallel", default="none")
    arguments.add_argument("--batch", type=int)
    arguments.add_argument("--steps", type=int, default=16)  # more than are recorded
    options = arguments.parse_args()
    told = json.loads(options.workload)
    told["batch_size"] = options.batch or told["batch_size"]
    workload = types.SimpleNamespace(**told | {"model": types.SimpleNamespace(**told["model"])})
    torch.manual_seed(workload.seed)
    torch.set_default_dtype(WEIGHT_TYPES[workload.precision])
    torch.backends.cuda.matmul.allow_tf32 = workload.precision == "tf32"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    strategy, _, degree = options.parallel.partition(":")
    if session := active():
        session.tell_built_in(told, options.parallel)
    SaveChoice.assumed = "output"  # weights have no values here; a real model's norms are near 1
    if strategy != "none":
        dist.init_process_group("nccl")
    step = make_step(workload, strategy, int(degree or 0), device)
    for _ in range(options.steps):
        step()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
