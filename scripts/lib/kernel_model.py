"""How long each kernel takes, from its machine code and the bytes that it moves.

A GPU takes at least the larger of two times: bytes over the bandwidth, and instructions over the
rate of the pipe that they need most. The model takes exactly that, so both overlap perfectly and
every warp finds its next instruction. A copy moves its bytes at SHARE_OF_PEAK of the bandwidth;
kernels are compared with a copy of as many bytes.
"""

import collections
import dataclasses
import re

from machine_code import hot_path, innermost_loop

SHARE_OF_PEAK = 0.9  # of the bandwidth in gpus.json: 3.0 of 3.35 TB/s on an H100
HIDDEN = 1024  # BERT-large: LayerNorm's row
KEYS = 512  # softmax's row
DTYPES = {"fp32": 4, "fp16": 2, "bf16": 2}

# Lanes a clock and multiprocessor. All architectures issue four warp instructions a clock. Sources:
# CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions; which operation uses
# which pipe: Nsight Compute's documentation. The integer rate of sm_120 is a lower bound.
ISSUE = 128
LANES = {"multiply": 64, "logic": 64, "special": 16, "exchange": 32}
FLOAT_LANES = {"7.5": 64, "8.0": 64}
OTHER_FLOAT_LANES = 128

PIPES = {
    "float": "FFMA FMUL FADD HADD2 HFMA2 HMUL2",
    "multiply": "IMAD XMAD",
    "special": "MUFU F2F I2F F2I FRND POPC BREV FLO",
    "exchange": "LDG STG LDS STS SHFL LDL STL ATOM RED",
    "control": "BRA EXIT BSSY BSYNC BAR WARPSYNC NOP CALL RET YIELD BREAK LDC S2R CS2R S2UR ULDC "
    "UMOV UIADD3 ULOP3 USHF UIMAD ULEA UPRMT USEL UISETP UPLOP3 UP2UR R2UR VOTEU",
}
PIPE_OF = {name: pipe for pipe, names in PIPES.items() for name in names.split()}


def pipe_of(instruction):
    return PIPE_OF.get(instruction.base, "logic")


@dataclasses.dataclass(frozen=True)
class Code:
    """One kernel as an op launches it."""

    pattern: str  # of its demangled name, a regular expression
    accesses: dict  # what a thread does on its way (machine_code.py)
    elements: int  # of the op's tensor, that a thread treats on this way
    bytes: float  # an element: what the op must read and write
    repeats: tuple = ()
    loop: str = ""  # count only the loop that makes this access


@dataclasses.dataclass(frozen=True)
class Op:
    name: str
    direction: str  # "forward", "backward"
    ours: tuple  # Codes that run one after another
    pytorch: tuple
    compiled_bytes: float  # an element: what torch.compile's fused code must move


# --- the ops -------------------------------------------------------------------------------------


def ops(dtype, capability):
    """The ops at BERT-large's shapes, with bits as masks."""
    return [
        *gelu(dtype, capability),
        *dropout(dtype, capability),
        *layer_norm(dtype),
        *softmax_dropout(dtype, capability),
    ]


def patterns(capability, side):
    """The names of the kernels of one side of all ops, "ours" or "pytorch"."""
    found = [code.pattern for dtype in DTYPES for op in ops(dtype, capability)
             for code in getattr(op, side)]
    return sorted({pattern for pattern in found if pattern})


OUR_TYPE = {"fp32": "float", "fp16": "kernels::Half", "bf16": "kernels::BFloat16"}
TORCH_TYPE = {"fp32": "float", "fp16": "c10::Half", "bf16": "c10::BFloat16"}
BIT = 1 / 8


def gelu(dtype, capability):
    e = DTYPES[dtype]
    packs = e // 2  # of 16 bytes, that hold eight elements
    ours = f"inplace_gelu_{{}}_kernel<kernels::gelu_fit::ErfFit, {OUR_TYPE[dtype]}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    backward = {"LDG.128": 2 * packs, "STG.128": packs, "LDG.8": packs}
    torch = torch_elementwise(dtype, capability)
    return [
        Op("GELU", "forward",
           (Code(ours.format("forward"), forward, 8, 2 * e + BIT),),
           (torch(r"GeluCUDAKernelImpl.*operator.*lambda\({type}\)", 1),), 2 * e),
        Op("GELU", "backward",
           (Code(ours.format("backward"), backward, 8, 3 * e + BIT),),
           (torch(r"GeluBackwardCUDAKernelImpl.*operator.*lambda\({type}, ", 2),), 3 * e),
    ]


def torch_elementwise(dtype, capability):
    """Codes of PyTorch's vectorized kernels: eight elements a thread, in packs of four elements;
    16-bit types in packs of eight on the data centre's cards since Hopper."""
    e = DTYPES[dtype]
    pack = 8 if e == 2 and capability in ("9.0", "10.0") else 4
    width, packs = 8 * e * pack, 8 // pack

    def code(pattern, inputs, mask=False):
        accesses = {f"LDG.{width}": inputs * packs, f"STG.{width}": packs}
        if mask:
            accesses[f"LDG.{8 * pack}"] = packs
        name = pattern.replace("{type}", re.escape(TORCH_TYPE[dtype]))
        return Code(rf"vectorized_elementwise_kernel<{pack}, .*{name}", accesses, 8,
                    (inputs + 1) * e + mask)

    return code


def dropout(dtype, capability):
    e = DTYPES[dtype]
    packs = e // 2
    ours = f"::dropout_forward_kernel<{OUR_TYPE[dtype]}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    return [
        Op("dropout", "forward", (Code(ours, forward, 8, 2 * e + BIT),),
           (torch_dropout(dtype),), 2 * e),
        Op("dropout", "backward", (our_dropout_backward(dtype),),
           (torch_masked_scale(dtype, capability),), 2 * e),
    ]


def our_dropout_backward(dtype):
    e = DTYPES[dtype]
    accesses = {"LDG.128": e // 2, "STG.128": e // 2, "LDG.8": e // 2}
    return Code(f"::dropout_backward_kernel<{OUR_TYPE[dtype]}>", accesses, 8, 2 * e + BIT)


def torch_dropout(dtype):
    e = DTYPES[dtype]
    pack = 16 // e
    accesses = {"LDG.128": 1, "STG.128": 1, "LDG.64": 2, f"STG.{8 * pack}": 1}
    name = rf"fused_dropout_kernel_vec<{TORCH_TYPE[dtype]}, float, unsigned int, 1, {pack}, "
    return Code(name, accesses, pack, 2 * e + 1, loop="STG.128")


def torch_masked_scale(dtype, capability):
    name = r"masked_scale_kernel<unsigned char, {type}, "
    return torch_elementwise(dtype, capability)(name, 1, mask=True)


def layer_norm(dtype):
    e = DTYPES[dtype]
    packs = e // 2
    name = f"::layer_norm_{{}}_kernel<{OUR_TYPE[dtype]}"
    warps = HIDDEN // 8 // 32
    forward = {"LDG.128": 3 * packs, "STG.128": packs, "STG.32": 1, "BAR": 4, "LDS": 2 * warps}
    backward = {"LDG.128": 4 * packs, "STG.128": packs, "LDG.32": 1, "BAR": 2, "LDS": warps}
    row = 4 / HIDDEN  # rstd
    return [
        Op("LayerNorm", "forward",
           (Code(name.format("forward") + ">", forward, 8, 2 * e + row),),
           (bytes_only(2 * e + 2 * row),), 2 * e + 2 * row),
        Op("LayerNorm", "backward",
           (Code(name.format("backward") + r", \(kernels::LayerNormSave\)0>", backward, 8,
                 3 * e + row, loop="STG.128"),),
           # the gradients of x, and of gamma and beta in a kernel of their own
           (bytes_only(3 * e + 2 * row), bytes_only(2 * e)), 3 * e + 2 * row),
    ]


def bytes_only(count):
    """PyTorch's LayerNorm walks rows in loops that depend on the row; its bytes are a lower bound
    of its time, so the comparison is in its favour."""
    return Code("", {}, 1, count)


def softmax_dropout(dtype, capability):
    e = DTYPES[dtype]
    packs = e // 2
    tiles = KEYS // 256
    name = f"::softmax_dropout_{{}}_kernel<{OUR_TYPE[dtype]}, {tiles}>"
    forward = {"LDG.128": tiles * packs, "STG.128": 2 * tiles * packs, "STG.8": packs}
    backward = {"LDG.128": 2 * tiles * packs, "STG.128": tiles * packs, "LDG.8": packs}
    each = KEYS // 32
    scalar = 8 * e
    warp = rf"softmax_warp_{{}}<{TORCH_TYPE[dtype]}, {TORCH_TYPE[dtype]}, float, 9, false, false>"
    return [
        Op("softmax + dropout", "forward",
           (Code(name.format("forward"), forward, 8 * tiles, 3 * e + BIT,
                 repeats=(("STG.8", tiles),)),),
           (Code(warp.format("forward"), {f"LDG.{scalar}": each, f"STG.{scalar}": each}, each,
                 2 * e), torch_dropout(dtype)), 2 * e),
        Op("softmax + dropout", "backward",
           (our_dropout_backward(dtype),  # makes the dropped probabilities again
            Code(name.format("backward"), backward, 8 * tiles, 3 * e + BIT,
                 repeats=(("LDG.8", tiles),))),
           (torch_masked_scale(dtype, capability),
            Code(warp.format("backward"), {f"LDG.{scalar}": 2 * each, f"STG.{scalar}": each}, each,
                 3 * e)), 3 * e),
    ]


BUDGETED = ("8.0", "9.0", "10.0", "12.0")
# The most instructions an element that a kernel may take on these architectures.
INSTRUCTION_BUDGETS = {
    ("GELU", "forward"): {"fp32": 25, "fp16": 27, "bf16": 27},
    ("GELU", "backward"): {"fp32": 34, "fp16": 45, "bf16": 42},
    ("dropout", "forward"): {"fp32": 30, "fp16": 24, "bf16": 24},
    ("dropout", "backward"): {"fp32": 14, "fp16": 11, "bf16": 12},
    ("LayerNorm", "forward"): {"fp32": 44, "fp16": 43, "bf16": 43},
    ("LayerNorm", "backward"): {"fp32": 44, "fp16": 45, "bf16": 45},
    ("softmax + dropout", "forward"): {"fp32": 61, "fp16": 52, "bf16": 53},
    ("softmax + dropout", "backward"): {"fp32": 45, "fp16": 36, "bf16": 37},
}


def over_budget(kernels, capability):
    """Sentences about our kernels that take more instructions than their budget, or that have no
    path with the wide loads and stores that they should make. `kernels` as disassemble() gives."""
    wrong = []
    for dtype in DTYPES:
        for op in ops(dtype, capability):
            budget = INSTRUCTION_BUDGETS[op.name, op.direction][dtype]
            try:
                taken = sum(count(code, kernels).instructions for code in op.ours)
            except LookupError as error:
                wrong.append(str(error))
                continue
            if taken > budget:
                wrong.append(f"{op.name} {op.direction} in {dtype} takes {taken:.1f} instructions "
                             f"an element on {capability}; its budget is {budget}.")
    return wrong


# --- the model -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Counted:
    """What an element costs in one kernel."""

    bytes: float
    pipes: collections.Counter  # {pipe: instructions}

    @property
    def instructions(self):
        return sum(self.pipes.values())


def count(code, kernels):
    """Raises LookupError: the library has no such kernel, or the kernel no such path."""
    if not code.pattern:
        return Counted(code.bytes, collections.Counter())
    found = [body for name, body in kernels.items() if re.search(code.pattern, name)]
    if not found:
        raise LookupError(f"No kernel is called {code.pattern}.")
    path = hot_path(found[0], code.accesses, code.repeats)
    if path is None:
        accesses = ", ".join(f"{n} {name}" for name, n in code.accesses.items())
        raise LookupError(f"{code.pattern} has no path with exactly {accesses}.")
    path = innermost_loop(path, code.loop) if code.loop else path
    pipes = path.of_class(pipe_of)
    each = collections.Counter({pipe: n / code.elements for pipe, n in pipes.items()})
    return Counted(code.bytes, each)


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    capability: str  # "9.0"
    bytes_per_s: float
    clocks_per_s: float  # of all multiprocessors together

    @property
    def float_lanes(self):
        return FLOAT_LANES.get(self.capability, OTHER_FLOAT_LANES)


def gpu_of(row):
    """A GPU from its row in gpus.json. The clock follows from fp32: two operations a lane."""
    capability = row["compute_capability"]
    lanes = FLOAT_LANES.get(capability, OTHER_FLOAT_LANES)
    return Gpu(row["name"], capability, SHARE_OF_PEAK * row["bandwidth_gb_per_s"]["value"] * 1e9,
               row["fp32_tflops"]["value"] * 1e12 / 2 / lanes)


def copy_seconds(counted, gpu):
    return sum(one.bytes for one in counted) / gpu.bytes_per_s


def seconds(counted, gpu):
    """Seconds an element that kernels take one after another."""
    return sum(max(one.bytes / gpu.bytes_per_s, clocks(one, gpu) / gpu.clocks_per_s)
               for one in counted)


def clocks(one, gpu):
    """Clocks of one multiprocessor for an element: those of the pipe that is busy longest."""
    lanes = {**LANES, "float": gpu.float_lanes}
    busy = [one.pipes[pipe] / rate for pipe, rate in lanes.items()]
    return max(one.instructions / ISSUE, *busy)


# --- the table -----------------------------------------------------------------------------------

HEADINGS = [
    "op",
    "pass",
    "dtype",
    "instructions",
    "bytes",
    "arithmetic / bytes",
    "of copy",
    "PyTorch: instructions",
    "PyTorch: bytes",
    "of PyTorch's time",
    "of fused bytes",
]


def rows_of(gpu, ours, pytorch):
    """The table's rows for one GPU. After an op's two passes, both together. `ours` and `pytorch`
    as disassemble() gives them. Raises LookupError: a kernel is not there."""
    rows = []
    for dtype in DTYPES:
        total = [0.0] * 4
        for op in ops(dtype, gpu.capability):
            mine = [count(code, ours) for code in op.ours]
            theirs = [count(code, pytorch) for code in op.pytorch]
            times = times_of(op, mine, theirs, gpu)
            rows.append([op.name, op.direction, dtype, *row_of(mine, theirs, times, gpu)])
            total = times if op.direction == "forward" else [a + b for a, b in zip(total, times)]
            if op.direction == "backward":
                blank = [""] * 3
                rows.append([op.name, "both", dtype, *blank, share_of_copy(total), "", "",
                             *shares_of_others(total)])
    return rows


def times_of(op, mine, theirs, gpu):
    """Seconds an element: ours, a copy of our bytes, PyTorch's, and the bytes of fused code."""
    return [seconds(mine, gpu), copy_seconds(mine, gpu), seconds(theirs, gpu),
            op.compiled_bytes / gpu.bytes_per_s]


def row_of(mine, theirs, times, gpu):
    arithmetic = sum(clocks(one, gpu) for one in mine) / gpu.clocks_per_s
    return [*sums(mine), f"{arithmetic / copy_seconds(mine, gpu):.2f}", share_of_copy(times),
            *sums(theirs), *shares_of_others(times)]


def sums(counted):
    """Instructions and bytes an element; no instructions where the model leaves them out."""
    known = all(one.instructions for one in counted)
    return [f"{sum(one.instructions for one in counted):.1f}" if known else "–",
            f"{sum(one.bytes for one in counted):.2f}"]


def share_of_copy(times):
    return f"{times[1] / times[0]:.2f}"


def shares_of_others(times):
    return [f"{times[0] / times[2]:.2f}", f"{times[0] / times[3]:.2f}"]
