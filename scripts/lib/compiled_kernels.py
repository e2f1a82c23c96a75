"""What torch.compile would run for an op: Triton kernels as Inductor writes them, compiled by
Triton for an architecture without a GPU of it. Inductor fuses an op's steps into one kernel a pass,
walks tensors in blocks of 1024 elements with four warps, and a row of a norm or of softmax as one
block. Its dropout draws one Philox number for each element, in forward and again in backward."""

import pathlib
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

BLOCK, WARPS = 1024, 4
THREADS = 32 * WARPS
TRITON_TYPE = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16"}


@triton.jit
def phi(x):
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def kept(seed, i, p):
    return tl.rand(seed, i) > p


@triton.jit
def gelu_forward(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i).to(tl.float32)
    tl.store(y + i, v * phi(v))


@triton.jit
def bias_gelu_forward(x, bias, y, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i).to(tl.float32) + tl.load(bias + i % width).to(tl.float32)
    tl.store(y + i, v * phi(v))


@triton.jit
def gelu_backward(dy, x, dx, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, g = tl.load(x + i).to(tl.float32), tl.load(dy + i).to(tl.float32)
    density = tl.exp(-0.5 * v * v) * 0.3989422804014327
    tl.store(dx + i, g * (phi(v) + v * density))


@triton.jit
def dropout_either_way(x, y, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i).to(tl.float32)
    tl.store(y + i, tl.where(kept(seed, i, p), v * (1 / (1 - p)), 0.0))


@triton.jit
def layer_norm_forward(x, gamma, beta, y, stats, eps, BLOCK: tl.constexpr):
    row, h = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + h).to(tl.float32)
    mean = tl.sum(v, 0) / BLOCK
    rstd = tl.rsqrt(tl.sum((v - mean) * (v - mean), 0) / BLOCK + eps)
    tl.store(stats + 2 * row, mean)
    tl.store(stats + 2 * row + 1, rstd)
    g, b = tl.load(gamma + h).to(tl.float32), tl.load(beta + h).to(tl.float32)
    tl.store(y + row * BLOCK + h, (v - mean) * rstd * g + b)


@triton.jit
def layer_norm_backward(dy, x, gamma, stats, dx, BLOCK: tl.constexpr):
    row, h = tl.program_id(0), tl.arange(0, BLOCK)
    mean, rstd = tl.load(stats + 2 * row), tl.load(stats + 2 * row + 1)
    n = (tl.load(x + row * BLOCK + h).to(tl.float32) - mean) * rstd
    g = tl.load(dy + row * BLOCK + h).to(tl.float32) * tl.load(gamma + h).to(tl.float32)
    slope = tl.sum(g * n, 0) / BLOCK
    tl.store(dx + row * BLOCK + h, rstd * (g - tl.sum(g, 0) / BLOCK - n * slope))


@triton.jit
def softmax(v):
    e = tl.exp(v - tl.max(v, 0))
    return e / tl.sum(e, 0)


@triton.jit
def scores_of_row(x, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return tl.load(x + i).to(tl.float32) * scale


@triton.jit
def mask_of_row(mask, rows, BLOCK: tl.constexpr):
    """`rows` of the scores share a row of the mask."""
    i = tl.program_id(0) // rows * BLOCK + tl.arange(0, BLOCK)
    return tl.load(mask + i).to(tl.float32)


@triton.jit
def store_dropped(v, y, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.where(kept(seed, i, p), softmax(v) * (1 / (1 - p)), 0.0))


@triton.jit
def store_gradient(v, dd, dropped, dx, seed, p, scale, BLOCK: tl.constexpr):
    """Makes the dropped probabilities again, for the gradient of the value."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    probs, keep, factor = softmax(v), kept(seed, i, p), 1 / (1 - p)
    tl.store(dropped + i, tl.where(keep, probs * factor, 0.0))
    g = tl.where(keep, tl.load(dd + i).to(tl.float32) * factor, 0.0)
    tl.store(dx + i, scale * probs * (g - tl.sum(g * probs, 0)))


@triton.jit
def softmax_dropout_forward(x, y, seed, p, scale, BLOCK: tl.constexpr):
    store_dropped(scores_of_row(x, scale, BLOCK), y, seed, p, BLOCK)


@triton.jit
def masked_softmax_dropout_forward(x, mask, y, seed, p, scale, rows, BLOCK: tl.constexpr):
    v = scores_of_row(x, scale, BLOCK) + mask_of_row(mask, rows, BLOCK)
    store_dropped(v, y, seed, p, BLOCK)


@triton.jit
def softmax_dropout_backward(dd, x, dropped, dx, seed, p, scale, BLOCK: tl.constexpr):
    store_gradient(scores_of_row(x, scale, BLOCK), dd, dropped, dx, seed, p, scale, BLOCK)


@triton.jit
def masked_softmax_dropout_backward(dd, x, mask, dropped, dx, seed, p, scale, rows,
                                    BLOCK: tl.constexpr):
    v = scores_of_row(x, scale, BLOCK) + mask_of_row(mask, rows, BLOCK)
    store_gradient(v, dd, dropped, dx, seed, p, scale, BLOCK)


KERNELS = [gelu_forward, bias_gelu_forward, gelu_backward, dropout_either_way, layer_norm_forward,
           layer_norm_backward, softmax_dropout_forward, softmax_dropout_backward,
           masked_softmax_dropout_forward, masked_softmax_dropout_backward]
NUMBERS = (dict.fromkeys(("seed", "width", "rows"), "i32")
           | dict.fromkeys(("p", "scale", "eps"), "fp32"))


def compile_kernel(kernel, dtype, capability, block):
    """The machine code for an architecture ("9.0"), as a cubin."""
    names = kernel.arg_names
    kinds = {name: NUMBERS.get(name, f"*{TRITON_TYPE[dtype]}") for name in names}
    kinds |= {"stats": "*fp32"} if "stats" in names else {}
    kinds["BLOCK"] = "constexpr"
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names)
               if kinds[name].startswith("*") or name == "width"}
    source = ASTSource(kernel, kinds, {(names.index("BLOCK"),): block}, aligned)
    target = GPUTarget("cuda", int(capability.replace(".", "")), 32)
    return triton.compile(source, target=target, options={"num_warps": WARPS}).asm["cubin"]


def cubins(capability, folder: pathlib.Path, keys):
    """{"gelu_forward, fp16": path of a cubin}; `keys` is the length of a row of softmax."""
    found = {}
    for kernel in KERNELS:
        block = keys if "softmax" in kernel.__name__ else BLOCK
        for dtype in TRITON_TYPE:
            name = f"{kernel.__name__}, {dtype}"
            path = folder / f"{name.replace(', ', '_')}.cubin"
            path.write_bytes(compile_kernel(kernel, dtype, capability, block))
            found[name] = path
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(len(cubins("9.0", pathlib.Path(folder), 512)))
