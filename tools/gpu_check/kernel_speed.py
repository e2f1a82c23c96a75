"""Measures how fast torch.ops.tempo is, compared with a plain copy and with PyTorch's own ops.

    python3 kernel_speed.py --libraries DIR [--device cuda] [--scale N] > rows.json

Prints one JSON document. `copy_bytes_per_s` is the bandwidth of a copy on the device. There is a
row for each op, shape and dtype; all times in it are medians:

- `forward_share`, `backward_share`: the bandwidth of the pass as a share of the copy's. The
  bandwidth counts the bytes that the pass must move (docs/ops.md).
- `forward_bound`: the largest value that `forward_share` could have. It is 1, or less if drawing
  random numbers (`philox`) takes longer than moving the bytes. It is null if the GPU's integer
  throughput is not known.
- `ratio`: the time of forward and backward with autograd divided by PyTorch's time for the same.
  The two run in turn.

On CUDA, all calls are replayed from CUDA graphs: what the host takes to launch a kernel does not
count.

--scale N divides the shapes by N, for a trial on the CPU.
"""

import argparse
import json
import pathlib
import sys
import typing

import goals
import torch
import torch.nn.functional as F
from device_clock import medians_in_turns

KEY = [1, 0, 0, 2, 0]  # seed, rank, step, layer, site
P = 0.1
MASK = 1 / 8  # bytes per element of a bit mask
# Hidden size, heads, batch, tokens. In the last model neither launches nor caches matter.
MODELS = {
    "bert-base": (768, 12, 8, 512),
    "bert-large": (1024, 16, 8, 512),
    "gpt2": (768, 12, 4, 1024),
    "bert-large b64": (1024, 16, 64, 512),
}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Op(typing.NamedTuple):
    """One of our ops and the PyTorch code that does the same, with the bytes that must be moved."""

    name: str
    inputs: list  # leaf tensors
    ours: typing.Callable
    stock: typing.Callable
    forward: typing.Callable  # without autograd
    backward: typing.Callable  # takes dy
    forward_bytes: float
    backward_bytes: float


def leaf(*shape, dtype, device):
    return torch.randn(*shape, dtype=dtype, device=device, requires_grad=True)


def gelu_op(tokens, hidden, dtype, device, tanh=False, with_bias=False) -> Op:
    tempo = torch.ops.tempo
    inputs = [leaf(tokens, 4 * hidden, dtype=dtype, device=device)]
    if with_bias:
        inputs.append(leaf(4 * hidden, dtype=dtype, device=device))
    detached = [tensor.detach() for tensor in inputs]
    ours, forward = ((tempo.bias_gelu, tempo.bias_gelu_forward) if with_bias
                     else (tempo.gelu, tempo.gelu_forward))
    y, mask = forward(*detached, tanh, "bit")
    n, e = inputs[0].numel(), inputs[0].element_size()
    return Op(
        "bias_gelu" if with_bias else "gelu tanh" if tanh else "gelu",
        inputs,
        lambda: ours(*inputs, tanh, "bit"),
        lambda: F.gelu(sum(inputs[1:], inputs[0]), approximate="tanh" if tanh else "none"),
        lambda: forward(*detached, tanh, "bit"),
        lambda dy: tempo.gelu_backward(dy, y, mask, tanh, "bit"),
        n * (2 * e + MASK),
        n * (3 * e + MASK),
    )


def norm_op(name, parameters, eps, tokens, hidden, dtype, device) -> Op:
    """layer_norm, with gamma and beta, or rms_norm, with gamma."""
    ours, forward, backward = (
        getattr(torch.ops.tempo, name + suffix) for suffix in ("", "_forward", "_backward")
    )
    x = leaf(tokens, hidden, dtype=dtype, device=device)
    affine = [leaf(hidden, dtype=dtype, device=device) for _ in range(parameters)]
    detached = [tensor.detach() for tensor in (x, *affine)]
    saved, _, rstd = forward(*detached, eps, "output")
    n, e = x.numel(), x.element_size()
    return Op(
        name,
        [x, *affine],
        lambda: ours(x, *affine, eps, "output"),
        lambda: getattr(F, name)(x, (hidden,), *affine, eps),
        lambda: forward(*detached, eps, "output"),
        lambda dy: backward(dy, saved, *detached[1:], rstd, "output"),
        n * 2 * e + 4 * tokens,
        n * 3 * e + 4 * tokens,
    )


def dropout_op(tokens, hidden, dtype, device) -> Op:
    tempo = torch.ops.tempo
    x = leaf(tokens, hidden, dtype=dtype, device=device)
    mask = tempo.dropout_forward(x.detach(), P, "bit", KEY)[1]
    n, e = x.numel(), x.element_size()
    return Op(
        "dropout",
        [x],
        lambda: tempo.dropout(x, P, "bit", KEY),
        lambda: F.dropout(x, P, True),
        lambda: tempo.dropout_forward(x.detach(), P, "bit", KEY),
        lambda dy: tempo.dropout_backward(dy, mask, P, "bit", KEY),
        n * (2 * e + MASK),
        n * (2 * e + MASK),
    )


def residual_op(tokens, hidden, dtype, device) -> Op:
    tempo = torch.ops.tempo
    x, residual = (leaf(tokens, hidden, dtype=dtype, device=device) for _ in range(2))
    gamma, beta = (leaf(hidden, dtype=dtype, device=device) for _ in range(2))
    detached = [tensor.detach() for tensor in (x, residual, gamma, beta)]

    def forward():
        return tempo.residual_layer_norm_forward(*detached, P, "bit", KEY, 1e-5, "output", False)

    saved, _, _, rstd, mask = forward()
    n, e = x.numel(), x.element_size()
    return Op(
        "residual_layer_norm",
        [x, residual, gamma, beta],
        lambda: tempo.residual_layer_norm(x, residual, gamma, beta, P, "bit", KEY, 1e-5, "output"),
        lambda: F.layer_norm(residual + F.dropout(x, P, True), (hidden,), gamma, beta, 1e-5),
        forward,
        lambda dy: tempo.residual_layer_norm_backward(
            dy, None, saved, *detached[2:], rstd, mask, P, "bit", KEY, "output"
        ),
        n * (3 * e + MASK) + 4 * tokens,
        n * (4 * e + MASK) + 4 * tokens,
    )


def attention_op(rows, length, heads, dtype, device) -> Op:
    """Softmax and dropout of `rows` matrices of scores; head size 64."""
    tempo = torch.ops.tempo
    scores = leaf(rows, length, length, dtype=dtype, device=device)
    value = leaf(rows, length, 64, dtype=dtype, device=device)
    arguments = (scores.detach(), None, 1.0, False, heads, P, "bit", KEY)
    probs, _, mask = tempo.softmax_dropout_forward(*arguments)

    def backward(dy):
        tempo.softmax_dropout_backward_(dy, probs, mask, 1.0, P, "bit", KEY)
        dy.copy_(probs)  # the op overwrote dy; repeated, it would go to 0. The copy's bytes count

    n, e = scores.numel(), scores.element_size()
    return Op(
        "softmax dropout",
        [scores, value],
        lambda: tempo.attention_core(scores, value, None, 1.0, False, heads, P, "bit", KEY),
        lambda: torch.bmm(F.dropout(torch.softmax(scores, -1), P, True), value),
        lambda: tempo.softmax_dropout_forward(*arguments),
        backward,
        n * (3 * e + MASK),
        n * (3 * e + MASK + 2 * e),
    )


def ops_of(model: str, dtype, device: str, scale: int) -> list:
    hidden, heads, batch, length = MODELS[model]
    length //= scale
    tokens = batch * length
    yield gelu_op(tokens, hidden, dtype, device, tanh=model == "gpt2")
    yield gelu_op(tokens, hidden, dtype, device, with_bias=True)
    yield norm_op("layer_norm", 2, 1e-5, tokens, hidden, dtype, device)
    yield norm_op("rms_norm", 1, 1e-6, tokens, hidden, dtype, device)
    yield dropout_op(tokens, hidden, dtype, device)
    yield residual_op(tokens, hidden, dtype, device)
    yield attention_op(batch * heads, length, heads, dtype, device)


def copy_bytes_per_s(device: str, scale: int, rounds: int) -> float:
    source = torch.empty((256 << 20) // scale, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    (seconds,) = medians_in_turns([lambda: target.copy_(source)], device, rounds)
    return 2 * source.numel() / seconds


def philox_bound(device: str) -> dict:
    """goals.philox_bound of this device."""
    if device != "cuda":
        return {"missing": "it is defined for CUDA GPUs only"}
    gpu = torch.cuda.get_device_properties(0)
    capability = (gpu.major, gpu.minor)
    try:
        clock_hz = 1e3 * gpu.clock_rate
    except RuntimeError:  # the driver does not tell
        clock_hz = 0
    return goals.philox_bound(capability, gpu.multi_processor_count, clock_hz)


def row_of(op: Op, device: str, copy: float, philox: dict, rounds: int) -> dict:
    with torch.no_grad():
        dy = torch.randn_like(op.ours())
        gradient = dy if op.name != "softmax dropout" else torch.randn_like(op.inputs[0])
        forward_s, backward_s = medians_in_turns(
            [op.forward, lambda: op.backward(gradient)], device, rounds
        )

    def both_ways(function):
        torch.autograd.grad(function(), op.inputs, dy)

    ours_s, stock_s = medians_in_turns(
        [lambda: both_ways(op.ours), lambda: both_ways(op.stock)], device, rounds
    )
    return {
        "op": op.name,
        "shape": list(op.inputs[0].shape),
        "forward_share": op.forward_bytes / forward_s / copy,
        "forward_bound": goals.forward_bound(
            op.name, op.forward_bytes / op.inputs[0].numel(), copy, philox
        ),
        "backward_share": op.backward_bytes / backward_s / copy,
        "ours_ns": round(ours_s * 1e9),
        "stock_ns": round(stock_s * 1e9),
        "ratio": ours_s / stock_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    torch.ops.load_library(str(arguments.libraries / "libtempo_ops.so"))
    if arguments.device == "cuda":
        torch.ops.load_library(str(arguments.libraries / "libtempo_ops_cuda.so"))
        torch.ops.tempo.allow_replayed_masks(True)  # graphs of one call, again and again
    copy = copy_bytes_per_s(arguments.device, arguments.scale, arguments.rounds)
    philox = philox_bound(arguments.device)
    rows = []
    for model in MODELS:
        for name, dtype in DTYPES.items():
            try:
                for op in ops_of(model, dtype, arguments.device, arguments.scale):
                    row = row_of(op, arguments.device, copy, philox, arguments.rounds)
                    rows.append({"model": model, "dtype": name} | row)
            except torch.OutOfMemoryError as error:  # the other models may fit
                print(f"{model}, {name}: {str(error).splitlines()[0]}", file=sys.stderr)
    found = {"copy_bytes_per_s": copy, "philox": philox, "rows": rows}
    json.dump(found | {"not_judged": goals.unjudged_kernels(found)}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
