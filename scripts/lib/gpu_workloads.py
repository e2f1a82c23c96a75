"""What gpu-check trains, so that predictions made elsewhere are of the same steps."""

import worker_link

MIB = 1 << 20

# Check -> what `temposcope capture` is told, with the JSON of the same workload for the worker.
CAPTURES = {
    "capture original": {"layers": 3, "recipe": "original", "precision": "fp32"},
    "capture tempo": {"layers": 3, "recipe": "tempo", "precision": "fp32"},
    "capture tempo-packed bf16": {"layers": 3, "recipe": "tempo-packed", "precision": "bf16"},
    "capture checkpoint": {"layers": 3, "recipe": "checkpoint", "precision": "fp32"},
}
# Steps whose time is taken without a recorder.
OVERHEAD = {"layers": 24, "recipe": "original", "precision": "fp32"}
# The largest batch on an emulated card.
SWEEP = {"layers": 2, "recipe": "original", "precision": "fp32"}
SWEEP_LIMIT_BYTES = 3072 * MIB

SMALL = {"hidden": 128, "batch_size": 2, "seq_len": 64}  # where there is no GPU


def workload(described: dict, **changes) -> dict:
    """A BERT-large with that many layers, as the worker takes it."""
    fields = described | changes
    return worker_link.bert(fields.pop("layers"), fields.pop("hidden", 1024), **fields)


def arguments(described: dict) -> list:
    """The same for the program's commands."""
    return [
        "--model", "bert-large", "--layers", str(described["layers"]), "--recipe",
        described["recipe"], "--precision", described["precision"], "--seq", "512",
    ]
