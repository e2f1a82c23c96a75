"""Kernels of Liger-Kernel, flash-attention and apex, compiled from their sources without a GPU,
with the instructions that an element takes in each. Rows of LayerNorm have 1024 elements, rows of
softmax 512. Kernels that loop over rows are counted by one pass of the loop, others as a whole."""

import importlib
import pathlib
import re
import subprocess
import sys
import types
from unittest import mock

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import machine_code
from kernel_ops import HIDDEN, KEYS

# Repositories, and a file of each where it is cloned; docs/dev/kernels.md names the commits.
SOURCES = {
    "linkedin/Liger-Kernel": "Liger-Kernel/src/liger_kernel/ops/layer_norm.py",
    "Dao-AILab/flash-attention": "flash-attention/flash_attn/ops/triton/layer_norm.py",
    "NVIDIA/apex": "apex/apex/contrib/csrc/layer_norm/ln_fwd_kernels.cuh",
}
WARPS = 4  # of a block: what Liger takes for these rows, and one of flash-attention's choices
DTYPES = {  # torch's and CUDA's names; apex' softmax has no fp32
    "fp16": ("c10::Half", "half"),
    "bf16": ("c10::BFloat16", "__nv_bfloat16"),
}


# --- Triton --------------------------------------------------------------------------------------


def triton_cubin(function, dtype, capability, constants):
    """The machine code of a kernel whose names tell the kinds of its arguments."""
    names = function.arg_names
    kinds = {name: kind_of(name, dtype) for name in names}
    kinds |= dict.fromkeys(constants, "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names)
               if kinds[name].startswith("*") or kinds[name] == "i32" and "rows" not in name}
    values = {(names.index(name),): value for name, value in constants.items()}
    target = GPUTarget("cuda", int(capability.replace(".", "")), 32)
    compiled = triton.compile(ASTSource(function, kinds, values, aligned), target=target,
                              options={"num_warps": WARPS})
    return compiled.asm["cubin"]


FLOAT_TENSORS = {"mean", "rstd", "mean_ptr", "rstd_ptr", "dw", "db", "dw_ptr", "db_ptr"}


def kind_of(name, dtype):
    low = name.lower()
    if low in ("eps", "dropout_p", "offset"):
        return "fp32"
    if low == "seeds":
        return "*i64"
    if low in FLOAT_TENSORS:
        return "*fp32"
    if "stride" in low or low in ("m", "n", "n_cols", "n_rows", "rows_per_program"):
        return "i32"
    return f"*{dtype}"


def flash_layer_norm(folder):
    """Its module, without the package's own imports and questions, which need a GPU."""
    for name in ("flash_attn", "flash_attn.utils", "flash_attn.ops"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder / "flash-attention" / name.replace(".", "/"))]
        sys.modules[name] = package
    card = types.SimpleNamespace(warp_size=32, multi_processor_count=0)
    with (mock.patch("torch.cuda.current_device", return_value=0),
          mock.patch("torch.cuda.get_device_properties", return_value=card)):
        return importlib.import_module("flash_attn.ops.triton.layer_norm")


def triton_kernels(folder):
    """(library, kernel, what it does, its function, elements of a row, its constants, store of its
    loop)."""
    sys.path.insert(0, str(folder / "Liger-Kernel" / "src"))
    norm, rms, soft = (importlib.import_module(f"liger_kernel.ops.{name}")
                       for name in ("layer_norm", "rms_norm", "softmax"))
    flash = flash_layer_norm(folder)
    affine = {"elementwise_affine": True, "casting_mode": rms._CASTING_MODE_LLAMA}
    absent = ("X1", "W1", "B1", "Y1", "ROWSCALE", "DROPOUT_MASK", "DROPOUT_MASK1")
    switches = {name: False for name in ("IS_RMS_NORM", "HAS_ROWSCALE", "HAS_B1")}
    forward = dict.fromkeys(absent) | switches | {
        "zero_centered_weight": False, "HAS_RESIDUAL": True, "STORE_RESIDUAL_OUT": True,
        "HAS_BIAS": True, "HAS_DROPOUT": True, "STORE_DROPOUT_MASK": False, "HAS_X1": False,
        "HAS_W1": False}
    absent = ("Y", "B", "W1", "DY1", "DX1", "DW1", "DB1", "ROWSCALE")
    backward = dict.fromkeys(absent) | switches | {
        "zero_centered_weight": False, "HAS_DRESIDUAL": True, "STORE_DRESIDUAL": True,
        "HAS_BIAS": True, "HAS_DROPOUT": True, "HAS_DY1": False, "HAS_DX1": False,
        "RECOMPUTE_OUTPUT": False}
    liger, attention = "Liger-Kernel", "flash-attention"
    return [
        (liger, norm._layer_norm_forward_kernel, "LayerNorm forward", HIDDEN, {}, False),
        (liger, norm._layer_norm_backward_kernel, "LayerNorm backward", HIDDEN,
         {"rows_per_program": 128}, True),
        (liger, rms._rms_norm_forward_kernel, "RMSNorm forward", HIDDEN, affine, False),
        (liger, rms._rms_norm_backward_kernel, "RMSNorm backward", HIDDEN,
         affine | {"X_dtype": None}, True),
        (attention, flash._layer_norm_fwd_1pass_kernel.fn, "residual LayerNorm and sum forward",
         HIDDEN, forward, False),
        (attention, flash._layer_norm_bwd_kernel.fn, "residual LayerNorm and sum backward", HIDDEN,
         backward, True),
        (liger, soft._softmax_single_block_forward_kernel, "softmax forward", KEYS, {}, False),
        (liger, soft._softmax_single_block_backward_kernel, "softmax backward", KEYS, {}, False),
    ]


def counted_triton(folder, cuobjdump, dtype, capability, scratch):
    for library, function, does, row, constants, loops in triton_kernels(folder):
        block = next(name for name in function.arg_names if name.startswith("BLOCK"))
        if "X_dtype" in constants:
            constants = constants | {"X_dtype": triton.language.dtype(dtype)}
        path = scratch / "other.cubin"
        path.write_bytes(triton_cubin(function, dtype, capability, constants | {block: row}))
        ((_, body),) = machine_code.disassemble(cuobjdump, path, architecture(capability)).items()
        yield library, function.__name__, does, instructions(body, row / (32 * WARPS), loops)


# What comes closest; ours also drops out, and in backward makes what forward dropped again.
OURS = {
    f"{name}softmax {direction}": f"{name}softmax + dropout {direction}"
    for name in ("", "mask + ") for direction in ("forward", "backward")
}


def architecture(capability):
    return f"sm_{capability.replace('.', '')}"


def instructions(body, elements, loops):
    """Of an element, where a thread has so many of a row. A loop over rows is the innermost one
    that makes the widest store."""
    path = machine_code.straight_path(body)
    if loops:
        stores = {one.access for one in body if one.base == "STG"}
        path = path.innermost_loop(max(stores, key=lambda name: int(name.split(".")[1])))
    return path.count / elements


# --- apex ----------------------------------------------------------------------------------------

APEX = """
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <cuda.h>
#include <functional>
#include "scaled_masked_softmax.h"
#include "ln_fwd_kernels.cuh"
#include "ln_kernel_traits.h"
#include "ln_bwd_kernels.cuh"
namespace {
using T = TORCH_TYPE;
template __global__ void scaled_masked_softmax_warp_forward<T, T, float, 9>(
    T*, const T*, const uint8_t*, float, int, int, int);
template __global__ void scaled_masked_softmax_warp_backward<T, T, float, 9>(
    T*, T*, const T*, float, int, int);
}
using namespace layer_norm;
using N = CUDA_TYPE;
template __global__ void layer_norm::ln_fwd_kernel<
    Kernel_traits<N, N, N, float, uint32_t, 1024, 1, 4, 1, 16>>(FwdParams);
template __global__ void layer_norm::ln_bwd_kernel<
    Kernel_traits<N, N, N, float, uint32_t, 1024, 1, 4, 1, 16>>(BwdParams);
"""
APEX_KERNELS = [  # name, what it does, elements of a thread in a pass, whether it loops over rows
    ("ln_fwd_kernel", "LayerNorm forward", HIDDEN // 32, True),
    ("ln_bwd_kernel", "LayerNorm backward", HIDDEN // 32, True),
    ("scaled_masked_softmax_warp_forward", "mask + softmax forward", KEYS // 32, False),
    ("scaled_masked_softmax_warp_backward", "mask + softmax backward", KEYS // 32, False),
]


def counted_apex(folder, cuobjdump, dtype, capability, scratch):
    """Raises CalledProcessError: nvcc is missing or refuses the sources."""
    source, cubin = scratch / "apex.cu", scratch / "apex.cubin"
    source.write_text(APEX)
    torch_type, cuda_type = DTYPES[dtype]
    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    includes = [folder / "apex" / "csrc" / "megatron",
                folder / "apex" / "apex" / "contrib" / "csrc" / "layer_norm", torch / "include"]
    subprocess.run(["nvcc", "-std=c++20", f"-arch={architecture(capability)}", "-cubin", "-w",
                    "--expt-relaxed-constexpr", f"-DTORCH_TYPE={torch_type}",
                    f"-DCUDA_TYPE={cuda_type}", *(f"-I{path}" for path in includes), "-o", cubin,
                    source], check=True)
    bodies = machine_code.disassemble(cuobjdump, cubin, architecture(capability))
    for name, does, elements, loops in APEX_KERNELS:
        (body,) = (body for found, body in bodies.items() if re.search(rf"\b{name}<", found))
        yield "apex", name, does, instructions(body, elements, loops)


def counted(folder, cuobjdump, dtype, capability, scratch):
    """(library, kernel, what it does, instructions an element)."""
    yield from counted_triton(folder, cuobjdump, dtype, capability, scratch)
    yield from counted_apex(folder, cuobjdump, dtype, capability, scratch)
