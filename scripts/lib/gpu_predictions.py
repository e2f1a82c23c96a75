"""Compares predicted with measured figures. The packing machine predicts gpu-check's steps for
every GPU that may run them; the machine with the GPU then compares its measurements."""

import json
import pathlib
import re
import subprocess
import tempfile

import goals
import gpu_workloads
import trace_checks

FILE = "predictions.json"
# torch 2.11 with CUDA 13.0 has machine code for this compute capability and newer ones. Jetsons are
# left out because their CPU needs another build.
LEAST_CAPABILITY = 7.5
FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "step_time_ns")


# ---- on the machine that packs -------------------------------------------------------------------


def supported_gpus(catalogue: dict) -> dict:
    """id -> name, compute capability and memory of the catalogue's GPUs that torch supports."""
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


def output_of(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise SystemExit(f"gpu-check: predicting failed: {lines[-1]}")
    return done.stdout


def planned_rows(program, gpus: dict, described: dict, *options: str) -> list:
    """The planner's rows for all GPUs. A row whose step does not fit has a status other than ok."""
    command = [str(program), "plan", *gpu_workloads.arguments(described)]
    report = output_of([*command, "--gpu", ",".join(gpus), *options, "--json"])
    return json.loads(report)["rows"]


# A plan is traced on the Meta device, which lacks the scratch of reductions. A predicted capture
# runs on a virtual GPU.
SAME_STEP = 0.1


def check_step(program, gpu: str, described: dict, planned: dict, folder: str):
    """Exits if the planner, a predicted trace and the worker's request describe different steps.
    The figures of the predicted trace are read in the same way as those of a measured trace."""
    path = pathlib.Path(folder) / "step.tscope"
    path.unlink(missing_ok=True)
    command = [str(program), "capture", *gpu_workloads.arguments(described)]
    output_of([*command, "--batch", "8", "--device", f"predict:{gpu}", "-o", str(path)])
    found = trace_checks.summary(path)
    # The program writes every switch of the recipe, not the name of the preset.
    expected = gpu_workloads.workload(described) | {"recipe": found["workload"].get("recipe")}
    if found["workload"] != expected:
        raise SystemExit(f"gpu-check: temposcope reads {described} as another workload")
    for figure in ("peak_allocated_bytes", "peak_reserved_bytes"):
        if abs(found[figure] - planned[figure]) > SAME_STEP * planned[figure]:
            raise SystemExit(f"gpu-check: {figure} of {described} differs from the planner's")


def predict(program, catalogue: dict) -> dict:
    """Predictions of the built program. Exits with a sentence if it fails."""
    predictions = supported_gpus(catalogue)
    for row in predictions.values():
        row["steps"] = {}  # the steps that fit
    roomy = max(predictions, key=lambda gpu: predictions[gpu]["memory_gib"])
    for name, described in (gpu_workloads.CAPTURES | {"overhead": gpu_workloads.OVERHEAD}).items():
        for row in planned_rows(program, predictions, described, "--batch", "8"):
            if row["status"] == "ok":
                predictions[row["gpu"]]["steps"][name] = {figure: row[figure] for figure in FIGURES}
        with tempfile.TemporaryDirectory() as folder:
            check_step(program, roomy, described, predictions[roomy]["steps"][name], folder)
    budget = f"{gpu_workloads.SWEEP_LIMIT_BYTES // gpu_workloads.MIB}MiB"
    for row in planned_rows(program, predictions, gpu_workloads.SWEEP, "--budget", budget):
        predictions[row["gpu"]] |= {
            "max_batch_size": row["max_batch_size"],
            "calibrated": row["times_calibrated"] is True,
        }
    return predictions


# ---- on the machine with the GPU -----------------------------------------------------------------


def model_words(name: str) -> list:
    """A GPU's name without the words in which the catalogue and the driver differ. The rule is that
    of app/user/user_calibration.cpp."""
    words = []
    for word in re.findall(r"[a-z0-9]+", name.lower()):
        if word == "gb" and words:
            words.pop()  # "80 GB"
        elif not re.fullmatch(r"nvidia|tesla|sxm.*|hbm.*|.*gb", word):
            words.append(word)
    return words


def find_gpu(predictions: dict, name: str, compute_capability: str, memory_gib: float) -> tuple:
    """(id, True) of the GPU with this name. Otherwise (id, False) of the GPU with the same compute
    capability and the nearest memory: its step takes the same memory but not the same time. If no
    GPU has this capability, ("", False)."""
    def nearest(found: list) -> str:
        return min(found, key=lambda gpu: abs(predictions[gpu]["memory_gib"] - memory_gib))

    alike = [
        gpu for gpu, row in predictions.items()
        if row["compute_capability"] == compute_capability
    ]
    same = [
        gpu for gpu in alike if model_words(predictions[gpu]["name"]) == model_words(name)
    ]
    if same:
        return nearest(same), True
    return (nearest(alike), False) if alike else ("", False)


def row_of(step: str, figure: str, predicted: float, measured: float, goal) -> dict:
    """`goal` is the allowed difference: a share, an int for whole batches, or None for no goal."""
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


def compare(prediction: dict, measured: dict, same_gpu: bool) -> list:
    """A row for each figure that was both predicted and measured. `measured` is {"steps": {name:
    {figure: value}}, "max_batch_size": n}. Times have a goal only if the prediction is for this
    very GPU and rests on a calibration of it."""
    calibrated = same_gpu and prediction["calibrated"]
    shares = {
        "peak_allocated_bytes": goals.PREDICTED_PEAK,
        "peak_reserved_bytes": goals.PREDICTED_PEAK,
        "step_time_ns": goals.PREDICTED_TIME if calibrated else None,
    }
    rows = [
        row_of(step, figure, predicted[figure], measured["steps"][step][figure], goal)
        for step, predicted in prediction["steps"].items()
        for figure, goal in shares.items()
        if figure in measured["steps"].get(step, {})
    ]
    predicted = prediction["max_batch_size"]  # None if no batch fits
    if predicted is not None and "max_batch_size" in measured:
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
