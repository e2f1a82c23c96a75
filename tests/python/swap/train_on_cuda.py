"""Trains swapped models on "cuda" and prints, as JSON, the bytes that forward leaves allocated."""

import json

import small_models
import torch
from small_models import FAMILIES

import temposcope

TYPES = {
    "float32": (torch.float32, False),
    "bfloat16": (torch.bfloat16, False),
    "autocast": (torch.float32, True),
}


def bytes_of_forward(name, recipe, attention, kind, swap_first) -> int:
    """What backward waits for, in the allocator's rounding; of a third step."""
    dtype, autocast = TYPES[kind]
    model = small_models.build(name, attention=attention)
    if swap_first:
        temposcope.swap(model, recipe)
        model.to("cuda", dtype)
    else:
        model.to("cuda", dtype)
        temposcope.swap(model, recipe)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        before = torch.cuda.memory_allocated()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            output = small_models.run(name, model)
        allocated = torch.cuda.memory_allocated() - before
        output.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    choices = [getattr(one, "_temposcope", None) for one in model.modules()]
    saves = {one._save for one in choices if hasattr(one, "_save")}
    assert saves <= {"output"}, saves  # the weights are still near 1
    return allocated


def main():
    rows = []
    for name in FAMILIES:
        for attention in ("eager", "sdpa"):
            for kind in TYPES:
                recipes = "original-stock", "tempo", "tempo-packed", "checkpoint"
                case = attention, kind
                first = {one: bytes_of_forward(name, one, *case, True) for one in recipes}
                later = bytes_of_forward(name, "tempo", *case, False)
                rows.append({"name": f"{name}, {attention}, {kind}", "later": later, **first})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
