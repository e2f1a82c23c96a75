"""The goals for figures that were measured on a GPU. Each missed goal is a sentence."""

LARGE = "bert-large b64"  # the model of kernel_speed.py whose shapes are large enough for any GPU
SHARE_OF_COPY = 0.9
RATIO_TO_PYTORCH = 1.0
SHARE_OF_BOUND = 0.9  # of the lower bound (bytes or Philox), if forward draws random numbers
DRAWS = {"dropout", "residual_layer_norm", "softmax dropout"}
RECORDING_RATIO = 1.02

# 32-bit results per clock and multiprocessor. Integer multiplication and bitwise logic each reach
# this rate, because each has its own pipe (CUDA C++ Programming Guide, Throughput of Native
# Arithmetic Instructions; Nsight Compute's fma and alu pipes). Other GPUs are not listed yet.
INTEGER_LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 64, (8, 9): 64, (9, 0): 64}
PHILOX_OPS = 20 / 8  # multiplications per element, and as many xors (kernels/dropout.cu)


def philox_bound(capability: tuple, multiprocessors: int, clock_hz: float) -> dict:
    """How many elements per second Philox can draw at a GPU's integer throughput, with the inputs
    of that figure. Or {"missing": sentence} if it is not known."""
    if capability not in INTEGER_LANES:
        name = ".".join(map(str, capability))
        return {"missing": f"no integer throughput is listed for compute capability {name}"}
    if clock_hz <= 0:
        return {"missing": "the GPU does not report its clock rate"}
    lanes = INTEGER_LANES[capability]
    return {
        "multiprocessors": multiprocessors,
        "clock_hz": clock_hz,
        "lanes": lanes,
        "elements_per_s": multiprocessors * clock_hz * lanes / PHILOX_OPS,
    }


def forward_bound(op: str, bytes_per_element: float, copy_bytes_per_s: float, philox: dict):
    """The lower of the two bounds, bytes and Philox, as a share of the copy's bandwidth. None if
    the Philox bound is not known."""
    if op not in DRAWS:
        return 1.0
    if "missing" in philox:
        return None
    return min(1.0, philox["elements_per_s"] * bytes_per_element / copy_bytes_per_s)


def slow_kernels(found: dict) -> list:
    """Sentences about rows of kernel_speed.py that miss a goal."""
    wrong = []
    for row in found["rows"]:
        name = f"{row['op']} of {row['model']} in {row['dtype']}"
        if row["ratio"] > RATIO_TO_PYTORCH:
            wrong.append(f"{name} takes {row['ratio']:.2f} times as long as PyTorch")
        if row["model"] != LARGE:
            continue
        if (share := row["backward_share"]) < SHARE_OF_COPY:
            wrong.append(f"{name}: backward reaches {share:.2f} of a copy's bandwidth")
        wrong += slow_forward(row, name)
    return wrong


def slow_forward(row: dict, name: str) -> list:
    share, bound = row["forward_share"], row["forward_bound"]
    if bound is None:  # not judged; unjudged_kernels reports it
        return []
    if row["op"] in DRAWS:
        if share < SHARE_OF_BOUND * bound:
            what = "Philox's integer operations" if bound < 1 else "bytes"
            return [f"{name}: forward reaches {share / bound:.2f} of its bound, {what}"]
    elif share < SHARE_OF_COPY:
        return [f"{name}: forward reaches {share:.2f} of a copy's bandwidth"]
    return []


def unjudged_kernels(found: dict) -> list:
    """Which forward passes slow_kernels could not judge, and why."""
    rows = [row for row in found["rows"] if row["forward_bound"] is None]
    if not rows:
        return []
    ops = ", ".join(sorted({row["op"] for row in rows}))
    return [f"forward of {ops} is not judged: {found['philox']['missing']}"]


def costly_recording(found: dict) -> list:
    """Sentences about missed goals for the cost of recording, from ratios of recorded to unrecorded
    step times. Raises NotJudged if there are too few pairs."""
    if found["turns"] < RECORDING_PAIRS:
        raise NotJudged(f"not judged: the time was enough for {found['turns']} pairs of "
                        f"{RECORDING_PAIRS}")
    wrong = []
    if found["ratio"] > RECORDING_RATIO:
        wrong.append(f"recording costs {100 * (found['ratio'] - 1):.1f} % of a step")
    if found["ratio"] >= found["pytorch_profiler_ratio"]:
        wrong.append("recording costs as much as PyTorch's profiler or more")
    return wrong


# ---- goals other than speeds ---------------------------------------------------------------------

RECORDING_PAIRS = 10
LOSS_SHARE = 1e-3  # between recipes that compute the same function
PREDICTED_PEAK = 0.01
PREDICTED_BATCH = 1
PREDICTED_TIME = 0.10  # only for a calibrated GPU


class NotJudged(Exception):
    """Too little was measured to say whether a goal is met."""


def differing_losses(losses: dict) -> list:
    """Sentences about recipes whose losses differ from the first recipe's. All recipes draw the
    same dropout masks, so their losses must agree. The order of sums and the fitted in-place GELU
    change a loss by far less than LOSS_SHARE."""
    wrong = []
    (first, expected), *others = losses.items()
    for recipe, found in others:
        if len(found) != len(expected):
            wrong.append(f"{recipe} has {len(found)} losses, but {first} has {len(expected)}")
            continue
        offs = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, expected, strict=True)]
        if not all(off <= LOSS_SHARE for off in offs):  # also true for NaN
            texts = ", ".join(f"{100 * off:.3g} %" for off in offs)
            wrong.append(f"the losses of {recipe} and {first} differ; by step: {texts}")
    return wrong


def wrong_predictions(rows: list) -> list:
    """Sentences about rows of gpu_predictions.compare that miss their goal."""
    wrong = []
    for row in rows:
        if row["met"] is False:
            batch = isinstance(row["goal"], int)
            off = f"{row['off']:+d}" if batch else f"{100 * row['off']:+.1f} %"
            wrong.append(f"{row['figure']} of {row['step']} differs from the plan by {off}")
    return wrong
