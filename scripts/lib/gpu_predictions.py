"""Predicted beside measured: what the packing machine predicts of gpu-check's steps for every card
that it may meet, and how far the card's own figures are from it."""

import json
import pathlib
import re
import statistics
import subprocess
import tempfile

import goals
import gpu_workloads
import trace_checks

FILE = "predictions.json"
# torch 2.11 with CUDA 13.0 has machine code for these and newer; Jetsons have another processor.
LEAST_CAPABILITY = 7.5
OUT_OF_MEMORY = 3  # exit code


# ---- on the machine that packs -------------------------------------------------------------------


def cards(catalogue: dict) -> dict:
    """Of assets/gpus.json: id -> name, capability and memory of the cards that may be met."""
    return {
        gpu["id"]: {
            "name": gpu["name"],
            "compute_capability": gpu["compute_capability"],
            "memory_gib": gpu["memory_gib"]["value"],
        }
        for gpu in catalogue["gpus"]
        if float(gpu.get("compute_capability") or 0) >= LEAST_CAPABILITY
        and not gpu["id"].startswith("jetson")
    }


def can_multiply(capability: str, precision: str) -> bool:
    return precision != "bf16" or float(capability) >= 8


def output_of(command: list) -> str:
    """What it prints; empty when it says that the step does not fit the card."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == OUT_OF_MEMORY:
        return ""
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise SystemExit(f"gpu-check: no prediction: {lines[-1]}")
    return done.stdout


def predicted_step(program, card: str, described: dict, folder: str) -> dict:
    """Empty when the step does not fit."""
    path = pathlib.Path(folder) / "step.tscope"
    path.unlink(missing_ok=True)
    command = [str(program), "capture", *gpu_workloads.arguments(described)]
    device = ["--device", f"predict:{card}"]
    if not output_of([*command, "--batch", "8", *device, "--json", "-o", str(path)]):
        return {}
    found = trace_checks.summary(path)
    # The worker on the card is given JSON: the two must describe one step. The program spells the
    # recipe's switches out.
    expected = gpu_workloads.workload(described) | {"recipe": found["workload"].get("recipe")}
    if found["workload"] != expected:
        raise SystemExit(f"gpu-check: {described} is another workload for temposcope")
    return {
        "peak_allocated_bytes": found["peak_allocated_bytes"],
        "peak_reserved_bytes": found["peak_reserved_bytes"],
        "step_time_ns": statistics.median(found["step_times_ns"]),
    }


def predicted_batch(program, card: str) -> dict:
    budget = f"{gpu_workloads.SWEEP_LIMIT_BYTES // gpu_workloads.MIB}MiB"
    command = [str(program), "plan", *gpu_workloads.arguments(gpu_workloads.SWEEP)]
    report = json.loads(output_of([*command, "--gpu", card, "--budget", budget, "--json"]))
    row = report["rows"][0]
    return {
        "max_batch_size": row["max_batch_size"],
        # The planner's note on times that rest on no measurement of the card.
        "calibrated": not any("sweep --calibrate" in note for note in row["notes"]),
    }


def predict(program, catalogue: dict) -> dict:
    """Asks the built program; minutes for all cards. Exits with a sentence when it refuses."""
    described = gpu_workloads.CAPTURES | {"overhead": gpu_workloads.OVERHEAD}
    predictions = cards(catalogue)
    with tempfile.TemporaryDirectory() as folder:
        for card, row in predictions.items():
            row["steps"] = {
                name: predicted_step(program, card, step, folder)
                for name, step in described.items()
                if can_multiply(row["compute_capability"], step["precision"])
            }
            row |= predicted_batch(program, card)
    return predictions


# ---- on the machine with the card ----------------------------------------------------------------


def model_words(name: str) -> list:
    """A card's name without words that the catalogue and the driver do not agree on, as
    app/commands/user_calibration.cpp has it."""
    kept = []
    for word in re.findall(r"[a-z0-9]+", name.lower()):
        if word == "gb" and kept:
            kept.pop()  # "80 GB"
        elif not re.fullmatch(r"nvidia|tesla|sxm.*|hbm.*|.*gb", word):
            kept.append(word)
    return kept


def find_card(predictions: dict, name: str, compute_capability: str, memory_gib: float) -> tuple:
    """(id, whether it is that very card): by name; else the card of its capability whose memory is
    nearest, whose step has the same memory but not the same time. ("", False): none has it."""
    def nearest(found: list) -> str:
        return min(found, key=lambda card: abs(predictions[card]["memory_gib"] - memory_gib))

    alike = [
        card for card, row in predictions.items()
        if row["compute_capability"] == compute_capability
    ]
    same = [
        card for card in alike if model_words(predictions[card]["name"]) == model_words(name)
    ]
    if same:
        return nearest(same), True
    return (nearest(alike), False) if alike else ("", False)


def row_of(step: str, figure: str, predicted: float, measured: float, goal) -> dict:
    """`goal` is the most that the two may differ: a share, whole batches as an int, or none."""
    off = measured - predicted if isinstance(goal, int) else measured / predicted - 1
    return {
        "step": step,
        "figure": figure,
        "predicted": predicted,
        "measured": measured,
        "off": off,
        "goal": goal,
        "met": None if goal is None else abs(off) <= goal,
    }


def compare(prediction: dict, measured: dict, same_card: bool) -> list:
    """Rows of all figures that both have. `measured` is {"steps": {name: {figure: value}},
    "max_batch_size": n}. Times are held to a goal only where the prediction is of this very card
    and rests on a calibration of it."""
    calibrated = same_card and prediction["calibrated"]
    shares = {
        "peak_allocated_bytes": goals.PREDICTED_PEAK,
        "peak_reserved_bytes": goals.PREDICTED_PEAK,
        "step_time_ns": goals.PREDICTED_TIME if calibrated else None,
    }
    rows = [
        row_of(step, figure, predicted[figure], measured["steps"][step][figure], goal)
        for step, predicted in prediction["steps"].items()
        for figure, goal in shares.items()
        if figure in predicted and figure in measured["steps"].get(step, {})
    ]
    if "max_batch_size" in measured:
        predicted = prediction["max_batch_size"]
        batch = ("memory limit", "max_batch_size", predicted, measured["max_batch_size"])
        rows.append(row_of(*batch, goals.PREDICTED_BATCH))
    return rows


def value_text(figure: str, value: float) -> str:
    if figure.endswith("_bytes"):
        return f"{value / gpu_workloads.MIB:.1f} MiB"
    return f"{value / 1e6:.2f} ms" if figure.endswith("_ns") else str(value)


def table(rows: list) -> str:
    lines = [f"{'step':<27}{'figure':<22}{'predicted':>14}{'measured':>14}{'off':>9}  goal"]
    for row in rows:
        batch = isinstance(row["goal"], int)
        off = f"{row['off']:+d}" if batch else f"{100 * row['off']:+.2f} %"
        verdict = {True: "met", False: "missed", None: "not judged"}[row["met"]]
        lines.append(
            f"{row['step']:<27}{row['figure']:<22}"
            f"{value_text(row['figure'], row['predicted']):>14}"
            f"{value_text(row['figure'], row['measured']):>14}{off:>9}  {verdict}"
        )
    return "\n".join(lines)
