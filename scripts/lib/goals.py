"""What speeds that were measured on a GPU are held to; each miss is a sentence."""

LARGE = "bert-large b64"  # the model of kernel_speed.py whose shapes fill any card
SHARE_OF_COPY = 0.9
RATIO_TO_PYTORCH = 1.0
SHARE_OF_BOUND = 0.9  # of the lower of bytes and Philox, where forward draws random numbers
DRAWS = {"dropout", "residual_layer_norm", "softmax dropout"}
RECORDING_RATIO = 1.02

# 32-bit results per clock and multiprocessor, of integer multiplication and of bitwise logic each;
# they have a pipe of their own (CUDA C++ Programming Guide, Throughput of Native Arithmetic
# Instructions; Nsight Compute's fma and alu pipes). Other cards: not read there yet.
INTEGER_LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 64, (8, 9): 64, (9, 0): 64}
PHILOX_OPS = 20 / 8  # multiplications an element, and as many xors (kernels/dropout.cu)


def philox_bound(capability: tuple, multiprocessors: int, clock_hz: float) -> dict:
    """The elements a second that a card's integer throughput lets Philox draw, and of what."""
    if capability not in INTEGER_LANES:
        name = ".".join(map(str, capability))
        return {"missing": f"no integer throughput is listed for compute capability {name}"}
    if clock_hz <= 0:
        return {"missing": "the card does not tell its clock"}
    lanes = INTEGER_LANES[capability]
    return {
        "multiprocessors": multiprocessors,
        "clock_hz": clock_hz,
        "lanes": lanes,
        "elements_per_s": multiprocessors * clock_hz * lanes / PHILOX_OPS,
    }


def forward_bound(op: str, bytes_per_element: float, copy_bytes_per_s: float, philox: dict):
    """The lower of both bounds, bytes and Philox, as a share of the copy's bandwidth; None where
    Philox's is not known."""
    if op not in DRAWS:
        return 1.0
    if "missing" in philox:
        return None
    return min(1.0, philox["elements_per_s"] * bytes_per_element / copy_bytes_per_s)


def slow_kernels(found: dict) -> list:
    """Misses among the rows of kernel_speed.py."""
    wrong = []
    for row in found["rows"]:
        name = f"{row['op']} of {row['model']} in {row['dtype']}"
        if row["ratio"] > RATIO_TO_PYTORCH:
            wrong.append(f"{name} takes {row['ratio']:.2f} of PyTorch's time")
        if row["model"] != LARGE:
            continue
        if (share := row["backward_share"]) < SHARE_OF_COPY:
            wrong.append(f"{name}, backward, reaches {share:.2f} of a copy's bandwidth")
        wrong += slow_forward(row, name)
    return wrong


def slow_forward(row: dict, name: str) -> list:
    share, bound = row["forward_share"], row["forward_bound"]
    if bound is None:  # not judged: unjudged_kernels says so
        return []
    if row["op"] in DRAWS:
        if share < SHARE_OF_BOUND * bound:
            what = "Philox's integer operations" if bound < 1 else "bytes"
            return [f"{name}, forward, reaches {share / bound:.2f} of its bound, {what}"]
    elif share < SHARE_OF_COPY:
        return [f"{name}, forward, reaches {share:.2f} of a copy's bandwidth"]
    return []


def unjudged_kernels(found: dict) -> list:
    """What slow_kernels could not hold to a bound, and why."""
    rows = [row for row in found["rows"] if row["forward_bound"] is None]
    if not rows:
        return []
    ops = ", ".join(sorted({row["op"] for row in rows}))
    return [f"forward of {ops} is not judged: {found['philox']['missing']}"]


def costly_recording(found: dict) -> list:
    """Misses of what recording adds to a step: ratios of recorded to unrecorded step times.
    Raises NotJudged when there are too few pairs of them."""
    if found["turns"] < RECORDING_PAIRS:
        raise NotJudged(f"not judged: {found['turns']} pairs in the time, of {RECORDING_PAIRS}")
    wrong = []
    if found["ratio"] > RECORDING_RATIO:
        wrong.append(f"recording costs {100 * (found['ratio'] - 1):.1f} % of a step")
    if found["ratio"] >= found["pytorch_profiler_ratio"]:
        wrong.append("recording costs no less than PyTorch's profiler")
    return wrong


# ---- what a card is held to beside speeds --------------------------------------------------------

RECORDING_PAIRS = 10
LOSS_SHARE = 1e-3  # between recipes that compute the same function
PREDICTED_PEAK = 0.01
PREDICTED_BATCH = 1
PREDICTED_TIME = 0.10  # of a calibrated card


class NotJudged(Exception):
    """Too little was measured to say whether a goal is met."""


def differing_losses(losses: dict) -> list:
    """Losses of each recipe's steps, by recipe: all must be the first's, which dropout masks drawn
    from the same numbers make possible. Sums come in another order, and the in-place GELU is
    fitted, to far less than LOSS_SHARE of a loss."""
    wrong = []
    (first, expected), *others = losses.items()
    for recipe, found in others:
        if len(found) != len(expected):
            wrong.append(f"{recipe} has {len(found)} losses and {first} {len(expected)}")
            continue
        offs = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, expected, strict=True)]
        if not all(off <= LOSS_SHARE for off in offs):  # a loss that is no number, too
            texts = ", ".join(f"{100 * off:.3g} %" for off in offs)
            wrong.append(f"the losses of {recipe} and {first} differ, by step: {texts}")
    return wrong


def wrong_predictions(rows: list) -> list:
    """Misses among the rows of gpu_predictions.compare."""
    wrong = []
    for row in rows:
        if row["met"] is False:
            batch = isinstance(row["goal"], int)
            off = f"{row['off']:+d}" if batch else f"{100 * row['off']:+.1f} %"
            wrong.append(f"{row['figure']} of {row['step']} is {off} off its prediction")
    return wrong
