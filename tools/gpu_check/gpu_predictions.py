"""Compares predicted with measured figures. The packing machine predicts gpu-check's steps for
every GPU that may run them; the machine with the GPU then compares its measurements."""

import collections
import json
import pathlib
import re
import subprocess
import tempfile

import goals
import gpu_workloads
import trace_checks
from worker_link import last_line

FILE = "predictions.json"
# torch 2.11 with CUDA 13.0 has machine code for this compute capability and newer ones. Jetsons are
# left out because their CPU needs another build.
LEAST_CAPABILITY = 7.5
PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes")
FIGURES = (*PEAKS, "step_time_ns")
# Steps for which the program's reading of a workload is compared with the worker's.
CHECKED_STEPS = ("original-fp32-S512-B8-L2", "tempo-bf16-S128-B8-L2", "flash-bf16-S128-B8-L2")


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
        said = last_line(done.stderr, f"it ended with {done.returncode}")
        raise SystemExit(f"gpu-check: predicting failed: {said}")
    return done.stdout


def planned_rows(program, gpus: dict, described: dict, *options: str) -> list:
    """The planner's rows for all GPUs. A row whose step does not fit has a status other than ok."""
    command = [str(program), "plan", *gpu_workloads.arguments(described)]
    report = output_of([*command, "--gpu", ",".join(gpus), *options, "--json"])
    return json.loads(report)["rows"]


def predicted_capture(program, gpu: str, described: dict, folder: str) -> dict:
    """The summary of a predicted trace, read in the same way as that of a measured one. Exits if
    the program and the worker's request describe different steps."""
    path = pathlib.Path(folder) / "step.tscope"
    path.unlink(missing_ok=True)
    command = [str(program), "capture", *gpu_workloads.arguments(described)]
    batch = str(described["batch_size"])
    output_of([*command, "--batch", batch, "--device", f"predict:{gpu}", "-o", str(path)])
    found = trace_checks.summary(path)
    # The program writes every switch of the recipe, not the name of the preset.
    expected = gpu_workloads.workload(described) | {"recipe": found["workload"].get("recipe")}
    if found["workload"] != expected:
        raise SystemExit(f"gpu-check: temposcope reads {described} as another workload")
    return found


def check_steps(program, predictions: dict):
    """Exits if a plan and a predicted trace describe different steps."""
    roomy = max(predictions, key=lambda gpu: predictions[gpu]["memory_gib"])
    for name in CHECKED_STEPS:
        described, planned = gpu_workloads.STEPS[name], predictions[roomy]["steps"][name]
        with tempfile.TemporaryDirectory() as folder:
            found = predicted_capture(program, roomy, described, folder)
        for figure in PEAKS:
            if found[figure] != planned[figure]:
                raise SystemExit(f"gpu-check: {figure} of {name} differs from the planner's")


def predict_steps(program, predictions: dict):
    """Adds the steps that fit to each GPU's prediction."""
    for row in predictions.values():
        row["steps"] = {}
    for name, described in gpu_workloads.STEPS.items():
        batch = str(described["batch_size"])
        for row in planned_rows(program, predictions, described, "--batch", batch):
            if row["status"] == "ok":
                predictions[row["gpu"]]["steps"][name] = {figure: row[figure] for figure in FIGURES}
                predictions[row["gpu"]]["calibrated"] = row["times_calibrated"] is True


def predict_batches(program, predictions: dict):
    """Adds the largest batches under limits on the allocator. The planner's budget includes the
    context that it assumes, and GPUs have contexts of several sizes."""
    by_context = collections.defaultdict(dict)
    for row in planned_rows(program, predictions, gpu_workloads.SWEEP, "--batch", "1"):
        gpu = predictions[row["gpu"]]
        gpu["max_batch_sizes"] = {}
        by_context[row["terms"]["context_bytes"]][row["gpu"]] = gpu
    for context, gpus in by_context.items():
        for name, limit in gpu_workloads.SWEEP_LIMITS.items():
            budget = f"{(limit + context) // gpu_workloads.MIB}MiB"
            for row in planned_rows(program, gpus, gpu_workloads.SWEEP, "--budget", budget):
                gpus[row["gpu"]]["max_batch_sizes"][name] = row["max_batch_size"]


def predict(program, catalogue: dict) -> dict:
    """Predictions of the built program. Exits with a sentence if it fails."""
    predictions = supported_gpus(catalogue)
    predict_steps(program, predictions)
    predict_batches(program, predictions)
    check_steps(program, predictions)
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


def row_of(step: str, figure: str, predicted: float, measured: float, goal, trusted) -> dict:
    """`goal` is the allowed difference: a share, an int for whole batches, or None for no goal. A
    measurement that is not trusted meets and misses none."""
    off = measured - predicted if isinstance(goal, int) else measured / predicted - 1
    judged = goal is not None and trusted
    return {
        "step": step,
        "figure": figure,
        "predicted": predicted,
        "measured": measured,
        "off": off,
        "goal": goal,
        "trusted": trusted,
        "met": abs(off) <= goal if judged else None,
    }


def compare(prediction: dict, measured: dict, same_gpu: bool) -> list:
    """A row for each figure that was both predicted and measured. `measured` is {"steps": {name:
    {figure: value, "trusted": bool}}, "limits": {name: {"max_batch_size": n, "trusted": bool}}};
    each may be missing. Times have a goal only if the prediction is for this very GPU and rests on
    a calibration of it."""
    calibrated = same_gpu and prediction["calibrated"]
    shares = {figure: goals.PREDICTED_PEAK for figure in PEAKS} | {
        "step_time_ns": goals.PREDICTED_TIME if calibrated else None,
    }
    rows = []
    for step, found in measured.get("steps", {}).items():
        predicted = prediction["steps"].get(step, {})
        for figure in (figure for figure in shares if figure in predicted and figure in found):
            values = predicted[figure], found[figure], shares[figure], found["trusted"]
            rows.append(row_of(step, figure, *values))
    for limit, found in measured.get("limits", {}).items():
        predicted = prediction["max_batch_sizes"].get(limit)  # None if no batch fits
        if predicted is not None:
            values = predicted, found["max_batch_size"], goals.PREDICTED_BATCH, found["trusted"]
            rows.append(row_of(limit, "max_batch_size", *values))
    return rows


def value_text(figure: str, value: float) -> str:
    if figure.endswith("_bytes"):
        return f"{value / gpu_workloads.MIB:.1f} MiB"
    return f"{value / 1e6:.2f} ms" if figure.endswith("_ns") else str(value)


def table(rows: list) -> str:
    titles = f"{'step':<27}{'figure':<22}{'predicted':>14}{'measured':>14}{'off':>9}  goal"
    lines = [titles]
    for row in rows:
        batch = isinstance(row["goal"], int)
        off = f"{row['off']:+d}" if batch else f"{100 * row['off']:+.2f} %"
        verdict = {True: "met", False: "missed", None: "not judged"}[row["met"]]
        verdict += "" if row["trusted"] else ", not trusted"
        lines.append(
            f"{row['step']:<27}{row['figure']:<22}"
            f"{value_text(row['figure'], row['predicted']):>14}"
            f"{value_text(row['figure'], row['measured']):>14}{off:>9}  {verdict}"
        )
    return "\n".join(lines)
