"""Captures a CUDA graph of a swapped block on a virtual GPU: prints what torch said, without and
with dropout, as one JSON object."""

import json

import torch
import torch.nn as nn

import temposcope


def block(p):
    model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU(), nn.Dropout(p)).cuda()
    temposcope.swap(model, "tempo")
    return model


def capture(p):
    """"captured", or the first line of the error."""
    model, x = block(p), torch.randn(8, 64, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            y = model(x)
            y.sum().backward()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "captured"


print(json.dumps({"without dropout": capture(0.0), "with dropout": capture(0.1)}))
