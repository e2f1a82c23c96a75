"""How long each kernel takes, from its machine code and the bytes that it moves.

A kernel takes the largest of three times:

- its bytes over the bandwidth of a copy, SHARE_OF_PEAK of that in gpus.json;
- its instructions over the rate of the pipe that they need most. Where all blocks run at once, the
  multiprocessors with most of them finish last;
- the passes of its warps one after another. A warp waits LATENCY_S for every batch of loads that it
  has sent before it needs one of them, and then issues its instructions. How many warps run at once
  follows from their registers, the shared memory and the size of their blocks.

A last wave of blocks that fills the GPU in part takes as long as a full one.
"""

import collections
import dataclasses
import re

from kernel_ops import DTYPES, ROOT, ops
from machine_code import hot_path, straight_path

SHARE_OF_PEAK = 0.9  # of the bandwidth in gpus.json: 3.0 of 3.35 TB/s on an H100
# From memory to a register while the memory is busy: twice the time on an idle card, for which
# arXiv 2402.13499 measures below 500 clocks on A100 and H100. An assumption.
LATENCY_S = 600e-9
CLOCKS_PER_INSTRUCTION = 2  # of one warp: half of its instructions wait for the one before
WARP = 32
REGISTERS = 65536  # of a multiprocessor; a warp takes them in portions of 256
RESERVED_SHARED_BYTES = 1024  # of a block, by CUDA

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


# --- what a kernel does --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Counted:
    """What an element costs in one kernel, and how its warps run."""

    bytes: float
    pipes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    accesses: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    waits: float = 0  # of a warp for loads, in one pass
    code: object = None  # kernel_ops.Code
    registers: int = 0  # of a thread
    shared_bytes: int = 0  # of a block

    @property
    def instructions(self):
        return sum(self.pipes.values())


def count(code, kernels, resources):
    """`kernels` and `resources` as disassemble() and resources_of() give them. Raises LookupError:
    the library has no such kernel, or the kernel no such path."""
    if not code.pattern:
        return Counted(code.bytes)
    found = [name for name in kernels if re.search(code.pattern, name)]
    if not found:
        raise LookupError(f"No kernel is called {code.pattern}.")
    body = kernels[found[0]]
    path = (hot_path(body, code.accesses, code.repeats, code.uniform) if code.accesses
            else straight_path(body))
    if path is None:
        accesses = ", ".join(f"{n} {name}" for name, n in code.accesses.items())
        raise LookupError(f"{code.pattern} has no path with exactly {accesses}.")
    path = path.innermost_loop(code.loop) if code.loop else path
    used = resources[found[0]]

    def per_element(classes):
        return collections.Counter({name: n / code.elements for name, n in classes.items() if name})

    return Counted(code.bytes, per_element(path.of_class(pipe_of)),
                   per_element(path.of_class(lambda one: one.access)), path.waits(code.streams),
                   code, used.registers, used.shared_bytes)


# --- the GPU -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SmLimits:
    threads: int
    blocks: int
    shared_bytes: int


def sm_limits(capability):
    """From the table of models/config/compute_capability.cpp: that of the newest generation that is
    not newer."""
    text = (ROOT / "models" / "config" / "compute_capability.cpp").read_text()
    rows = re.findall(r"\{\{(\d+), (\d+)\}, \{(\d+), (\d+), (\d+) \* kKiB", text)
    wanted = tuple(map(int, capability.split(".")))
    known = [row for row in rows if (int(row[0]), int(row[1])) <= wanted]
    threads, blocks, kib = map(int, (known or rows[:1])[-1][2:])
    return SmLimits(threads, blocks, 1024 * kib)


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    capability: str  # "9.0"
    bytes_per_s: float
    clocks_per_s: float  # of all multiprocessors together
    sm_count: int
    limits: SmLimits

    @property
    def float_lanes(self):
        return FLOAT_LANES.get(self.capability, OTHER_FLOAT_LANES)

    @property
    def clock_hz(self):
        return self.clocks_per_s / self.sm_count


def gpu_of(row):
    """A GPU from its row in gpus.json. The clock follows from fp32: two operations a lane."""
    capability = row["compute_capability"]
    lanes = FLOAT_LANES.get(capability, OTHER_FLOAT_LANES)
    return Gpu(row["name"], capability, SHARE_OF_PEAK * row["bandwidth_gb_per_s"]["value"] * 1e9,
               row["fp32_tflops"]["value"] * 1e12 / 2 / lanes, row["sm_count"]["value"],
               sm_limits(capability))


def blocks_per_sm(one, gpu):
    """How many blocks of a kernel run on a multiprocessor at once."""
    warps = one.code.threads // WARP
    per_warp = -(-one.registers * WARP // 256) * 256
    shared = one.shared_bytes + RESERVED_SHARED_BYTES
    return max(1, min(gpu.limits.blocks, gpu.limits.threads // one.code.threads,
                      REGISTERS // (per_warp * warps), gpu.limits.shared_bytes // shared))


def resident_warps(one, gpu):
    """Warps of a kernel that run on a multiprocessor at once, on average."""
    blocks = min(one.code.grid(gpu.sm_count) / gpu.sm_count, blocks_per_sm(one, gpu))
    return blocks * one.code.threads / WARP


# --- times, in seconds an element ----------------------------------------------------------------


def seconds_of_bytes(one, gpu):
    return one.bytes / gpu.bytes_per_s


def seconds_of_arithmetic(one, gpu):
    """Of the pipe that is busy longest."""
    if one.code is None:
        return 0.0
    lanes = {**LANES, "float": gpu.float_lanes}
    clocks = max(one.instructions / ISSUE, *(one.pipes[pipe] / n for pipe, n in lanes.items()))
    share = one.code.grid(gpu.sm_count) / gpu.sm_count  # blocks of a multiprocessor
    at_once = share <= blocks_per_sm(one, gpu)
    uneven = -(-one.code.grid(gpu.sm_count) // gpu.sm_count) / share if at_once else 1
    return clocks / gpu.clocks_per_s * uneven


def seconds_of_warps(one, gpu):
    """Of the warps' passes, so many at a time."""
    if one.code is None:
        return 0.0
    issue = one.instructions * one.code.elements * CLOCKS_PER_INSTRUCTION / gpu.clock_hz
    elements = WARP * one.code.elements * resident_warps(one, gpu) * gpu.sm_count
    return (one.waits * LATENCY_S + issue) / elements


def waves(one, gpu):
    """The time of the last wave of blocks, which may be partial, counts as that of a full one."""
    if one.code is None:
        return 1.0
    full = one.code.grid(gpu.sm_count) / (gpu.sm_count * blocks_per_sm(one, gpu))
    return max(1.0, -(-full // 1) / full) if full > 1 else 1.0


def copy_seconds(counted, gpu):
    return sum(seconds_of_bytes(one, gpu) for one in counted)


def seconds(counted, gpu):
    """Of kernels that run one after another."""
    return sum(max(seconds_of_bytes(one, gpu), seconds_of_arithmetic(one, gpu),
                   seconds_of_warps(one, gpu)) * waves(one, gpu) for one in counted)


# --- the tables ----------------------------------------------------------------------------------

HEADINGS = ["op", "pass", "dtype", "instructions", "bytes", "arithmetic / bytes", "warps / bytes",
            "of copy", "PyTorch: instructions", "PyTorch: bytes", "of PyTorch's time",
            "torch.compile: instructions", "torch.compile: bytes", "of torch.compile's time"]
CODE_HEADINGS = ["kernel", "registers", "warps an SM", "waits", "float", "multiply", "logic",
                 "special", "exchange", "control", "loads and stores of a thread, by bits"]


@dataclasses.dataclass(frozen=True)
class Library:
    """The kernels of a library on one architecture: as disassemble() and resources_of() give."""

    kernels: dict
    resources: dict

    def count(self, codes):
        return [count(code, self.kernels, self.resources) for code in codes]


def rows_of(gpu, ours, pytorch, compiled):
    """The table's rows for one GPU, of three Libraries. After an op's two passes, both together.
    Raises LookupError: a kernel is not there."""
    rows = []
    for dtype in DTYPES:
        total = [0.0] * 4
        for op in ops(dtype, gpu.capability):
            mine = ours.count(op.ours)
            others = [pytorch.count(op.pytorch), compiled.count(op.compiled)]
            times = [seconds(mine, gpu), copy_seconds(mine, gpu),
                     *(seconds(one, gpu) for one in others)]
            rows.append([op.name, op.direction, dtype, *row_of(mine, others, times, gpu)])
            total = times if op.direction == "forward" else [a + b for a, b in zip(total, times)]
            if op.direction == "backward":
                rows.append([op.name, "both", dtype, *[""] * 4, share(total, 1, 0),
                             *["", "", share(total, 0, 2)], *["", "", share(total, 0, 3)]])
    return rows


def row_of(mine, others, times, gpu):
    ratios = [sum(seconds_of(one, gpu) for one in mine) / copy_seconds(mine, gpu)
              for seconds_of in (seconds_of_arithmetic, seconds_of_warps)]
    return [*sums(mine), *(f"{ratio:.2f}" for ratio in ratios), share(times, 1, 0),
            *sums(others[0]), share(times, 0, 2), *sums(others[1]), share(times, 0, 3)]


def sums(counted):
    """Instructions and bytes an element; of kernels of which the model takes only the bytes, no
    instructions."""
    known = [one.instructions for one in counted if one.code]
    return [f"{sum(known):.1f}" if known else "–", f"{sum(one.bytes for one in counted):.2f}"]


def share(times, of, over):
    return f"{times[of] / times[over]:.2f}"


def code_rows_of(gpu, ours):
    """What our kernels consist of: registers, warps, instructions an element by pipe, accesses."""
    rows = {}
    for dtype in DTYPES:
        for op in ops(dtype, gpu.capability):
            for one in ours.count(op.ours):
                if one.code is None:
                    continue
                name = f"{op.name} {op.direction}, {dtype}"
                if len([code for code in op.ours if code.pattern]) > 1:
                    name += f" ({re.sub(r'^::|_kernel.*', '', one.code.pattern)})"
                rows[name] = [
                    name, str(one.registers), f"{resident_warps(one, gpu):.1f}", f"{one.waits:.0f}",
                    *(f"{one.pipes[pipe]:.1f}" for pipe in CODE_HEADINGS[4:10]),
                    accesses_of(one)]
    return list(rows.values())


def accesses_of(one):
    known = {name: round(n * one.code.elements) for name, n in one.accesses.items() if "." in name}
    return ", ".join(f"{n} × {name}" for name, n in sorted(known.items()))


# --- what tests hold -----------------------------------------------------------------------------

BUDGETED = ("7.5", "8.0", "9.0", "10.0", "12.0")
TURING_BFLOAT16 = 2  # times the budget: 7.5 has no instruction that converts to bfloat16
# The most instructions an element that a kernel may take on these architectures.
INSTRUCTION_BUDGETS = {
    ("GELU", "forward"): {"fp32": 45, "fp16": 28, "bf16": 27},
    ("GELU", "backward"): {"fp32": 60, "fp16": 37, "bf16": 33},
    ("bias + GELU", "forward"): {"fp32": 49, "fp16": 31, "bf16": 31},
    ("bias + GELU", "backward"): {"fp32": 60, "fp16": 37, "bf16": 33},
    ("dropout", "forward"): {"fp32": 29, "fp16": 23, "bf16": 23},
    ("dropout", "backward"): {"fp32": 14, "fp16": 11, "bf16": 12},
    ("LayerNorm", "forward"): {"fp32": 23, "fp16": 20, "bf16": 20},
    ("LayerNorm", "backward"): {"fp32": 48, "fp16": 47, "bf16": 47},
    ("RMSNorm", "forward"): {"fp32": 21, "fp16": 19, "bf16": 18},
    ("RMSNorm", "backward"): {"fp32": 48, "fp16": 47, "bf16": 47},
    ("residual LayerNorm", "forward"): {"fp32": 34, "fp16": 36, "bf16": 35},
    ("residual LayerNorm", "backward"): {"fp32": 62, "fp16": 61, "bf16": 60},
    ("residual LayerNorm and sum", "forward"): {"fp32": 36, "fp16": 37, "bf16": 36},
    ("residual LayerNorm and sum", "backward"): {"fp32": 65, "fp16": 66, "bf16": 65},
    ("softmax + dropout", "forward"): {"fp32": 45, "fp16": 39, "bf16": 39},
    ("softmax + dropout", "backward"): {"fp32": 42, "fp16": 36, "bf16": 37},
    ("mask + softmax + dropout", "forward"): {"fp32": 49, "fp16": 43, "bf16": 42},
    ("mask + softmax + dropout", "backward"): {"fp32": 42, "fp16": 36, "bf16": 37},
    ("softmax + dropout, 128 keys", "forward"): {"fp32": 54, "fp16": 46, "bf16": 47},
    ("softmax + dropout, 128 keys", "backward"): {"fp32": 48, "fp16": 41, "bf16": 41},
    ("autocast: softmax + dropout", "forward"): {"fp16": 39, "bf16": 39},
    ("autocast: softmax + dropout", "backward"): {"fp16": 36, "bf16": 37},
    ("autocast: LayerNorm", "forward"): {"fp16": 24, "bf16": 22},
    ("autocast: LayerNorm", "backward"): {"fp16": 50, "bf16": 50},
}


def over_budget(library, capability):
    """Sentences about our kernels that take more instructions than their budget, or that have no
    path with the wide loads and stores that they should make."""
    wrong = []
    for dtype in DTYPES:
        for op in ops(dtype, capability):
            budget = INSTRUCTION_BUDGETS[op.name, op.direction][dtype]
            if (capability, dtype) == ("7.5", "bf16"):
                budget *= TURING_BFLOAT16
            try:
                taken = sum(one.instructions for one in library.count(op.ours))
            except LookupError as error:
                wrong.append(str(error))
                continue
            if taken > budget:
                wrong.append(f"{op.name} {op.direction} in {dtype} takes {taken:.1f} instructions "
                             f"an element on {capability}; its budget is {budget}.")
    return wrong


# Kernels for tensors that are no whole packs go element by element.
ONE_BY_ONE = re.compile(r"_any_|_any_row_|layer_norm_reduce|<double|, double|"
                        r"(?:dropout_(?:for|back)ward|gelu_\w+)_kernel<[^(]*, 1>")


def narrow_stores(name, instructions):
    """A sentence if a kernel stores elements one by one where packs would do; else None. One store
    is the loop over the last, partial tile of a tensor; eight are its mask, if that is as wide.
    float kernels also store statistics, and the sums of eight columns: those of norms two for
    each."""
    kind = re.search(r"kernels::(Half|BFloat16)\b", name)
    if ONE_BY_ONE.search(name):
        return None
    stores = collections.Counter(one.access for one in instructions if one.base == "STG")
    if not stores["STG.128"]:
        return f"{name} has no store of 128 bits."
    allowed = 1 + 8 if kind else 16 if "norm_backward" in name else 3 + 8
    taken = stores["STG.16" if kind else "STG.32"]
    if taken > allowed:
        return f"{name} has {taken} stores of one element; {allowed} may be there."
    return None
