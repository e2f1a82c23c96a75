"""Runs on a virtual GPU: prints one JSON object of what torch.ops.tempo did there.

    ops_on_cuda_program.py LIBTEMPO_OPS LIBTEMPO_OPS_CUDA
"""

import json
import pathlib
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

LIBRARY, CUDA_LIBRARY = sys.argv[1:]
torch.ops.load_library(LIBRARY)
tempo = torch.ops.tempo


def error_without_cuda_library() -> str:
    try:
        tempo.gelu(torch.zeros(8, device="cuda"))
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "no error"


UNLOADED = error_without_cuda_library()
torch.ops.load_library(CUDA_LIBRARY)
KEY = [7, 0, 1, 2, 3]
P = 0.1


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=dtype, device="cuda", requires_grad=True)


# --- launches ------------------------------------------------------------------------------------


def ops():
    """{op: (function, inputs)} at small shapes: 1200 rows of 1024, 192 rows of 512 keys."""
    x, gamma, beta = randn(1200, 1024), randn(1024), randn(1024)
    residual, scores, value = randn(1200, 1024), randn(4, 48, 512), randn(4, 512, 64)
    key = (P, "bit", KEY)
    return {
        "gelu": (lambda x: tempo.gelu(x), [x]),
        "bias_gelu": (lambda x, b: tempo.bias_gelu(x, b), [x, beta]),
        "dropout": (lambda x: tempo.dropout(x, *key), [x]),
        "layer_norm": (lambda *t: tempo.layer_norm(*t), [x, gamma, beta]),
        "rms_norm": (lambda *t: tempo.rms_norm(*t), [x, gamma]),
        "residual_layer_norm": (
            lambda *t: tempo.residual_layer_norm(*t, *key),
            [x, residual, gamma, beta],
        ),
        "attention_core": (
            lambda s, v: tempo.attention_core(s, v, None, 1.0, False, 2, *key),
            [scores, value],
        ),
    }


def launches_of(call):
    """[name, grid, block] of each kernel that `call` launches, in their order."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    return [[e["name"], e["args"]["grid"][0], e["args"]["block"]] for e in kernels]


def launches():
    found = {}
    for name, (op, inputs) in ops().items():
        y = op(*inputs)
        dy = torch.empty_like(y)
        found[name] = {
            "forward": launches_of(lambda: op(*inputs)),
            "backward": launches_of(lambda: torch.autograd.grad(y, inputs, dy)),
        }
    return found


# --- CUDA graphs ---------------------------------------------------------------------------------


def error_of_capture(call):
    """The first line of what `call` raises while a graph is captured."""
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            call()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "no error"


def captures():
    x = randn(64, 64).detach()
    scores = randn(2, 8, 64).detach()
    _, keep = tempo.dropout_forward(x, P, "bit", KEY)
    nothing = keep[:0]
    softmax = (scores, None, 1.0, False, 1)
    calls = {
        "dropout, p=0": lambda: tempo.dropout(x, 0.0, "bit", KEY),
        "dropout": lambda: tempo.dropout(x, P, "bit", KEY),
        "softmax, p=0": lambda: tempo.softmax_dropout_forward(*softmax, 0.0, "bit", KEY),
        "softmax": lambda: tempo.softmax_dropout_forward(*softmax, P, "bit", KEY),
        "backward of a stored mask": lambda: tempo.dropout_backward(x, keep, P, "bit", KEY),
        "backward that draws": lambda: tempo.dropout_backward(x, nothing, P, "philox", KEY),
        "gelu": lambda: tempo.gelu(x),
    }
    refused = {name: error_of_capture(call) for name, call in calls.items()}
    before = tempo.allow_replayed_masks(True)
    allowed = {name: error_of_capture(call) for name, call in calls.items()}
    return {"before": before, "refused": refused, "allowed": allowed}


print(json.dumps({"unloaded": UNLOADED, "launches": launches(), "captures": captures()}))
