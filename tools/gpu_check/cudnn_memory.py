"""What cuDNN asks of torch's allocator in attention, convolutions and recurrent layers.

    cudnn_memory.py attention|convolutions|recurrent [--few]

Prints a JSON object a line for each shape: what it is, and the sizes that forward and backward
request in their order, the outputs and gradients among them.
"""

import argparse
import itertools
import json
import os

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def requests_of(function) -> tuple:
    """(result, sizes) of what `function` requests of the allocator."""
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)
    result = function()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    return result, [event["size"] for event in events if event["action"] == "alloc"]


def both_ways(place: dict, call, leaves) -> dict:
    """The row of a call whose gradients with respect to `leaves` are taken."""
    try:
        y, forward = requests_of(call)
        dy = torch.ones_like(y)
        _, backward = requests_of(lambda: torch.autograd.grad(y, leaves, dy))
    except RuntimeError as error:  # this GPU has no such kernel
        return place | {"problem": str(error).splitlines()[0]}
    return place | {"forward": forward, "backward": backward}


def attention(few: bool):
    shapes = [(b, a, a, s, s, d) for b, a in ((2, 16), (3, 5)) for s in (128, 512, 1000, 1024)
              for d in (64, 128)]
    shapes += [(2, 16, 16, 512, 512, 32), (2, 16, 16, 512, 512, 96), (2, 16, 4, 1024, 1024, 64),
               (2, 16, 4, 512, 512, 128), (2, 16, 16, 256, 512, 64), (1, 8, 8, 4096, 4096, 128),
               (2, 16, 8, 200, 200, 64)]
    options = list(itertools.product(("bf16", "fp16"), (False, True), (0.1, 0.0)))
    for b, a, kv, s, t, d in shapes[:: 9 if few else 1]:  # each shape has a plan to be made
        all_options = (b, s, d) == (2, 512, 64) and not few
        for name, causal, p in options[: None if all_options else 1]:
            q = torch.randn(b, s, a, d, device="cuda", dtype=DTYPES[name]).transpose(1, 2)
            k, v = (torch.randn(b, t, kv, d, device="cuda", dtype=DTYPES[name]).transpose(1, 2)
                    for _ in range(2))
            leaves = [tensor.requires_grad_() for tensor in (q, k, v)]
            place = {"kind": "attention", "type": name, "batch_size": b, "heads": a,
                     "kv_heads": kv, "queries": s, "keys": t, "head_dim": d, "causal": causal,
                     "dropout_p": p}

            def call(q=q, k=k, v=v, causal=causal, p=p, kv=kv, a=a):
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    return F.scaled_dot_product_attention(
                        q, k, v, dropout_p=p, is_causal=causal, enable_gqa=kv != a
                    )

            yield both_ways(place, call, leaves)


# Channels in and out, kernel, stride, groups, image size.
CONVOLUTIONS = (
    (3, 64, 7, 2, 1, 224), (64, 64, 1, 1, 1, 56), (64, 64, 3, 1, 1, 56), (64, 256, 1, 1, 1, 56),
    (256, 64, 1, 1, 1, 56), (128, 128, 3, 2, 1, 56), (128, 128, 3, 1, 1, 28),
    (256, 512, 1, 2, 1, 56), (128, 512, 1, 1, 1, 28), (256, 256, 3, 1, 1, 14),
    (512, 512, 3, 1, 1, 7), (512, 2048, 1, 1, 1, 7), (3, 768, 16, 16, 1, 224),
    (3, 96, 4, 4, 1, 224), (96, 96, 7, 1, 96, 56), (32, 64, 3, 1, 1, 112),
)


def convolutions(few: bool):
    for name, last, batch in itertools.product(("fp32", "bf16"), (False, True), (8, 32)):
        layout = torch.channels_last if last else torch.contiguous_format
        for inputs, outputs, size, stride, groups, image in CONVOLUTIONS[:: 16 if few else 1]:
            x = torch.randn(batch, inputs, image, image, device="cuda", dtype=DTYPES[name])
            weight = torch.randn(
                outputs, inputs // groups, size, size, device="cuda", dtype=DTYPES[name]
            )
            x, weight = (t.to(memory_format=layout).requires_grad_() for t in (x, weight))
            place = {"kind": "convolution", "type": name, "channels_last": last,
                     "batch_size": batch, "in": inputs, "out": outputs, "size": size,
                     "stride": stride, "groups": groups, "image": image}

            def call(x=x, weight=weight, size=size, stride=stride, groups=groups):
                padding = 0 if size == stride else size // 2
                return F.conv2d(x, weight, None, stride, padding, 1, groups)

            yield both_ways(place, call, [x, weight])


def recurrent(few: bool):
    kinds = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
    sizes = ((32, 128, 512, 512, 2), (32, 128, 512, 512, 1), (16, 128, 512, 512, 1),
             (32, 64, 512, 512, 1), (32, 128, 256, 512, 1), (32, 128, 512, 256, 1),
             (8, 50, 96, 200, 3), (64, 32, 128, 1024, 2))
    for kind, (batch, length, inputs, hidden, layers) in itertools.product(
        kinds, sizes[:: 8 if few else 1]
    ):
        for name, both, p in (("fp32", False, 0.0), ("fp32", True, 0.0), ("fp32", False, 0.1),
                              ("bf16", False, 0.0)):
            model = kinds[kind](inputs, hidden, layers, batch_first=True, bidirectional=both,
                                dropout=p if layers > 1 else 0.0).to("cuda", DTYPES[name])
            x = torch.randn(batch, length, inputs, device="cuda", dtype=DTYPES[name])
            place = {"kind": kind, "type": name, "batch_size": batch, "seq_len": length,
                     "inputs": inputs, "hidden": hidden, "layers": layers, "bidirectional": both,
                     "dropout_p": p, "parameters": sum(w.numel() for w in model.parameters())}
            leaves = [x.requires_grad_(), *model.parameters()]
            yield both_ways(place, lambda model=model, x=x: model(x)[0], leaves)


PARTS = {"attention": attention, "convolutions": convolutions, "recurrent": recurrent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--few", action="store_true", help="a short trial")
    arguments = parser.parse_args()
    for row in PARTS[arguments.part](arguments.few):
        print(json.dumps(row), flush=True)
    os._exit(0)  # torch sometimes aborts where it ends the threads of backward


if __name__ == "__main__":
    main()
