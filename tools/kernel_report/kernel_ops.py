"""The kernels that the model of times knows (kernel_model.py): ours, PyTorch's and torch.compile's,
op by op, with the path that a thread takes through each, at BERT-large's shapes with bits as
masks."""

import dataclasses
import pathlib
import re

BATCH, TOKENS, HIDDEN, HEADS = 32, 512, 1024, 16
ROWS = BATCH * TOKENS  # of LayerNorm
KEYS = TOKENS  # of a row of softmax
HIDDEN_ELEMENTS = ROWS * HIDDEN
MLP_ELEMENTS = 4 * HIDDEN_ELEMENTS
SCORES = BATCH * HEADS * TOKENS * KEYS
FEW_KEYS = 128  # of the first phase of BERT's training

DTYPES = {"fp32": 4, "fp16": 2, "bf16": 2}
OUR_TYPE = {"fp32": "float", "fp16": "kernels::Half", "bf16": "kernels::BFloat16"}
TORCH_TYPE = {"fp32": "float", "fp16": "c10::Half", "bf16": "c10::BFloat16"}
BIT = 1 / 8
TILE = 256  # elements of a warp (cuda_tile.cuh)
ROW_TILES = HIDDEN // TILE  # of a row of LayerNorm: of one warp in forward, a warp each in backward
ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYER_NORM = ROOT / "kernels" / "inplace_layernorm.cpp"
FOUND = re.search(r"kMaxCudaPartials = (\d+);", LAYER_NORM.read_text(encoding="utf-8"))
if FOUND is None:
    raise SystemExit(f"{LAYER_NORM} has no kMaxCudaPartials, the sums of LayerNorm's backward.")
PARTIALS = int(FOUND[1])
PARTIAL = 8 * PARTIALS / ROWS  # bytes an element of the sums of dgamma and dbeta
# Rows of a partial sum of torch.compile's, on cards of more than 64 multiprocessors
# (_codegen_mix_order_reduction of torch/_inductor/codegen/simd.py); on smaller ones 32 or more.
SPLIT_ROWS = 16
BYTE = 1  # a mask of PyTorch's and torch.compile's


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
    launched_per_sm: int = 0  # where that makes more blocks, up to twice as many
    repeats: tuple = ()
    loop: str = ""  # count only the loop that makes this access
    streams: int = 0  # loads of 128 bits from memory; those after them find a cache; 0: all
    uniform: tuple = ()  # accesses that load one value for all lanes

    def grid(self, sm_count):
        if not self.blocks:
            return -(-self.total // (self.elements * self.threads))
        return max(self.blocks, min(self.launched_per_sm * sm_count, 2 * self.blocks))


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
        *rms_norm(dtype),
        *residual_layer_norm(dtype, capability),
        *residual_layer_norm(dtype, capability, with_sum=True),
        *softmax_dropout(dtype, capability),
        *softmax_dropout(dtype, capability, masked=True),
        *softmax_dropout(dtype, capability, keys=FEW_KEYS),
        *(autocast(dtype, capability) if dtype != "fp32" else []),
    ]


def patterns(capability, side):
    """The names of the kernels of one side of all ops: "ours", "pytorch" or "compiled"."""
    found = [code.pattern for dtype in DTYPES for op in ops(dtype, capability)
             for code in getattr(op, side)]
    return sorted({pattern for pattern in found if pattern})


def only_bytes(count, total):
    """A kernel whose instructions are left out: its bytes are a lower bound of its time."""
    return Code("", {}, 1, count, total)


def triton(kernel, dtype, count, total, block=1024, **loops):
    """A kernel of compiled_kernels.py; four warps to a block."""
    return Code(f"^{kernel}, {dtype}$", {}, block // 128, count, total, threads=128, **loops)


def packs_of(dtype):
    """Packs of 16 bytes that hold eight elements."""
    return DTYPES[dtype] // 2


# --- element by element --------------------------------------------------------------------------


def flat_kernel(dtype):
    """The template's type, and the elements of its packs."""
    return f"{OUR_TYPE[dtype]}, {16 // DTYPES[dtype]}"


def gelu(dtype, capability, name):
    e, packs = DTYPES[dtype], packs_of(dtype)
    ours = f"inplace_gelu_{{}}_kernel<kernels::gelu_fit::ErfFit, {flat_kernel(dtype)}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    tiles = 2 if e == 2 else 1  # of a warp in backward (inplace_gelu.cu)
    backward = {"LDG.128": 2 * packs * tiles, "STG.128": packs * tiles, "LDG.8": packs * tiles}
    torch = torch_elementwise(dtype, capability, MLP_ELEMENTS)
    return [
        Op(name, "forward",
           (Code(ours.format("forward"), forward, 8, 2 * e + BIT, MLP_ELEMENTS),),
           (torch(r"GeluCUDAKernelImpl.*operator.*lambda\({type}\)", 1),),
           (triton("gelu_forward", dtype, 2 * e, MLP_ELEMENTS),)),
        Op(name, "backward",
           (Code(ours.format("backward"), backward, 8 * tiles, 3 * e + BIT, MLP_ELEMENTS),),
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
    ours = f"::dropout_forward_kernel<{flat_kernel(dtype)}>"
    forward = {"LDG.128": packs, "STG.128": packs, "STG.8": packs}
    return [
        Op("dropout", "forward", (Code(ours, forward, 8, 2 * e + BIT, HIDDEN_ELEMENTS),),
           (torch_dropout(dtype, HIDDEN_ELEMENTS),),
           (triton("dropout_forward", dtype, 2 * e + BYTE, HIDDEN_ELEMENTS),)),
        Op("dropout", "backward", (our_dropout_backward(dtype, HIDDEN_ELEMENTS),),
           (torch_masked_scale(dtype, capability, HIDDEN_ELEMENTS),),
           (triton("dropout_backward", dtype, 2 * e + BYTE, HIDDEN_ELEMENTS),)),
    ]


def our_dropout_backward(dtype, total):
    e, packs = DTYPES[dtype], packs_of(dtype)
    accesses = {"LDG.128": packs, "STG.128": packs, "LDG.8": packs}
    return Code(f"::dropout_backward_kernel<{flat_kernel(dtype)}>", accesses, 8, 2 * e + BIT, total)


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


def norm_kernel(name, dtype, variant, beside_float=False):
    return rf"::{name}_kernel<{OUR_TYPE[dtype]}, {variant}, {str(beside_float).lower()}>"


SAVE_OUTPUT = r"\(kernels::LayerNormSave\)0, false"  # and a row of at most 4096
ROW = 4 / HIDDEN  # bytes an element of rstd
TWO_SUMS = 2 * 5  # shuffles for the sums of the elements and of their squares


def layer_norm(dtype):
    """PyTorch makes the gradients of gamma and beta in a kernel of their own."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    forward = {"LDG.128": 3 * packs, "STG.128": packs}
    backward = {"LDG.128": 4 * packs, "STG.128": packs, "LDG.32": 1}
    return [
        Op("LayerNorm", "forward",
           (norm_forward(norm_kernel("layer_norm_forward", dtype, ROW_TILES), forward, 2 * e + ROW,
                         packs, TWO_SUMS),),
           (only_bytes(2 * e + 2 * ROW, HIDDEN_ELEMENTS),),
           (triton("layer_norm_forward", dtype, 2 * e + 2 * ROW, HIDDEN_ELEMENTS),)),
        Op("LayerNorm", "backward",
           (norm_backward(norm_kernel("layer_norm_backward", dtype, SAVE_OUTPUT), dtype, backward,
                          3 * e + ROW + PARTIAL), reduction()),
           (only_bytes(3 * e + 2 * ROW, HIDDEN_ELEMENTS), only_bytes(2 * e, HIDDEN_ELEMENTS)),
           (triton("layer_norm_backward", dtype, 3 * e + 2 * ROW + compiled_sums(2),
                   HIDDEN_ELEMENTS, loop="STG.128", blocks=ROWS // SPLIT_ROWS),
            compiled_reduction(2))),
    ]


def compiled_sums(count):
    """Bytes an element of the partial sums that torch.compile's kernel of dx also writes, 4 of each
    column and sum: `count` is 2 for dgamma and dbeta. Inductor fuses them where a tensor has 5 Mi
    elements, 4096 rows and twice as many rows as columns (MixOrderReduction of scheduler.py)."""
    return 4 * count / SPLIT_ROWS


def compiled_reduction(count):
    return only_bytes(compiled_sums(count), HIDDEN_ELEMENTS)


def compiled_backward(count, sums=2):
    """A norm's fused backward, counted by its bytes, of which `count` are not partial sums."""
    return only_bytes(count + compiled_sums(sums), HIDDEN_ELEMENTS), compiled_reduction(sums)


def rms_norm(dtype):
    """LayerNorm's kernels without mean and beta. PyTorch's is that of nn.RMSNorm, one fused kernel;
    torch.compile's is counted by its bytes."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    forward, backward = layer_norm(dtype)

    def without_beta(op, accesses, compiled):
        code = dataclasses.replace(op.ours[0], accesses=op.ours[0].accesses | accesses)
        return dataclasses.replace(op, name="RMSNorm", ours=(code, *op.ours[1:]),
                                   compiled=compiled)

    return [without_beta(forward, {"LDG.128": ROW_TILES * 2 * packs, "SHFL": TWO_SUMS // 2},
                         (only_bytes(2 * e + ROW, HIDDEN_ELEMENTS),)),
            without_beta(backward, {"LDG.128": 3 * packs}, compiled_backward(3 * e + ROW, sums=1))]


def norm_forward(pattern, accesses, count, streams, shuffles=0):
    """A row a warp; `accesses` and `streams` are of one of its tiles. Given its shuffles, the path
    is that of LayerNorm or that of RMSNorm."""
    row = {name: ROW_TILES * n for name, n in accesses.items()} | {"STG.32": 1}
    row |= {"SHFL": shuffles} if shuffles else {}
    return Code(pattern, row, 8 * ROW_TILES, count, HIDDEN_ELEMENTS, threads=128,
                streams=ROW_TILES * streams)


def norm_backward(pattern, dtype, accesses, count):
    """A loop over the rows of a block, whose sums of dgamma and dbeta wait in registers. Its grid
    is that of backward_grid (layernorm_rows.cuh)."""
    barriers = {"BAR": 2, "LDS": 2 * ROW_TILES}
    return Code(pattern, accesses | barriers, 8, count, HIDDEN_ELEMENTS, threads=512,
                blocks=PARTIALS, launched_per_sm=2 if DTYPES[dtype] == 2 else 0, loop="STG.128")


def reduction():
    """Adds up the partial sums of dgamma and dbeta."""
    return only_bytes(PARTIAL, HIDDEN_ELEMENTS)


def residual_layer_norm(dtype, capability, with_sum=False):
    """LayerNorm(residual + dropout(x)) beside the three ops. GPT-2 uses the sum again: it is one
    more tensor written in forward, and its gradient one more read in backward, which PyTorch adds
    in a kernel of its own. torch.compile keeps the sum and the mask in any case."""
    e, packs, more = DTYPES[dtype], packs_of(dtype), 1 if with_sum else 0
    forward = {"LDG.128": 4 * packs, "STG.128": (1 + more) * packs, "STG.8": packs}
    backward = {"LDG.128": (4 + more) * packs, "STG.128": 2 * packs, "LDG.32": 1, "LDG.8": packs}
    norm = layer_norm(dtype)
    name = "residual LayerNorm" + (" and sum" if with_sum else "")
    addition = only_bytes(3 * e, HIDDEN_ELEMENTS)
    return [
        Op(name, "forward",
           (norm_forward(norm_kernel("residual_layer_norm_forward", dtype, ROW_TILES), forward,
                         (3 + more) * e + BIT + ROW, 2 * packs),),
           (torch_dropout(dtype, HIDDEN_ELEMENTS), addition, *norm[0].pytorch),
           (only_bytes(4 * e + BYTE + 2 * ROW, HIDDEN_ELEMENTS),)),
        Op(name, "backward",
           (norm_backward(norm_kernel("residual_layer_norm_backward", dtype, SAVE_OUTPUT), dtype,
                          backward, (4 + more) * e + BIT + ROW + PARTIAL), reduction()),
           (*norm[1].pytorch, *([addition] if with_sum else []),
            torch_masked_scale(dtype, capability, HIDDEN_ELEMENTS)),
           compiled_backward((4 + more) * e + BYTE + 2 * ROW)),
    ]


# --- rows of softmax -----------------------------------------------------------------------------


def our_softmax(direction, dtype, keys, total, masked=False):
    """A row of up to 128 keys is half a warp's. All rows of a sequence read one row of the additive
    mask, from cache."""
    e, packs = DTYPES[dtype], packs_of(dtype)
    lanes = 16 if keys <= TILE // 2 else 32
    tiles = -(-keys // (8 * lanes))
    inputs = {"forward": 2 if masked else 1, "backward": 2}[direction]
    accesses = {"LDG.128": inputs * tiles * packs}
    if direction == "forward":
        accesses |= {"STG.128": 2 * tiles * packs, "STG.8": packs}
    else:
        accesses |= {"STG.128": tiles * packs, "LDG.8": packs}
    name = f"::softmax_dropout_{direction}_kernel<{OUR_TYPE[dtype]}, {tiles}, {lanes}>"
    mask_access = "STG.8" if direction == "forward" else "LDG.8"
    return Code(name, accesses, 8 * tiles, 3 * e + BIT, total, threads=128,
                repeats=((mask_access, tiles),), streams=tiles * packs if masked else 0)


def torch_softmax(direction, types, keys, total):
    """A warp has a row, of up to 128 keys two. `types` are those of its input and its output."""
    each = keys // 32 * (2 if keys <= 128 else 1)
    (read, write), inputs = types, 1 if direction == "forward" else 2
    accesses = {f"LDG.{8 * DTYPES[read]}": inputs * each, f"STG.{8 * DTYPES[write]}": each}
    log = (keys - 1).bit_length()
    name = (rf"softmax_warp_{direction}<{TORCH_TYPE[read]}, {TORCH_TYPE[write]}, float, {log}, "
            "false, false>")
    return Code(name, accesses, each, inputs * DTYPES[read] + DTYPES[write], total, threads=128)


def softmax_dropout(dtype, capability, masked=False, keys=KEYS):
    """PyTorch's attention scales the scores and adds the mask in kernels of their own, which our op
    replaces: 2e bytes each, and the scale once more in backward. torch.compile keeps the scores, a
    row's maximum and sum, the mask and the dropped probabilities. Several short rows it would walk
    in a block: counted by its bytes."""
    e, types, scores = DTYPES[dtype], (dtype, dtype), SCORES * keys // KEYS
    name = "mask + softmax + dropout" if masked else "softmax + dropout"
    name += "" if keys == KEYS else f", {keys} keys"
    pass_over = only_bytes(2 * e, scores)

    def compiled(direction):
        count = compiled_softmax(direction, e, keys)
        kernel = f"{'masked_' if masked else ''}softmax_dropout_{direction}"
        return (triton(kernel, dtype, count, scores, keys) if keys == KEYS
                else only_bytes(count, scores))

    return [
        Op(name, "forward",
           (our_softmax("forward", dtype, keys, scores, masked),),
           (pass_over, *([pass_over] if masked else []),
            torch_softmax("forward", types, keys, scores), torch_dropout(dtype, scores)),
           (compiled("forward"),)),
        Op(name, "backward",
           (our_dropout_backward(dtype, scores),  # makes the dropped probabilities again
            our_softmax("backward", dtype, keys, scores)),
           (torch_masked_scale(dtype, capability, scores),
            torch_softmax("backward", types, keys, scores), pass_over),
           (compiled("backward"),)),
    ]


def compiled_softmax(direction, e, keys):
    """Bytes an element of torch.compile's kernel: scores, mask and dropped probabilities in
    forward, in backward two gradients, scores and mask; and two floats a row."""
    return {"forward": 2, "backward": 3}[direction] * e + BYTE + 8 / keys


# --- under autocast ------------------------------------------------------------------------------


def autocast(dtype, capability):
    """PyTorch's softmax and LayerNorm then return float: softmax reads 16-bit scores, dropout is
    float, and the product after it casts to 16 bits; the gradients go back the same way. The
    residual stream, gamma and beta are float; our LayerNorm returns 16 bits. torch.compile, which
    fuses casts, is counted by its bytes."""
    e, wide = DTYPES[dtype], 4
    cast = {total: only_bytes(e + wide, total) for total in (SCORES, HIDDEN_ELEMENTS)}
    scale = only_bytes(2 * e, SCORES)
    norm = layer_norm("fp32")
    forward = {"LDG.128": 2 + 4, "STG.128": 1}  # x, then gamma and beta
    backward = {"LDG.128": 2 + 4, "STG.128": 2, "LDG.32": 1}
    return [
        Op("autocast: softmax + dropout", "forward",
           (our_softmax("forward", dtype, KEYS, SCORES),),
           (scale, torch_softmax("forward", (dtype, "fp32"), KEYS, SCORES),
            torch_dropout("fp32", SCORES), cast[SCORES]),
           (only_bytes(compiled_softmax("forward", e, KEYS), SCORES),)),
        Op("autocast: softmax + dropout", "backward",
           (our_dropout_backward(dtype, SCORES), our_softmax("backward", dtype, KEYS, SCORES)),
           (cast[SCORES], torch_masked_scale("fp32", capability, SCORES),
            torch_softmax("backward", ("fp32", dtype), KEYS, SCORES), scale),
           (only_bytes(compiled_softmax("backward", e, KEYS), SCORES),)),
        Op("autocast: LayerNorm", "forward",
           (norm_forward(norm_kernel("layer_norm_forward", dtype, ROW_TILES, True), forward,
                         wide + e + ROW, 2, TWO_SUMS),),
           (*norm[0].pytorch, cast[HIDDEN_ELEMENTS]),
           (only_bytes(wide + e + 2 * ROW, HIDDEN_ELEMENTS),)),
        Op("autocast: LayerNorm", "backward",
           (norm_backward(norm_kernel("layer_norm_backward", dtype, SAVE_OUTPUT, True), dtype,
                          backward, 2 * e + wide + ROW + PARTIAL), reduction()),
           (cast[HIDDEN_ELEMENTS], *norm[1].pytorch),
           compiled_backward(e + 2 * wide + 2 * ROW)),
    ]
