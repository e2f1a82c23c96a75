"""Trains a few steps of what temposcope.estimate has put into a folder:

    estimated_step.py FOLDER [--batch 4]
"""

import argparse
import json
import multiprocessing
import pathlib
from multiprocessing import spawn

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

_STEPS = 4  # more than are recorded; without an optimizer a step ends where the next one begins


def import_main(file: pathlib.Path) -> None:
    """The main program of the process that asked, under the name that spawned processes give it."""
    process = multiprocessing.current_process()
    process._inheriting = True  # so that it starts no process of its own
    try:
        spawn.prepare(json.loads(file.read_text()))
    finally:
        del process._inheriting


def give_memory(model: torch.nn.Module) -> dict[torch.Tensor, torch.Tensor]:
    """Moves the model to the GPU. Returns what took the place of each tensor on "meta"; those that
    modules share stay shared."""
    made: dict[torch.Tensor, torch.Tensor] = {}
    for module in model.modules():
        for group in (module._parameters, module._buffers):
            for name, tensor in group.items():
                if tensor is None or not tensor.is_meta:
                    continue
                if tensor not in made:
                    made[tensor] = torch.empty_like(tensor, device="cuda")
                    if isinstance(tensor, torch.nn.Parameter):
                        made[tensor] = torch.nn.Parameter(made[tensor], tensor.requires_grad)
                group[name] = made[tensor]
    model.to("cuda")
    return made


def make_optimizer(given, model: torch.nn.Module, made: dict) -> torch.optim.Optimizer | None:
    if given is None:
        return None
    if not isinstance(given, torch.optim.Optimizer):
        return given([p for p in model.parameters() if p.requires_grad])
    for group in given.param_groups:
        group["params"] = [made.get(parameter, parameter) for parameter in group["params"]]
    given.load_state_dict(given.state_dict())  # goes to where its parameters are
    return given


def put_inputs(inputs, batch_size: int, wanted: int):
    """On the GPU, with the rows of the example repeated."""

    def put(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() > 0 and tensor.size(0) == batch_size != wanted:
            rows = torch.arange(wanted, device=tensor.device) % batch_size
            tensor = tensor.detach()[rows].requires_grad_(tensor.requires_grad)
        place = torch.zeros_like(tensor, device="cuda") if tensor.is_meta else tensor.to("cuda")
        return place.detach().requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, put, inputs)


def call(model: torch.nn.Module, inputs):
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)


def loss_of(output, loss) -> torch.Tensor | None:
    """None: nothing has a gradient."""
    if loss is not None:
        return loss(output)
    if isinstance(getattr(output, "loss", None), torch.Tensor):
        return output.loss
    leaves = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    sums = [leaf.sum() for leaf in leaves if leaf.requires_grad]
    return sum(sums) if sums else None


def train(step: dict, batch_size: int) -> None:
    model = step["model"].train()
    optimizer = make_optimizer(step["optimizer"], model, give_memory(model))
    inputs = put_inputs(step["inputs"], step["batch_size"], batch_size)
    dtype = step["autocast"]
    for _ in range(_STEPS):
        with torch.autocast("cuda", dtype, enabled=dtype is not None):
            loss = loss_of(call(model, inputs), step["loss"])
        if loss is not None:
            loss.backward()
        if optimizer is not None:
            optimizer.step()
        model.zero_grad()
        del loss


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--batch", type=int)
    options = arguments.parse_args()
    import_main(options.folder / "main.json")
    step = torch.load(options.folder / "step.pt", map_location="cpu", weights_only=False)
    train(step, options.batch or step["batch_size"])


if __name__ == "__main__":
    main()
