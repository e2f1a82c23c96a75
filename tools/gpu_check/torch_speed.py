"""Times what the planner's model of a GPU is made of, in torch's own ops.

    torch_speed.py launches|products|attention [--rounds N] [--few]

Prints a JSON list of rows; times are medians in seconds. Except for launches, calls are replayed
from CUDA graphs.

- launches: what a small kernel takes on the host, on the device behind others, and in a graph.
- products: matrix products at the shapes of BERT-large's layers, of one step with B sequences of
  S tokens. `kind` names the layer, `pass` is forward, dx or dw. A product of a batch has `count`.
- attention: each kernel of scaled_dot_product_attention, forward and forward with backward.
"""

import argparse
import json
import os
import statistics
import sys
import time

import torch
from device_clock import graph_of, medians_in_turns, seconds_on_gpu
from torch.nn.attention import SDPBackend, sdpa_kernel

HIDDEN, HEADS, HEAD_DIM = 1024, 16, 64
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16,
          "bf16": torch.bfloat16}
BATCHES, LENGTHS = (8, 1, 64, 32, 16, 4, 2), (512, 128)
# Layer -> inputs, outputs.
LINEAR = {"attention": (HIDDEN, HIDDEN), "mlp up": (HIDDEN, 4 * HIDDEN),
          "mlp down": (4 * HIDDEN, HIDDEN)}
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
           "cudnn": SDPBackend.CUDNN_ATTENTION}


# ---- launches ------------------------------------------------------------------------------------

LAUNCHES = 1000


def launches(rounds: int, few: bool):
    x = torch.zeros(32, device="cuda")

    def enqueue():
        for _ in range(LAUNCHES):
            x.add_(1)

    def host_seconds() -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        enqueue()
        return time.perf_counter() - start

    def device_seconds() -> float:
        torch.cuda._sleep(50_000_000)  # meanwhile the host enqueues all launches
        return seconds_on_gpu(enqueue)

    graph = graph_of(lambda: x.add_(1), LAUNCHES)
    enqueue()
    for place, measure in (("host", host_seconds), ("device", device_seconds),
                           ("graph", lambda: seconds_on_gpu(graph.replay))):
        seconds = statistics.median(measure() for _ in range(rounds))
        yield {"place": place, "seconds": seconds / LAUNCHES}


# ---- products ------------------------------------------------------------------------------------


def linear_products(tokens: int, kind: str, dtype) -> dict:
    """Pass -> call, of one linear layer."""
    inputs, outputs = LINEAR[kind]
    x = torch.randn(tokens, inputs, device="cuda", dtype=dtype)
    weight = torch.randn(outputs, inputs, device="cuda", dtype=dtype)
    bias = torch.randn(outputs, device="cuda", dtype=dtype)
    dy = torch.randn(tokens, outputs, device="cuda", dtype=dtype)
    return {
        "forward": lambda: torch.addmm(bias, x, weight.t()),
        "dx": lambda: torch.mm(dy, weight),
        "dw": lambda: torch.mm(dy.t(), x),
    }


def batched_products(rows: int, length: int, dtype) -> dict:
    """Kind -> call, of the two products of attention."""
    q, k = (torch.randn(rows, length, HEAD_DIM, device="cuda", dtype=dtype) for _ in range(2))
    probs = torch.randn(rows, length, length, device="cuda", dtype=dtype)
    return {
        "scores": lambda: torch.bmm(q, k.transpose(1, 2)),
        "context": lambda: torch.bmm(probs, q),
    }


def products(rounds: int, few: bool):
    for batch in BATCHES[: 2 if few else None]:
        for length in LENGTHS:
            for name, dtype in DTYPES.items():
                torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
                place = {"type": name, "batch_size": batch, "seq_len": length}
                yield from product_rows(place, dtype, rounds)


def product_rows(place: dict, dtype, rounds: int):
    batch, length = place["batch_size"], place["seq_len"]
    for kind in LINEAR:
        calls = linear_products(batch * length, kind, dtype)
        inputs, outputs = LINEAR[kind]
        medians = medians_in_turns(list(calls.values()), "cuda", rounds)
        for direction, seconds in zip(calls, medians, strict=True):
            yield place | {"kind": kind, "pass": direction, "inputs": inputs, "outputs": outputs,
                           "flop": 2 * batch * length * inputs * outputs, "seconds": seconds}
    calls = batched_products(batch * HEADS, length, dtype)
    medians = medians_in_turns(list(calls.values()), "cuda", rounds)
    for kind, seconds in zip(calls, medians, strict=True):
        yield place | {"kind": kind, "pass": "forward", "count": batch * HEADS,
                       "flop": 2 * batch * HEADS * length * length * HEAD_DIM, "seconds": seconds}


# ---- attention -----------------------------------------------------------------------------------


def attention_row(place: dict, rounds: int) -> dict:
    shape = (place["batch_size"], HEADS, place["seq_len"], HEAD_DIM)
    q, k, v = (
        torch.randn(shape, device="cuda", dtype=DTYPES[place["type"]], requires_grad=True)
        for _ in range(3)
    )
    dy = torch.randn_like(q)

    def forward():
        with sdpa_kernel(KERNELS[place["kernel"]]):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, dropout_p=place["dropout_p"], is_causal=place["causal"]
            )

    def both_ways():
        torch.autograd.grad(forward(), (q, k, v), dy)

    forward_s, both_s = medians_in_turns([forward, both_ways], "cuda", rounds)
    return place | {"forward_seconds": forward_s, "seconds": both_s}


def attention(rounds: int, few: bool):
    for batch in (8, 1, 32)[: 1 if few else None]:
        for length in (512, 128, 1024):
            for kernel in KERNELS:
                for name in ("bf16", "fp16", *(["fp32"] if kernel == "efficient" else [])):
                    for causal, dropout_p in ((False, 0.1), (False, 0.0), (True, 0.1)):
                        place = {"kernel": kernel, "type": name, "batch_size": batch,
                                 "seq_len": length, "causal": causal, "dropout_p": dropout_p}
                        try:
                            yield attention_row(place, rounds)
                        except RuntimeError as error:  # this GPU has no such kernel
                            yield place | {"problem": str(error).splitlines()[0]}


PARTS = {"launches": launches, "products": products, "attention": attention}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--few", action="store_true", help="a short trial")
    arguments = parser.parse_args()
    rows = list(PARTS[arguments.part](arguments.rounds, arguments.few))
    json.dump(rows, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # torch sometimes aborts where it ends the threads of backward


if __name__ == "__main__":
    main()
