"""The kernels that the model of times knows (kernel_model.py): ours, PyTorch's and torch.compile's,
op by op, with the path that a thread takes through each, at BERT-large's shapes with bits as
masks."""

import dataclasses
import re

BATCH, TOKENS, HIDDEN, HEADS = 32, 512, 1024, 16
ROWS = BATCH * TOKENS  # of LayerNorm
KEYS = TOKENS  # of a row of softmax
HIDDEN_ELEMENTS = ROWS * HIDDEN
MLP_ELEMENTS = 4 * HIDDEN_ELEMENTS
SCORES = BATCH * HEADS * TOKENS * KEYS

DTYPES = {"fp32": 4, "fp16": 2, "bf16": 2}
OUR_TYPE = {"fp32": "float", "fp16": "kernels::Half", "bf16": "kernels::BFloat16"}
TORCH_TYPE = {"fp32": "float", "fp16": "c10::Half", "bf16": "c10::BFloat16"}
BIT = 1 / 8
TILE = 256  # elements of a warp (cuda_tile.cuh)
ROW_TILES = HIDDEN // TILE  # of a row of LayerNorm: of one warp in forward, a warp each in backward
PARTIALS = 216  # blocks of LayerNorm's backward (inplace_layernorm.cpp)
PARTIAL = 8 * PARTIALS / ROWS  # bytes an element of the sums of dgamma and dbeta


@dataclasses.dataclass(frozen=True)
class Code:
    """One kernel as an op launches it."""

    pattern: str  # of its demangled name, a regular expression; "": only its bytes are counted
    accesses: dict  # what a thread does on its way (machine_code.py); empty: code without loops
    elements: int  # of the op's tensor, that a thread treats on this way
    bytes: float  # an element: what the op must read and write
    total: int  # elements of the op's tensor
    threads: int = 256  # of a block
    blocks: int = 0  # of the grid; 0: as many as the elements need
    repeats: tuple = ()
    loop: str = ""  # count only the loop that makes this access
    streams: int = 0  # loads of 128 bits from memory; those after them find a cache; 0: all
    uniform: tuple = ()  # accesses that load one value for all lanes

    @property
    def grid(self):
        return self.blocks or -(-self.total // (self.elements * self.threads))


@dataclasses.dataclass(frozen=True)
class Op:
    name: str
    direction: str  # "forward", "backward"
    ours: tuple  # Codes that run one after another
    pytorch: tuple
    compiled: tuple  # by torch.compile (compiled_kernels.py)


def ops(dtype, capability):
    return [
        *gelu(dtype, capability, "GELU"),
        *bias_gelu(dtype, capability),
        *dropout(dtype, capability),
        *layer_norm(dtype),
        *residual_layer_norm(dtype, capability),
        *softmax_dropout(dtype, capability),
    ]


def patterns(capability, side):
    """The names of the kernels of one side of all ops: "ours", "pytorch" or "compiled"."""
    found = [code.pattern for dtype in DTYPES for op in ops(dtype, capability)
             for code in getattr(op, side)]
    return sorted({pattern for pattern in found if pattern})


def only_bytes(count, total):
    """A kernel whose instructions are left out: its bytes are a lower bound of its time."""
    return Code("", {}, 1, count, total)


def triton(kernel, dtype, count, total, block=1024):
    """A kernel of compiled_kernels.py; four warps to a block."""
    return Code(f"^{kernel}, {dtype}$", {}, block // 128, count, total, threads=128)


def packs_of(dtype):
    """Packs of 16 bytes that hold eight elements."""
    return DTYPES[dtype] // 2


# --- element by element --------------------------------------------------------------------------


def gelu(dtype, capability, name):
    e, packs = DTYPES[dtype], packs_of(dtype)
    ours = f"inplace_gelu_{{}}_kernel<kernels::gelu_fit::ErfFit, {OUR_TYPE[dtype]}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    backward = {"LDG.128": 2 * packs, "STG.128": packs, "LDG.8": packs}
    torch = torch_elementwise(dtype, capability, MLP_ELEMENTS)
    return [
        Op(name, "forward",
           (Code(ours.format("forward"), forward, 8, 2 * e + BIT, MLP_ELEMENTS),),
           (torch(r"GeluCUDAKernelImpl.*operator.*lambda\({type}\)", 1),),
           (triton("gelu_forward", dtype, 2 * e, MLP_ELEMENTS),)),
        Op(name, "backward",
           (Code(ours.format("backward"), backward, 8, 3 * e + BIT, MLP_ELEMENTS),),
           (torch(r"GeluBackwardCUDAKernelImpl.*operator.*lambda\({type}, ", 2),),
           (triton("gelu_backward", dtype, 3 * e, MLP_ELEMENTS),)),
    ]


def bias_gelu(dtype, capability):
    """gelu(x + bias) beside an addition of its own. Backward is GELU's; both add up the bias'
    gradient in one more pass, which is left out on both sides."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    plain = gelu(dtype, capability, "bias + GELU")
    accesses = {"LDG.128": 2 * packs, "STG.128": packs, "STG.8": packs}
    forward = dataclasses.replace(plain[0].ours[0], accesses=accesses, streams=packs)
    addition = only_bytes(2 * e, MLP_ELEMENTS)
    compiled = triton("bias_gelu_forward", dtype, 2 * e, MLP_ELEMENTS)
    return [dataclasses.replace(plain[0], ours=(forward,), compiled=(compiled,),
                                pytorch=(addition, *plain[0].pytorch)), plain[1]]


def torch_elementwise(dtype, capability, total):
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
                    (inputs + 1) * e + mask, total, threads=128)

    return code


def dropout(dtype, capability):
    e, packs = DTYPES[dtype], packs_of(dtype)
    ours = f"::dropout_forward_kernel<{OUR_TYPE[dtype]}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    compiled = (triton("dropout_either_way", dtype, 2 * e, HIDDEN_ELEMENTS),)
    return [
        Op("dropout", "forward", (Code(ours, forward, 8, 2 * e + BIT, HIDDEN_ELEMENTS),),
           (torch_dropout(dtype, HIDDEN_ELEMENTS),), compiled),
        Op("dropout", "backward", (our_dropout_backward(dtype, HIDDEN_ELEMENTS),),
           (torch_masked_scale(dtype, capability, HIDDEN_ELEMENTS),), compiled),
    ]


def our_dropout_backward(dtype, total):
    e, packs = DTYPES[dtype], packs_of(dtype)
    accesses = {"LDG.128": packs, "STG.128": packs, "LDG.8": packs}
    return Code(f"::dropout_backward_kernel<{OUR_TYPE[dtype]}>", accesses, 8, 2 * e + BIT, total)


def torch_dropout(dtype, total):
    """The seed and the offset are one value for all lanes."""
    e = DTYPES[dtype]
    pack = 16 // e
    accesses = {"LDG.128": 1, "STG.128": 1, "LDG.64": 2, f"STG.{8 * pack}": 1}
    name = rf"fused_dropout_kernel_vec<{TORCH_TYPE[dtype]}, float, unsigned int, 1, {pack}, "
    return Code(name, accesses, pack, 2 * e + 1, total, loop="STG.128", uniform=("LDG.64",))


def torch_masked_scale(dtype, capability, total):
    name = r"masked_scale_kernel<unsigned char, {type}, "
    return torch_elementwise(dtype, capability, total)(name, 1, mask=True)


# --- rows of LayerNorm ---------------------------------------------------------------------------


def norm_kernel(name, dtype, variant):
    return rf"::{name}_kernel<{OUR_TYPE[dtype]}, {variant}, false>"


SAVE_OUTPUT = r"\(kernels::LayerNormSave\)0"
ROW = 4 / HIDDEN  # bytes an element of rstd


def layer_norm(dtype):
    e, packs = DTYPES[dtype], packs_of(dtype)
    forward = {"LDG.128": 3 * packs, "STG.128": packs}
    backward = {"LDG.128": 4 * packs, "STG.128": packs, "LDG.32": 1}
    return [
        Op("LayerNorm", "forward",
           (norm_forward(norm_kernel("layer_norm_forward", dtype, ROW_TILES), forward, 2 * e + ROW,
                         packs),),
           (only_bytes(2 * e + 2 * ROW, HIDDEN_ELEMENTS),),
           (triton("layer_norm_forward", dtype, 2 * e + 2 * ROW, HIDDEN_ELEMENTS),)),
        Op("LayerNorm", "backward",
           (norm_backward(norm_kernel("layer_norm_backward", dtype, SAVE_OUTPUT), backward,
                          3 * e + ROW + PARTIAL), reduction()),
           # the gradients of x, and of gamma and beta in a kernel of their own
           (only_bytes(3 * e + 2 * ROW, HIDDEN_ELEMENTS), only_bytes(2 * e, HIDDEN_ELEMENTS)),
           (triton("layer_norm_backward", dtype, 3 * e + 2 * ROW, HIDDEN_ELEMENTS),
            only_bytes(2 * e, HIDDEN_ELEMENTS))),
    ]


def norm_forward(pattern, accesses, count, streams):
    """A row a warp; `accesses` and `streams` are of one of its tiles."""
    row = {name: ROW_TILES * n for name, n in accesses.items()} | {"STG.32": 1}
    return Code(pattern, row, 8 * ROW_TILES, count, HIDDEN_ELEMENTS, threads=128,
                streams=ROW_TILES * streams)


def norm_backward(pattern, accesses, count):
    """A loop over the rows of a block, whose sums of dgamma and dbeta wait in registers."""
    barriers = {"BAR": 2, "LDS": 2 * ROW_TILES}
    return Code(pattern, accesses | barriers, 8, count, HIDDEN_ELEMENTS, threads=512,
                blocks=PARTIALS, loop="STG.128")


def reduction():
    """Adds up the partial sums of dgamma and dbeta."""
    return only_bytes(PARTIAL, HIDDEN_ELEMENTS)


def residual_layer_norm(dtype, capability):
    """LayerNorm(residual + dropout(x)) beside the three ops."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    forward = {"LDG.128": 4 * packs, "STG.128": packs, "STG.8": packs}
    backward = {"LDG.128": 4 * packs, "STG.128": 2 * packs, "LDG.32": 1, "LDG.8": packs}
    norm = layer_norm(dtype)
    addition = only_bytes(3 * e, HIDDEN_ELEMENTS)
    return [
        Op("residual LayerNorm", "forward",
           (norm_forward(norm_kernel("residual_layer_norm_forward", dtype, ROW_TILES), forward,
                         3 * e + BIT + ROW, 2 * packs),),
           (torch_dropout(dtype, HIDDEN_ELEMENTS), addition, *norm[0].pytorch),
           (only_bytes(3 * e + 2 * ROW, HIDDEN_ELEMENTS),)),
        Op("residual LayerNorm", "backward",
           (norm_backward(norm_kernel("residual_layer_norm_backward", dtype, SAVE_OUTPUT), backward,
                          4 * e + BIT + ROW + PARTIAL), reduction()),
           (*norm[1].pytorch, torch_masked_scale(dtype, capability, HIDDEN_ELEMENTS)),
           (only_bytes(4 * e + 2 * ROW, HIDDEN_ELEMENTS), only_bytes(2 * e, HIDDEN_ELEMENTS))),
    ]


# --- rows of softmax -----------------------------------------------------------------------------


def softmax_dropout(dtype, capability):
    """PyTorch's attention also scales the scores and adds the mask in kernels of their own, which
    our op replaces: 2e bytes each, and the scale once more in backward. torch.compile keeps the
    scores; backward makes the dropped probabilities again, for the gradient of the value."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    tiles = KEYS // TILE
    name = f"::softmax_dropout_{{}}_kernel<{OUR_TYPE[dtype]}, {tiles}>"
    forward = {"LDG.128": tiles * packs, "STG.128": 2 * tiles * packs, "STG.8": packs}
    backward = {"LDG.128": 2 * tiles * packs, "STG.128": tiles * packs, "LDG.8": packs}
    each = KEYS // 32
    scalar = 8 * e
    warp = rf"softmax_warp_{{}}<{TORCH_TYPE[dtype]}, {TORCH_TYPE[dtype]}, float, 9, false, false>"
    pass_over = only_bytes(2 * e, SCORES)

    def ours(direction, accesses, repeats):
        return Code(name.format(direction), accesses, 8 * tiles, 3 * e + BIT, SCORES, threads=128,
                    repeats=repeats)

    def torch(direction, accesses, count):
        return Code(warp.format(direction), accesses, each, count, SCORES, threads=128)

    return [
        Op("softmax + dropout", "forward",
           (ours("forward", forward, (("STG.8", tiles),)),),
           (pass_over, pass_over,
            torch("forward", {f"LDG.{scalar}": each, f"STG.{scalar}": each}, 2 * e),
            torch_dropout(dtype, SCORES)),
           (triton("softmax_dropout_forward", dtype, 2 * e, SCORES, KEYS),)),
        Op("softmax + dropout", "backward",
           (our_dropout_backward(dtype, SCORES),  # makes the dropped probabilities again
            ours("backward", backward, (("LDG.8", tiles),))),
           (torch_masked_scale(dtype, capability, SCORES),
            torch("backward", {f"LDG.{scalar}": 2 * each, f"STG.{scalar}": each}, 3 * e),
            pass_over),
           (triton("softmax_dropout_backward", dtype, 4 * e, SCORES, KEYS),)),
    ]
