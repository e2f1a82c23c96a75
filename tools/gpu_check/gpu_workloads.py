"""The workloads that gpu-check measures. The packing machine predicts some of them."""

import worker_link

MIB = 1 << 20
FAMILIES = ("bert", "gpt")
PRECISIONS = ("fp32", "tf32", "bf16", "amp-bf16", "fp16")
# Attention kernel -> recipe.
ATTENTIONS = {
    "eager": "original",
    "recompute": "tempo-dropout",
    "flash": "flash",
    "efficient": "attention=efficient",
    "cudnn": "attention=cudnn",
}
# Recipes in eager attention, besides original.
RECIPES = ("tempo", "tempo-packed", "tempo-philox", "tempo-fused", "checkpoint", "original-stock",
           "deepspeed-all")
# Recipes that compute the same function with the same dropout masks.
SAME_LOSSES = ("original", "tempo", "checkpoint")


def workload(described: dict, **changes) -> dict:
    """The workload as the worker's JSON: a BERT-large or a GPT-2 with `layers` layers."""
    fields = described | changes
    family, layers = fields.pop("family", "bert"), fields.pop("layers")
    if family == "gpt":
        return worker_link.gpt(layers, fields.pop("hidden", 768), **fields)
    return worker_link.bert(layers, fields.pop("hidden", 1024), **fields)


def arguments(described: dict) -> list:
    """A workload of BERT-large as options of a temposcope command."""
    return [
        "--model", "bert-large", "--layers", str(described["layers"]), "--recipe",
        described["recipe"], "--precision", described["precision"], "--seq",
        str(described["seq_len"]),
    ]


def runs_on(described: dict, compute_capability: str) -> bool:
    """Whether torch has kernels for this workload on such a GPU."""
    precision, recipe = described["precision"], described["recipe"]
    half_attention = recipe in ("flash", "attention=cudnn")
    if half_attention and precision in ("fp32", "tf32"):
        return False
    needs_ampere = half_attention or precision in ("tf32", "bf16", "amp-bf16")
    return not needs_ampere or float(compute_capability or 0) >= 8.0


# ---- request streams -----------------------------------------------------------------------------

# Sequence length, batch: B·S just below, at and above 3072, where the gradient of an embedding
# takes another kernel, and around BERT's vocabulary of 30522 words.
BATCHES = ((128, 23), (128, 24), (128, 25), (512, 59), (512, 60))


def stream(family: str, recipe: str, precision: str, **changes) -> tuple:
    """Name and workload of a step with embeddings and head."""
    described = {
        "family": family, "layers": 1, "recipe": recipe, "precision": precision, "batch_size": 2,
        "seq_len": 512, "head": "lm" if family == "gpt" else "mlm",
    } | changes
    words = [family, recipe.replace("=", "-"), precision,
             *(f"{key.split('_')[0]}{value}" for key, value in changes.items())]
    return "-".join(words), described


def request_streams() -> dict:
    """Name -> workload of one or two layers, each with a request stream of its own."""
    rows = [stream("bert", recipe, "fp32") for recipe in SAME_LOSSES]  # for the check of losses
    rows += [
        stream(family, recipe, precision)
        for recipe in ATTENTIONS.values()
        for precision in PRECISIONS
        for family in FAMILIES
    ]
    rows += [stream("bert", recipe, p) for recipe in RECIPES for p in ("fp32", "bf16")]
    rows += [stream("gpt", recipe, p) for recipe in ("tempo", "checkpoint")
             for p in ("fp32", "bf16")]
    rows += [stream(family, recipe, p, layers=2) for recipe in ("original", "tempo")
             for family in FAMILIES for p in ("fp32", "bf16")]
    rows += [stream("bert", "original", "bf16", seq_len=seq, batch_size=batch)
             for seq, batch in BATCHES]
    return dict(rows)


# ---- step times ----------------------------------------------------------------------------------


def bert_large(recipe: str, precision: str, seq_len: int, batch_size: int, layers=2) -> tuple:
    described = {"layers": layers, "recipe": recipe, "precision": precision, "seq_len": seq_len,
                 "batch_size": batch_size}
    return f"{recipe}-{precision}-S{seq_len}-B{batch_size}-L{layers}", described


# Name -> workload. The most telling ones come first, because the time may not be enough for all.
STEPS = dict(
    [
        bert_large(recipe, precision, seq, batch)
        for batch in (8, 32, 1)
        for seq in (512, 128)
        for precision in ("fp32", "bf16")
        for recipe in ("original", "tempo", "flash")
        if (recipe, precision) != ("flash", "fp32")
    ]
)
# The step that is timed with and without a recorder.
OVERHEAD = bert_large("original", "fp32", 512, 8, layers=24)[1]

# ---- limits --------------------------------------------------------------------------------------

# The largest batch under a limit on the allocator's memory, which excludes context and CUPTI.
SWEEP = {"layers": 2, "recipe": "original", "precision": "fp32", "seq_len": 512}
SWEEP_LIMITS = {"3 GiB": 3072 * MIB, "6 GiB": 6144 * MIB}
