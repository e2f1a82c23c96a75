"""The checks of gpu-check. Each is a function that returns its detail for the result, or raises
Failed or Skipped with a sentence."""

import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

import goals
import gpu_predictions
import gpu_recordings
import gpu_workloads
import trace_checks
import worker_link

BUNDLE = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
OPS_TIMEOUT_S = 100.0


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def torch_folder() -> pathlib.Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("gpu-check: this python3 has no torch; use a python3 with torch 2.11")
    return pathlib.Path(spec.submodule_search_locations[0])


def loader_environment() -> dict:
    """An environment in which the loader finds torch, its CUDA libraries and the bundle."""
    torch = torch_folder()
    nvidia = sorted(str(path) for path in (torch.parent / "nvidia").glob("*/lib"))
    folders = [str(BUNDLE), str(torch / "lib"), *nvidia, os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}


def output_of(command: list) -> str:
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip()


class Check:
    """What the checks share: the worker, the device, folders for traces and recordings, the
    remaining time, and the results of earlier checks."""

    def __init__(self, device: str, minutes: float, folder: pathlib.Path):
        self.device = device
        self.end = time.monotonic() + 60 * minutes
        self.folder = folder
        self.recordings = folder / "recordings"
        self.environment = loader_environment()
        self.gpu = {"name": "", "compute_capability": "", "memory_gib": 0.0}
        self.found = {}  # name of an earlier check -> its detail

    def left_s(self) -> float:
        return self.end - time.monotonic()

    def ask(self, **fields) -> dict:
        timeout_s = max(1.0, min(300.0, self.left_s()))
        return worker_link.request(
            str(BUNDLE / "temposcope-worker"), fields, self.environment, timeout_s
        )

    def run(self, command: list, text: str = "", most_s: float = float("inf"), **environment):
        """Runs a program with the bundle's libraries in the time that is left. A failed program is
        returned too, without an exception."""
        return subprocess.run(
            command,
            input=text,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=max(1.0, min(most_s, self.left_s())),
            check=False,
        )

    def output(self, command: list, text: str = "") -> str:
        """What a program of the bundle prints. Raises Failed with the last line of its errors."""
        done = self.run(command, text)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
            raise Failed(f"{pathlib.Path(command[0]).name}: {lines[-1]}")
        return done.stdout

    def trace(self, name: str, kind: str, workload: dict, **fields) -> dict:
        """Runs a capture or a sweep and returns the summary of its trace."""
        path = str(self.folder / f"{name}.tscope")
        self.ask(request=kind, workload=workload, device=self.device, output_path=path, **fields)
        return trace_checks.summary(path)

    def judged(self, found: dict) -> dict:
        if wrong := trace_checks.problems(found, with_kernels=self.device == "cuda"):
            raise Failed("; ".join(wrong), found)
        return found


def check_environment(check: Check) -> dict:
    torch = torch_folder()
    version = (torch / "version.py").read_text() if (torch / "version.py").exists() else ""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "torch": next((x.split("'")[1] for x in version.splitlines() if "__version__ =" in x), ""),
        "gpu": output_of(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        ),
    }


def check_doctor(check: Check) -> dict:
    rows = check.ask(request="doctor")["summary"]["checks"]
    missing = [row for row in rows if row["status"] != "ok"]
    if missing and check.device == "cuda":
        raise Failed(f"{missing[0]['name']}: {missing[0]['detail']}", {"rows": rows})
    return {"rows": rows}


def judge_unit_tests(returncode: int, log: str) -> dict:
    """Counts from unittest's log. Raises Failed if a test failed or none has run."""
    lines = log.strip().splitlines() or ["the tests wrote no log"]
    found = {"tests": 0, "skipped": 0, "failed": []}
    for line in lines:
        if ran := re.match(r"Ran (\d+) test", line):
            found["tests"] = int(ran[1])
        if skipped := re.search(r"skipped=(\d+)", line):
            found["skipped"] = int(skipped[1])
        if line.startswith(("FAIL:", "ERROR:")):
            found["failed"].append(line)
    if returncode and not found["failed"]:
        raise Failed(lines[-1], found)
    if found["failed"]:
        raise Failed(f"{len(found['failed'])} tests fail; the first: {found['failed'][0]}", found)
    if found["tests"] <= found["skipped"]:
        raise Failed("no test has run", found)
    return found


def check_ops(check: Check) -> dict:
    """Tests torch.ops.tempo on the GPU as a Python program uses it: values, gradients, autocast and
    inputs that are not contiguous. It has a time limit of its own, so that time remains for the
    other checks."""
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    command = [sys.executable, str(BUNDLE / "lib" / "ops_test.py"), "-k", "OpsOnCuda"]
    done = check.run(
        [*command, str(BUNDLE / "libtempo_ops.so"), str(BUNDLE / "libtempo_ops_cuda.so")],
        most_s=OPS_TIMEOUT_S,
        PYTHONDONTWRITEBYTECODE="1",
    )
    return judge_unit_tests(done.returncode, done.stderr)


def check_kernels(check: Check) -> dict:
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    report = check.folder / "kernels.json"
    done = check.run([str(BUNDLE / "cuda_kernels_test"), f"--gtest_output=json:{report}"])
    if not report.exists():
        raise Failed(done.stderr.strip().splitlines()[-1] if done.stderr else "no report")
    totals = json.loads(report.read_text())
    found = {key: totals[key] for key in ("tests", "failures", "time")}
    if totals["failures"]:
        raise Failed(f"{totals['failures']} of {totals['tests']} tests fail", found)
    return found


def check_capture(name: str):
    described = gpu_workloads.CAPTURES[name]

    def run(check: Check) -> dict:
        small = gpu_workloads.SMALL if check.device == "cpu" else {}
        workload = gpu_workloads.workload(described, **small)
        return check.judged(check.trace(described["recipe"], "capture", workload))

    return run


def check_losses(check: Check) -> dict:
    """Compares the losses of recipes that compute the same function, step by step. This tests the
    ops on the GPU end to end."""
    losses = {
        gpu_workloads.CAPTURES[name]["recipe"]: check.found[name]["losses"]
        for name in ("capture original", "capture tempo", "capture checkpoint")
        if "losses" in check.found.get(name, {})
    }
    if len(losses) < 2:
        raise Skipped("needs the losses of at least two captures")
    if wrong := goals.differing_losses(losses):
        raise Failed("; ".join(wrong), losses)
    return losses


def check_kernel_speed(check: Check) -> dict:
    """Compares the kernels' time with PyTorch's ops and, for large shapes, their bandwidth with
    that of a copy."""
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    script = BUNDLE / "lib" / "kernel_speed.py"
    found = json.loads(check.output([sys.executable, str(script), "--libraries", str(BUNDLE)]))
    if wrong := goals.slow_kernels(found):
        raise Failed(f"{len(wrong)} goals missed; the first: {wrong[0]}", found)
    return found


def check_memory_limit(check: Check) -> dict:
    """A capture that does not fit must say so. A sweep must find the largest batch that fits."""
    small = {"hidden": 256} if check.device == "cpu" else {}
    limit = 256 * MIB if small else gpu_workloads.SWEEP_LIMIT_BYTES
    workload = gpu_workloads.workload(gpu_workloads.SWEEP, **small)
    try:
        too_large = workload | {"batch_size": 256}
        check.trace("too-large", "capture", too_large, memory_limit_bytes=limit)
        raise Failed("a batch of 256 ran within the memory limit, although it needs more")
    except worker_link.WorkerError as error:
        if error.exit_code != 3:
            raise Failed(
                f"out of memory must end with exit code 3, not {error.exit_code}: {error}"
            ) from None
        sentence = str(error)
    path = check.folder / "sweep.tscope"
    check.ask(
        request="sweep",
        workload=workload | {"batch_size": 1},
        device=check.device,
        output_path=str(path),
        memory_limit_bytes=limit,
        steps=1,
    )
    db = trace_checks.read_only(path)
    points = db.execute(
        "SELECT batch_size, outcome, peak_reserved_bytes, requested_bytes, free_bytes"
        " FROM sweep_point ORDER BY batch_size"
    ).fetchall()
    fits = [point[0] for point in points if point[1] == 0]
    fails = [point[0] for point in points if point[1] == 1]
    found = {"sentence": sentence, "points": points}
    if not fits or not fails or max(fits) + 1 != min(fails):
        raise Failed("the sweep did not find two neighbouring batches, one that fits and one that "
                     "does not", found)
    return found | {"max_batch_size": max(fits)}


def check_leaks(check: Check) -> dict:
    workload = worker_link.bert(1, 128, batch_size=2, seq_len=64, recipe="tempo")
    steps = 200 if check.device == "cuda" else 20
    found = check.judged(check.trace("leaks", "capture", workload, steps=steps))
    return {key: found[key] for key in ("steps", "counters", "notes")}


def check_non_torch_memory(check: Check) -> dict:
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    found = trace_checks.summary(check.folder / "original.tscope")["counters"]
    if abs(found["unexplained_bytes"]) > 32 * MIB:
        mib = found["unexplained_bytes"] / MIB
        raise Failed(f"{mib:.0f} MiB of GPU memory belong to no known user", found)
    return found


def check_recordings(check: Check) -> dict:
    """Records small steps. The recordings lie beside the result and are meant for
    tests/golden/cuda."""
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    check.recordings.mkdir(parents=True, exist_ok=True)
    for name in gpu_recordings.names():  # remove what an earlier run left
        (check.recordings / name).unlink(missing_ok=True)
    found = {}
    plain = check.environment
    for name, (workload, settings) in gpu_recordings.STEPS.items():
        path = check.recordings / name
        check.environment = gpu_recordings.with_settings(plain, settings) | {
            "TEMPOSCOPE_CUPTI_RECORDING": str(path)
        }
        try:
            steps = check.trace(path.stem, "capture", workload, steps=1)
            found[name] = {"kernels": steps["kernels"]}
        except worker_link.WorkerError as error:
            found[name] = {"problem": f"{name}: {error}"}
        finally:
            check.environment = plain
    for settings in gpu_recordings.SCENARIOS:
        rows = gpu_recordings.record_allocator(check.recordings, settings, plain)
        found |= {settings or "eager": rows} if "problem" in rows else rows
    if wrong := gpu_recordings.problems(check.recordings, found):
        raise Failed("; ".join(wrong), found)
    return found


def step_time_ns(check: Check, workload: dict, recording: str, steps: int) -> float:
    """Median time of `steps` steps in a new process; for `recording` see step_bench.cpp."""
    command = [str(BUNDLE / "step_bench"), check.device, recording, str(steps)]
    return statistics.median(
        json.loads(check.output(command, json.dumps(workload)))["step_times_ns"]
    )


def check_overhead(check: Check) -> dict:
    """Compares the time of a step alone, recorded by Temposcope, and recorded by PyTorch's
    profiler. The three run in turn, each in its own process. The result is the median of the ratios
    of each turn."""
    small = check.device == "cpu"
    changes = gpu_workloads.SMALL | {"layers": 1} if small else {}
    workload = gpu_workloads.workload(gpu_workloads.OVERHEAD, **changes)
    ours, pytorch, alone_ns = [], [], []
    pairs = 1 if small else goals.RECORDING_PAIRS
    while len(ours) < pairs and check.left_s() > 60:  # keep a minute for the other checks
        alone = step_time_ns(check, workload, "alone", 5)
        alone_ns.append(alone)
        name = f"traced-{len(ours)}"
        traced = check.judged(check.trace(name, "capture", workload, steps=5))
        ours.append(statistics.median(traced["step_times_ns"]) / alone)
        pytorch.append(step_time_ns(check, workload, "profiler", 5) / alone)
    if not ours:
        raise Skipped("no time is left")
    found = {
        "turns": len(ours),
        "ratio": statistics.median(ours),
        "pytorch_profiler_ratio": statistics.median(pytorch),
        "ratios": ours,
        "pytorch_profiler_ratios": pytorch,
        "step_time_ns": statistics.median(alone_ns),
        "peak_allocated_bytes": traced["peak_allocated_bytes"],
        "peak_reserved_bytes": traced["peak_reserved_bytes"],
    }
    if small:  # a small step is too short to judge
        return found
    try:
        wrong = goals.costly_recording(found)
    except goals.NotJudged as few:
        raise Skipped(str(few), found) from None
    if wrong:
        raise Failed("; ".join(wrong), found)
    return found


def measured_figures(check: Check) -> dict:
    """The measured figures that gpu_predictions.compare takes, from the checks that have run."""
    steps = {
        name: {
            "peak_allocated_bytes": check.found[name]["peak_allocated_bytes"],
            "peak_reserved_bytes": check.found[name]["peak_reserved_bytes"],
            "step_time_ns": statistics.median(check.found[name]["step_times_ns"]),
        }
        for name in gpu_workloads.CAPTURES
        if "step_times_ns" in check.found.get(name, {})
    }
    overhead = check.found.get("overhead", {})
    if "step_time_ns" in overhead:
        steps["overhead"] = overhead
    batch = check.found.get("memory limit", {})
    return {"steps": steps} | {key: batch[key] for key in ("max_batch_size",) if key in batch}


def check_predictions(check: Check) -> dict:
    """Compares predictions that the packing machine made for this GPU with measurements here."""
    if check.device != "cuda":
        raise Skipped("needs a GPU")
    predictions = json.loads((BUNDLE / gpu_predictions.FILE).read_text())
    gpu, same = gpu_predictions.find_gpu(predictions, **check.gpu)
    if not gpu:
        capability = check.gpu["compute_capability"]
        raise Skipped(f"no GPU of compute capability {capability} was predicted")
    rows = gpu_predictions.compare(predictions[gpu], measured_figures(check), same)
    if not rows:
        raise Skipped("none of the predicted figures was measured")
    print(gpu_predictions.table(rows))
    found = {"predicted_for": gpu, "same_card": same, "rows": rows}
    if wrong := goals.wrong_predictions(rows):
        raise Failed(f"{len(wrong)} goals missed; the first: {wrong[0]}", found)
    return found


def check_sanitizer(check: Check) -> dict:
    tool = shutil.which("compute-sanitizer")
    if check.device != "cuda" or tool is None:
        raise Skipped("needs a GPU" if tool else "compute-sanitizer is not installed")
    done = check.run([tool, "--error-exitcode", "9", str(BUNDLE / "cuda_kernels_test")])
    if done.returncode:
        raise Failed(done.stdout.strip().splitlines()[-1] if done.stdout else "it failed")
    return {"output": done.stdout.strip().splitlines()[-1:]}


CHECKS = {
    "environment": check_environment,
    "doctor": check_doctor,
    "kernels": check_kernels,
    "ops": check_ops,
    **{name: check_capture(name) for name in gpu_workloads.CAPTURES},
    "losses": check_losses,
    "non-PyTorch memory": check_non_torch_memory,
    "memory limit": check_memory_limit,
    "leaks": check_leaks,
    "recordings": check_recordings,
    "kernel speed": check_kernel_speed,
    "overhead": check_overhead,
    "predicted beside measured": check_predictions,
    "sanitizer": check_sanitizer,
}


def run_check(name: str, check: Check) -> dict:
    start = time.monotonic()
    row = {"name": name, "status": "ok", "sentence": "", "detail": {}}
    try:
        if check.left_s() < 5:
            raise Skipped("no time is left")
        row["detail"] = CHECKS[name](check)
    except Skipped as skipped:
        row |= {"status": "skipped", "sentence": str(skipped.args[0])}
        row["detail"] = skipped.args[1] if len(skipped.args) > 1 else {}
    except subprocess.TimeoutExpired:
        row |= {"status": "skipped", "sentence": "it did not finish in the time that was left"}
    except Failed as failed:
        row |= {"status": "failed", "sentence": str(failed.args[0])}
        row["detail"] = failed.args[1] if len(failed.args) > 1 else {}
    except Exception as error:  # any error, so that the other checks' results are not lost
        row |= {"status": "failed", "sentence": f"{type(error).__name__}: {error}"}
    row["seconds"] = round(time.monotonic() - start, 1)
    # Other checks read these details. They must not rely on the figures of a failed check.
    check.found[name] = {} if row["status"] == "failed" else row["detail"]
    return row
