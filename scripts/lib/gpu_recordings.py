"""Records real steps for tests/golden/cuda: the CUPTI buffers that the worker receives, and torch's
memory snapshots of the caching allocator. Together they have at most 8 MiB."""

import json
import pathlib
import subprocess
import sys

import worker_link

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_BYTES = 8 << 20
LEAST_BYTES = 100  # a smaller file cannot contain a record
ALLOCATOR_TIMEOUT_S = 60

# File with the CUPTI buffers of one step -> workload, allocator settings.
SMALL = {"batch_size": 2, "seq_len": 64, "recipe": "tempo"}
STEPS = {
    "bert_eager.cupti": (worker_link.bert(1, 256, **SMALL), ""),
    "gpt_eager.cupti": (worker_link.gpt(1, 256, **SMALL), ""),
    "bert_expandable_segments.cupti": (
        worker_link.bert(1, 256, **SMALL), "expandable_segments:True",
    ),
}
# Allocator settings -> the scenarios of record_allocator.py that run in one process. Graph capture
# comes last, because its private pool is not freed.
SCENARIOS = {
    "": ["eager", "side_streams", "out_of_memory", "graph_capture"],
    "expandable_segments:True": ["expandable_segments"],
    "max_split_size_mb:32": ["max_split_size"],
}


def with_settings(environment: dict, settings: str) -> dict:
    """The environment with these allocator settings instead of the user's."""
    others = {key: value for key, value in environment.items()
            if key not in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
    return others | ({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})


def record_allocator(folder: pathlib.Path, settings: str, environment: dict) -> dict:
    """{file: counts}, or {"problem": sentence} so that the other scenarios still run."""
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
        return {"problem": f"recording with '{settings}' took more than {ALLOCATOR_TIMEOUT_S} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        return {"problem": lines[-1]}
    return json.loads(done.stdout)


def names() -> list:
    scenarios = [name for together in SCENARIOS.values() for name in together]
    pickles = [f"{name}_{family}.pickle" for name in scenarios for family in ("bert", "gpt")]
    return [*STEPS, *pickles]


def problems(folder: pathlib.Path, found: dict) -> list:
    """Sentences about failed, missing, empty and too large recordings."""
    wrong = [row["problem"] for row in found.values() if "problem" in row]
    missing = [name for name in names() if not (folder / name).exists()]
    if missing:
        wrong.append(f"not recorded: {', '.join(missing)}")
    empty = [
        name for name in names()
        if name not in missing and (folder / name).stat().st_size < LEAST_BYTES
    ]
    if empty:
        wrong.append(f"without a record: {', '.join(empty)}")
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > LIMIT_BYTES:
        wrong.append(f"the recordings take {size / (1 << 20):.1f} MiB; at most 8 are allowed")
    return wrong
