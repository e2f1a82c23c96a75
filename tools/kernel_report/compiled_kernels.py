"""What torch.compile would run for an op: Triton kernels as Inductor writes them, compiled by
Triton for an architecture without a GPU of it. Inductor fuses an op's steps into one kernel a pass,
walks tensors in blocks of 1024 elements with four warps, and a row of a norm or of softmax as one
block. Backward of a norm walks SPLIT_ROWS rows in a block, which adds up their part of the
gradients of gamma and beta. Dropout draws one Philox number for each element and keeps a mask of
bytes."""

import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernel_ops

BLOCK, WARPS = 1024, 4
SPLIT_ROWS = tl.constexpr(kernel_ops.SPLIT_ROWS)


@triton.jit
def phi(x):
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def drop(v, y, keep, i, seed, p):
    """Stores the dropped values, and the mask."""
    kept = tl.rand(seed, i) > p
    tl.store(keep + i, kept)
    tl.store(y + i, tl.where(kept, v * (1 / (1 - p)), 0.0))


@triton.jit
def dropped_gradient(dy, keep, i, p):
    return tl.where(tl.load(keep + i), tl.load(dy + i).to(tl.float32) * (1 / (1 - p)), 0.0)


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
def dropout_forward(x, y, keep, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    drop(tl.load(x + i).to(tl.float32), y, keep, i, seed, p)


@triton.jit
def dropout_backward(dy, keep, dx, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dx + i, dropped_gradient(dy, keep, i, p))


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
def layer_norm_backward(dy, x, gamma, stats, dx, sums, rows, BLOCK: tl.constexpr):
    """`sums` are the partial sums of dgamma, then those of dbeta."""
    block, h = tl.program_id(0), tl.arange(0, BLOCK)
    first = block * SPLIT_ROWS
    dgamma, dbeta = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for row in tl.range(first, first + min(SPLIT_ROWS, rows - first)):
        d = tl.load(dy + row * BLOCK + h).to(tl.float32)
        g = d * tl.load(gamma + h).to(tl.float32)
        v = tl.load(x + row * BLOCK + h).to(tl.float32)
        mean, rstd = tl.load(stats + 2 * row), tl.load(stats + 2 * row + 1)
        n = (v - mean) * rstd
        of_row = g * BLOCK - tl.sum(g, 0) - n * tl.sum(g * n, 0)
        tl.store(dx + row * BLOCK + h, rstd / BLOCK * of_row)
        dgamma += d * n
        dbeta += d
    tl.store(sums + block * BLOCK + h, dgamma)
    tl.store(sums + (block + tl.num_programs(0)) * BLOCK + h, dbeta)


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
def drop_softmax(v, y, keep, stats, seed, p, BLOCK: tl.constexpr):
    """Stores the dropped probabilities, the mask, and a row's maximum and sum."""
    row = tl.program_id(0)
    largest = tl.max(v, 0)
    e = tl.exp(v - largest)
    total = tl.sum(e, 0)
    tl.store(stats + 2 * row, largest)
    tl.store(stats + 2 * row + 1, total)
    drop(e / total, y, keep, row * BLOCK + tl.arange(0, BLOCK), seed, p)


@triton.jit
def store_gradient(v, dd, keep, stats, dx, p, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = row * BLOCK + tl.arange(0, BLOCK)
    probs = tl.exp(v - tl.load(stats + 2 * row)) / tl.load(stats + 2 * row + 1)
    g = dropped_gradient(dd, keep, i, p)
    tl.store(dx + i, scale * probs * (g - tl.sum(g * probs, 0)))


@triton.jit
def softmax_dropout_forward(x, y, keep, stats, seed, p, scale, BLOCK: tl.constexpr):
    drop_softmax(scores_of_row(x, scale, BLOCK), y, keep, stats, seed, p, BLOCK)


@triton.jit
def masked_softmax_dropout_forward(x, mask, y, keep, stats, seed, p, scale, rows,
                                   BLOCK: tl.constexpr):
    v = scores_of_row(x, scale, BLOCK) + mask_of_row(mask, rows, BLOCK)
    drop_softmax(v, y, keep, stats, seed, p, BLOCK)


@triton.jit
def softmax_dropout_backward(dd, x, keep, stats, dx, p, scale, BLOCK: tl.constexpr):
    store_gradient(scores_of_row(x, scale, BLOCK), dd, keep, stats, dx, p, scale, BLOCK)


@triton.jit
def masked_softmax_dropout_backward(dd, x, mask, keep, stats, dx, p, scale, rows,
                                    BLOCK: tl.constexpr):
    v = scores_of_row(x, scale, BLOCK) + mask_of_row(mask, rows, BLOCK)
    store_gradient(v, dd, keep, stats, dx, p, scale, BLOCK)


KERNELS = [gelu_forward, bias_gelu_forward, gelu_backward, dropout_forward, dropout_backward,
           layer_norm_forward, layer_norm_backward, softmax_dropout_forward,
           softmax_dropout_backward, masked_softmax_dropout_forward,
           masked_softmax_dropout_backward]
TENSORS = {"stats": "*fp32", "sums": "*fp32", "keep": "*i1"}  # the others are of the op's type
NUMBERS = (dict.fromkeys(("seed", "width", "rows"), "i32")
           | dict.fromkeys(("p", "scale", "eps"), "fp32"))


def compile_kernel(kernel, dtype, capability, block):
    """The machine code for an architecture ("9.0"), as a cubin."""
    names = kernel.arg_names
    kinds = {name: (NUMBERS | TENSORS).get(name, f"*{dtype}") for name in names}
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
        for dtype in kernel_ops.DTYPES:
            name = f"{kernel.__name__}, {dtype}"
            path = folder / f"{name.replace(', ', '_')}.cubin"
            path.write_bytes(compile_kernel(kernel, dtype, capability, block))
            found[name] = path
    return found
