"""Checks of gpu-check: the largest batch, long runs, CUPTI's buffers, the cost of recording, and
the sanitizers."""

import json
import re
import shutil
import statistics

import goals
import gpu_figures
import gpu_recordings
import gpu_workloads
import trace_checks
import worker_link
from gpu_run import BUNDLE, OUT_OF_MEMORY, Failed, NotJudged, Run, Skipped

SANITIZER_ERRORS = 9  # the exit code that it is told to use
REFUSED = re.compile("Unable to|not supported|Internal Sanitizer Error|before first instrumented")


def sweeps(run: Run):
    """The largest batch under two limits of the allocator: found by one process, and confirmed by
    fresh ones."""
    outside_bytes = memory_before_tensors(run)
    run.detail |= {"outside_bytes": outside_bytes, "limits": {}}
    wrong = []
    for name, allocator_bytes in run.some(gpu_workloads.SWEEP_LIMITS.items(), few=1):
        limit = {"memory_limit_bytes": allocator_bytes + outside_bytes}
        found = run.detail["limits"][name] = {"allocator_bytes": allocator_bytes}
        found["points"] = swept_points(run, f"sweep-{name.replace(' ', '')}", limit)
        fits = [point["batch_size"] for point in found["points"] if point["outcome"] == "ok"]
        if not fits or len(fits) == len(found["points"]):
            wrong.append(f"{name}: the sweep needs a batch that fits and one that does not")
            continue
        found["max_batch_size"] = max(fits)
        found["fresh"] = {
            batch: fits_alone(run, batch, limit) for batch in (max(fits), max(fits) + 1)
        }
        found["trusted"] = list(found["fresh"].values()) == ["fits", "out of memory"]
        if not found["trusted"]:
            wrong.append(f"{name}: fresh processes disagree with the sweep: {found['fresh']}")
        found["pytorch"] = pytorch_limit(run, name, allocator_bytes)
        found["trusted"] &= not run.virtual
    run.judge(wrong)


def memory_before_tensors(run: Run) -> int:
    """The bytes that the worker subtracts from a limit: of the context, and of CUPTI."""
    workload = gpu_workloads.workload(gpu_workloads.SWEEP, batch_size=1)
    counters = run.trace("limits", workload, keep=False, steps=1)["counters"]
    return int(counters["context_bytes"] + counters["cupti_bytes"])


def swept_points(run: Run, name: str, limit: dict) -> list:
    workload = gpu_workloads.workload(gpu_workloads.SWEEP, batch_size=1)
    run.trace(name, workload, kind="sweep", steps=1, **limit)
    return trace_checks.rows_of(
        run.folder / f"{name}.tscope",
        "SELECT batch_size, outcome, peak_allocated_bytes, peak_reserved_bytes, requested_bytes,"
        " free_bytes FROM v_sweep_point ORDER BY id",
    )


def fits_alone(run: Run, batch_size: int, limit: dict) -> str:
    """Whether the batch trains in a process that has trained nothing before."""
    workload = gpu_workloads.workload(gpu_workloads.SWEEP, batch_size=batch_size)
    try:
        run.trace("fresh", workload, keep=False, steps=1, **limit)
    except worker_link.WorkerError as error:
        if error.exit_code != OUT_OF_MEMORY:
            return str(error)
        return "out of memory"
    return "fits"


def pytorch_limit(run: Run, name: str, allocator_bytes: int) -> dict:
    """A plain PyTorch program under the same limit, with torch's snapshot of its last step."""
    path = run.folder / f"out-of-memory-{name.replace(' ', '')}.pickle"
    return json.loads(run.python("torch_limit.py", str(allocator_bytes), str(path)))


def predicted_batches(run: Run):
    """Predicted largest batches beside the measured ones."""
    limits = run.found.get("sweeps", {}).get("limits", {})
    gpu_figures.compare(run, {"limits": {
        name: row for name, row in limits.items() if "max_batch_size" in row
    }})


def cupti_buffers(run: Run):
    """CUPTI's buffers as they are, each beside its trace."""
    folder = run.folder / gpu_recordings.FOLDER
    folder.mkdir(exist_ok=True)
    for name in gpu_recordings.STEPS:
        try:
            found = gpu_recordings.record_buffers(run, folder, name)
            run.detail[name] = {"kernels": found["kernels"]}
        except (Failed, worker_link.WorkerError) as error:
            run.detail[name] = {"problem": f"{name}: {error}"}
    run.judge(gpu_recordings.problems(folder, run.detail, list(gpu_recordings.STEPS)))


def leaks(run: Run):
    """Many steps keep the same bytes."""
    workload = gpu_workloads.workload(
        {"layers": 1, "hidden": 128, "batch_size": 2, "seq_len": 64, "recipe": "tempo"}
    )
    found = run.trace("leaks", workload, keep=False, steps=200)
    run.detail |= {key: found[key] for key in ("steps", "counters", "notes")}
    run.judge(trace_checks.problems(found))


def overhead(run: Run):
    """A step alone, recorded by Temposcope, and recorded by PyTorch's profiler, in processes that
    take turns. The result is the median of the ratios of each turn."""
    workload = gpu_workloads.workload(gpu_workloads.OVERHEAD)
    alone_ns, ours, pytorch = [], [], []
    turn_s = 0.0
    while len(ours) < run.rounds(goals.RECORDING_PAIRS) and run.left_s() > 1.2 * turn_s:
        before_s = run.left_s()
        alone_ns.append(gpu_figures.untraced_step_ns(run, workload, 5))
        found = run.trace("traced", workload, keep=False, steps=5)
        run.judge(trace_checks.problems(found))
        ours.append(statistics.median(found["step_times_ns"]) / alone_ns[-1])
        pytorch.append(gpu_figures.untraced_step_ns(run, workload, 5, "profiler") / alone_ns[-1])
        turn_s = before_s - run.left_s()
        run.detail |= {
            "turns": len(ours),
            "ratio": statistics.median(ours),
            "pytorch_profiler_ratio": statistics.median(pytorch),
            "ratios": ours,
            "pytorch_profiler_ratios": pytorch,
            "step_time_ns": statistics.median(alone_ns),
        }
    if run.virtual:
        run.judge_measured([])
    try:
        wrong = goals.costly_recording(run.detail)
    except goals.NotJudged as few:
        raise NotJudged(str(few)) from None
    run.judge(wrong)


def sanitizer(tool: str):
    """The check that runs a tool of compute-sanitizer on the kernels' tests."""

    def check(run: Run):
        if run.virtual:
            raise Skipped("a virtual GPU runs no kernel")
        program = shutil.which("compute-sanitizer")
        if program is None:
            raise Skipped("compute-sanitizer is not installed")
        command = [program, "--tool", tool, "--error-exitcode", str(SANITIZER_ERRORS)]
        done = run.program([*command, str(BUNDLE / "cuda_kernels_test")])
        run.detail["output"] = done.stdout.strip().splitlines()[-20:]
        judge_sanitizer(done.returncode, done.stdout)

    check.__doc__ = f"compute-sanitizer's {tool} on the kernels' tests."
    return check


def judge_sanitizer(returncode: int, output: str):
    """Raises Skipped if the tool could not look at the program, and Failed if it found errors."""
    lines = [line.strip("= ") for line in output.splitlines() if line.startswith("===")]
    refused = [line for line in lines if REFUSED.search(line)]
    summary = [line for line in lines if " SUMMARY: " in line]
    if refused or not summary:
        reason = refused[0] if refused else f"it ended with {returncode}"
        raise Skipped(f"the sanitizer cannot open the device: {reason}")
    if returncode == SANITIZER_ERRORS:
        raise Failed(summary[-1])
    if returncode:
        raise Failed(f"the tests end with {returncode} under the sanitizer")
