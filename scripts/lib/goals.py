"""What speeds that were measured on a GPU are held to; each miss is a sentence."""

LARGE = "bert-large b64"  # the model of kernel_speed.py whose shapes fill any card
SHARE_OF_COPY = 0.9
RATIO_TO_PYTORCH = 1.0
DRAWS = {"dropout", "residual_layer_norm", "softmax dropout"}  # forward: Philox bounds it, too
RECORDING_RATIO = 1.02


def slow_kernels(found: dict) -> list:
    """Misses among the rows of kernel_speed.py."""
    wrong = []
    for row in found["rows"]:
        name = f"{row['op']} of {row['model']} in {row['dtype']}"
        if row["ratio"] > RATIO_TO_PYTORCH:
            wrong.append(f"{name} takes {row['ratio']:.2f} of PyTorch's time")
        if row["model"] != LARGE:
            continue
        for way in ("forward", "backward"):
            if way == "forward" and row["op"] in DRAWS:
                continue
            if (share := row[f"{way}_share"]) < SHARE_OF_COPY:
                wrong.append(f"{name}, {way}, reaches {share:.2f} of a copy's bandwidth")
    return wrong


def costly_recording(found: dict) -> list:
    """Misses of what recording adds to a step: ratios of recorded to unrecorded step times."""
    wrong = []
    if found["ratio"] > RECORDING_RATIO:
        wrong.append(f"recording costs {100 * (found['ratio'] - 1):.1f} % of a step")
    if found["ratio"] >= found["pytorch_profiler_ratio"]:
        wrong.append("recording costs no less than PyTorch's profiler")
    return wrong
