"""Recordings of real steps for tests/golden/cuda: CUPTI's buffers as the worker takes them, and
what torch's caching allocator did, as torch's memory snapshots. 8 MiB at most in all."""

import json
import pathlib
import subprocess
import sys

import worker_link

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_BYTES = 8 << 20
LEAST_BYTES = 100  # of a file with a record in it
ALLOCATOR_TIMEOUT_S = 60

# CUPTI's buffers of a step of the worker: file -> the workload, and the allocator's settings.
SMALL = {"batch_size": 2, "seq_len": 64, "recipe": "tempo"}
STEPS = {
    "bert_eager.cupti": (worker_link.bert(1, 256, **SMALL), ""),
    "gpt_eager.cupti": (worker_link.gpt(1, 256, **SMALL), ""),
    "bert_expandable_segments.cupti": (
        worker_link.bert(1, 256, **SMALL), "expandable_segments:True",
    ),
}
# The allocator's actions: settings -> the scenarios of record_allocator.py in one process. Graph
# capture comes last: its private pool stays behind.
SCENARIOS = {
    "": ["eager", "side_streams", "out_of_memory", "graph_capture"],
    "expandable_segments:True": ["expandable_segments"],
    "max_split_size_mb:32": ["max_split_size"],
}


def with_settings(environment: dict, settings: str) -> dict:
    """These settings of the allocator and no others, whatever the user has set."""
    kept = {key: value for key, value in environment.items()
            if key not in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
    return kept | ({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})


def record_allocator(folder: pathlib.Path, settings: str, environment: dict) -> dict:
    """{file: counts}, or {"problem": sentence}: one scenario's must not hide the others'."""
    command = [sys.executable, str(HERE / "record_allocator.py"), str(folder)]
    try:
        done = subprocess.run(
            command + SCENARIOS[settings],
            env=with_settings(environment, settings),
            capture_output=True,
            text=True,
            timeout=ALLOCATOR_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"'{settings}' took more than {ALLOCATOR_TIMEOUT_S} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        return {"problem": lines[-1]}
    return json.loads(done.stdout)


def names() -> list:
    scenarios = [name for together in SCENARIOS.values() for name in together]
    pickles = [f"{name}_{family}.pickle" for name in scenarios for family in ("bert", "gpt")]
    return [*STEPS, *pickles]


def problems(folder: pathlib.Path, found: dict) -> list:
    """What is missing in `folder`, beside what recording said itself."""
    wrong = [row["problem"] for row in found.values() if "problem" in row]
    missing = [name for name in names() if not (folder / name).exists()]
    if missing:
        wrong.append(f"not recorded: {', '.join(missing)}")
    empty = [
        name for name in names()
        if name not in missing and (folder / name).stat().st_size < LEAST_BYTES
    ]
    if empty:
        wrong.append(f"nothing is in {', '.join(empty)}")
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > LIMIT_BYTES:
        wrong.append(f"the recordings take {size / (1 << 20):.1f} MiB, and 8 is the most")
    return wrong
