"""Prints, as JSON, what a swapped norm saves on "cuda" before its weights are small, and after."""

import json

import torch

import temposcope

norm = torch.nn.LayerNorm(8).cuda()
temposcope.swap(norm, "tempo")
x = torch.ones(4, 8, device="cuda")


def save_of_forward() -> str:
    norm(x)
    return norm._temposcope._save


saves = [save_of_forward(), save_of_forward()]
norm.load_state_dict({"weight": torch.full((8,), 1e-3), "bias": torch.zeros(8)})
print(json.dumps([*saves, save_of_forward()]))
