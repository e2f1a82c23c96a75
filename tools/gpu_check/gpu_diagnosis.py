"""Checks of gpu-check: what the machine is, and whether steps and ops run at all."""

import json
import os
import platform
import re
import sys

import gpu_workloads
import trace_checks
from gpu_run import BUNDLE, Failed, NotJudged, Run, torch_folder, torch_version
from worker_link import last_line

VARIABLES = re.compile(
    r"(NVIDIA|CUDA|CUBLAS|CUDNN|NCCL|TORCH|PYTORCH|TEMPOSCOPE|OMP|MKL)\w*|LD_(PRELOAD|LIBRARY_PATH)"
)
FIRST = {"layers": 1, "recipe": "original", "precision": "fp32", "batch_size": 2, "seq_len": 128}


def environment(run: Run):
    """Versions, variables, driver."""
    torch = torch_folder()
    run.detail |= {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "torch": torch_version(torch),
        "packages": sorted(path.name.removesuffix(".dist-info")
                           for path in torch.parent.glob("nvidia_*.dist-info")),
        "variables": {key: value for key, value in sorted(os.environ.items())
                      if VARIABLES.fullmatch(key)},
        "gpu": run.tool_output(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,pci.bus_id",
             "--format=csv,noheader"]
        ),
    }
    if report := run.tool_output(["nvidia-smi", "-q"]):
        (run.folder / "nvidia-smi.txt").write_text(report + "\n")


def doctor(run: Run):
    """The worker's own check of each part that CUDA needs."""
    rows = run.ask(request="doctor")["summary"]["checks"]
    run.detail["rows"] = rows
    run.judge([f"{row['name']}: {row['detail']}" for row in rows if row["status"] != "ok"])


def first_captures(run: Run):
    """One layer, recorded after a warm-up and from the first step on. Among the figures are the
    calls that CUPTI refused."""
    wrong = []
    for name, warmup_steps in (("first-step", 0), ("after-warm-up", 2)):
        found = run.trace(
            name, gpu_workloads.workload(FIRST), warmup_steps=warmup_steps, steps=2
        )
        run.detail[name] = found
        # The first step also makes the optimizer's state, so its bytes stay.
        wrong += [f"{name}: {sentence}" for sentence in trace_checks.problems(found)]
        refused = found["software"].get("cupti_refused", [])
        wrong += [f"{name}: CUPTI refused {sentence}" for sentence in refused]
    run.judge(wrong)


def kernels(run: Run):
    """The tests of our kernels, on raw pointers."""
    report = run.scratch / "kernels.json"
    done = run.program([str(BUNDLE / "cuda_kernels_test"), f"--gtest_output=json:{report}"])
    if not report.exists():
        raise Failed(last_line(done.stderr, f"no report; it ended with {done.returncode}"))
    run.detail |= judge_google_tests(json.loads(report.read_text()))
    if done.returncode and not run.detail["failed"]:
        raise Failed(f"the tests pass and end with {done.returncode}")
    run.judge_measured([f"{name} fails" for name in run.detail["failed"]])


def judge_google_tests(report: dict) -> dict:
    """Counts from googletest's report. Raises Failed if no test has run."""
    tests = [(f"{suite['name']}.{test['name']}", test) for suite in report["testsuites"]
             for test in suite["testsuite"]]
    found = {
        "tests": len(tests),
        "skipped": sum(test.get("result") == "SKIPPED" for _, test in tests),
        "failed": [name for name, test in tests if test.get("failures")],
        "seconds": float(report["time"].removesuffix("s")),
    }
    if found["tests"] <= found["skipped"]:
        raise Failed("no test has run")
    return found


def ops(run: Run):
    """torch.ops.tempo in the machine's own Python: values, gradients, autocast and inputs that are
    not contiguous."""
    command = [sys.executable, str(BUNDLE / "ops_test.py"), "-k", "OpsOnCuda"]
    done = run.program(
        [*command, str(BUNDLE / "libtempo_ops.so"), str(BUNDLE / "libtempo_ops_cuda.so")]
    )
    try:
        judge_unit_tests(done.returncode, done.stderr, run.detail)
    except Failed:
        if not run.virtual or run.detail["tests"] == run.detail["skipped"]:
            raise
        if refused := refusals(done.stderr):
            raise Failed(f"{len(refused)} tests are refused; the first: {refused[0]}") from None
        raise NotJudged("not judged: virtual GPU") from None


def refusals(log: str) -> list:
    """From unittest's log, the tests that ended with an exception of ours, `tempo: ...` of an op or
    `... on CUDA: ...` of a kernel. On a virtual GPU values are wrong, but refusals are real."""
    ours = re.compile(r"^\w+: (tempo: |\w+ on CUDA: ).*", re.MULTILINE)
    reports = re.split(r"^=+\n", log, flags=re.MULTILINE)
    return [f"{report.splitlines()[0]}: {said[0]}" for report in reports
            if report.startswith("ERROR:") and (said := ours.search(report))]


def judge_unit_tests(returncode: int, log: str, found: dict):
    """Puts the counts of unittest's log into `found`. Raises Failed if a test failed or none has
    run."""
    lines = log.strip().splitlines() or ["the tests wrote no log"]
    found |= {"tests": 0, "skipped": 0, "failed": []}
    for line in lines:
        if ran := re.match(r"Ran (\d+) test", line):
            found["tests"] = int(ran[1])
        if skipped := re.search(r"skipped=(\d+)", line):
            found["skipped"] = int(skipped[1])
        if line.startswith(("FAIL:", "ERROR:")):
            found["failed"].append(line)
    if found["failed"]:
        raise Failed(f"{len(found['failed'])} tests fail; the first: {found['failed'][0]}")
    if returncode:
        raise Failed(lines[-1])
    if found["tests"] <= found["skipped"]:
        raise Failed("no test has run")
