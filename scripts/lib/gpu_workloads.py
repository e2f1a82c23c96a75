"""The workloads that gpu-check measures. The packing machine predicts the same ones."""

import worker_link

MIB = 1 << 20

# Check -> workload. workload() makes the worker's JSON of it, arguments() the command's options.
CAPTURES = {
    "capture original": {"layers": 3, "recipe": "original", "precision": "fp32"},
    "capture tempo": {"layers": 3, "recipe": "tempo", "precision": "fp32"},
    "capture tempo-packed bf16": {"layers": 3, "recipe": "tempo-packed", "precision": "bf16"},
    "capture checkpoint": {"layers": 3, "recipe": "checkpoint", "precision": "fp32"},
}
# The steps that are timed with and without a recorder.
OVERHEAD = {"layers": 24, "recipe": "original", "precision": "fp32"}
# The largest batch under a memory limit.
SWEEP = {"layers": 2, "recipe": "original", "precision": "fp32"}
SWEEP_LIMIT_BYTES = 3072 * MIB

SMALL = {"hidden": 128, "batch_size": 2, "seq_len": 64}  # where there is no GPU


def workload(described: dict, **changes) -> dict:
    """The workload as the worker's JSON: a BERT-large with `layers` layers."""
    fields = described | changes
    return worker_link.bert(fields.pop("layers"), fields.pop("hidden", 1024), **fields)


def arguments(described: dict) -> list:
    """The workload as options of a temposcope command."""
    return [
        "--model", "bert-large", "--layers", str(described["layers"]), "--recipe",
        described["recipe"], "--precision", described["precision"], "--seq", "512",
    ]
