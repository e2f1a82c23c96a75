"""Checks of gpu-check: how fast the GPU is, and how long steps take."""

import json
import statistics

import goals
import gpu_predictions
import gpu_workloads
import trace_checks
import worker_link
from gpu_run import BUNDLE, Failed, Run, Skipped, refusal

UNTRACED_STEPS = 5


def calibration(run: Run):
    """What `temposcope sweep --calibrate` measures."""
    if run.few:
        raise Skipped("left out of a short trial, because it takes half a minute")
    run.detail |= run.ask(request="calibrate", device="cuda")["summary"]
    run.judge_measured([])


def speed_rows(run: Run, part: str) -> list:
    """The rows of torch_speed.py, which also come back as a file."""
    options = ["--few", "--rounds", "1"] if run.few else []
    rows = json.loads(run.python("torch_speed.py", part, *options))
    (run.folder / f"{part}.json").write_text(json.dumps(rows, indent=0) + "\n")
    return rows


def launches(run: Run):
    """The time of a launch on the host, on the device and in a graph."""
    run.detail |= {row["place"]: row["seconds"] for row in speed_rows(run, "launches")}
    run.judge_measured([])


def products(run: Run):
    """Matrix products at the models' shapes."""
    rows = speed_rows(run, "products")
    run.detail["products"] = len(rows)
    for row in rows:  # the fastest of each type
        flop_per_s = row["flop"] / max(row["seconds"], 1e-12)
        run.detail[row["type"]] = max(flop_per_s, run.detail.get(row["type"], 0.0))
    run.judge_measured([])


def attention(run: Run):
    """The kernels of scaled_dot_product_attention."""
    rows = speed_rows(run, "attention")
    refused = [row for row in rows if "problem" in row]
    run.detail |= {"timed": len(rows) - len(refused), "refused": refused}
    if len(refused) == len(rows):
        raise Failed("no attention kernel ran")
    run.judge_measured([])


def step_times(run: Run):
    """Steps of BERT-large: untraced times, and traces with their kernels."""
    run.detail["steps"] = {}
    for name, described in run.some(gpu_workloads.STEPS.items(), few=5):
        if not gpu_workloads.runs_on(described, run.card["compute_capability"]):
            continue
        try:
            row = timed_step(run, name, gpu_workloads.workload(described))
        except (Failed, worker_link.WorkerError) as error:
            row = refusal(error)
        row["trusted"] = not row["problems"] and not run.virtual
        run.detail["steps"][name] = row
    run.judge([f"{name}: {sentence}" for name, row in run.detail["steps"].items()
               for sentence in row["problems"]])


def timed_step(run: Run, name: str, workload: dict) -> dict:
    """Memory and kernels of a recorded step, and the time of a step without a recorder."""
    found = run.trace(name, workload, warmup_steps=2, steps=3)
    return {
        "peak_allocated_bytes": found["peak_allocated_bytes"],
        "peak_reserved_bytes": found["peak_reserved_bytes"],
        "step_time_ns": untraced_step_ns(run, workload, UNTRACED_STEPS),
        "traced_step_time_ns": statistics.median(found["step_times_ns"]),
        "kernel_time_ns": found["kernel_time_ns"] / found["steps"],
        "kernels": found["kernels"] / found["steps"],
        "unexplained_bytes": found["counters"].get("unexplained_bytes"),
        "problems": trace_checks.problems(found),
    }


def untraced_step_ns(run: Run, workload: dict, steps: int, recording: str = "alone") -> float:
    """Median time of `steps` steps in a new process; for `recording` see step_bench.cpp."""
    command = [str(BUNDLE / "step_bench"), "cuda", recording, str(steps)]
    return statistics.median(
        json.loads(run.output(command, json.dumps(workload)))["step_times_ns"]
    )


def predicted_steps(run: Run):
    """Predicted peaks and step times beside the measured ones."""
    steps = run.found.get("step-times", {}).get("steps", {})
    compare(run, {"steps": {name: row for name, row in steps.items() if "step_time_ns" in row}})


def compare(run: Run, measured: dict):
    """Compares predictions that the packing machine made for this GPU with `measured`."""
    predictions = json.loads((BUNDLE / gpu_predictions.FILE).read_text())
    gpu, same = gpu_predictions.find_gpu(predictions, **run.card)
    if not gpu:
        capability = run.card["compute_capability"]
        raise Skipped(f"no GPU of compute capability {capability} was predicted")
    rows = gpu_predictions.compare(predictions[gpu], measured, same)
    if not rows:
        raise Skipped("none of the predicted figures was measured")
    if missed := [row for row in rows if row["met"] is False]:
        print(gpu_predictions.table(missed))
    run.detail |= {"predicted_for": gpu, "same_card": same, "rows": rows}
    run.judge_measured(goals.wrong_predictions(rows))


def kernel_speed(run: Run):
    """Our kernels beside PyTorch's ops and beside a copy, from CUDA graphs."""
    options = ["--rounds", "1", "--scale", "16"] if run.few else []
    text = run.python("kernel_speed.py", "--libraries", str(BUNDLE), *options)
    run.detail |= json.loads(text)
    run.judge_measured(goals.slow_kernels(run.detail))
