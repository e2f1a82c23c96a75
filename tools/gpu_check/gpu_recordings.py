"""Recordings for tests/golden/cuda: the CUPTI buffers that the worker receives, and torch's memory
snapshots of the caching allocator. Together they have at most 8 MiB."""

import json
import pathlib

import gpu_workloads
from gpu_run import Failed, Run

FOLDER = "recordings"
LIMIT_BYTES = 8 << 20
LEAST_BYTES = 100  # a smaller file cannot contain a record

# File with the CUPTI buffers of one step -> workload, allocator settings.
SMALL = {"layers": 1, "hidden": 256, "batch_size": 2, "seq_len": 64, "recipe": "tempo"}
STEPS = {
    "bert_eager.cupti": (SMALL, ""),
    "gpt_eager.cupti": (SMALL | {"family": "gpt"}, ""),
    "bert_expandable_segments.cupti": (SMALL, "expandable_segments:True"),
    "bert_flash.cupti": (SMALL | {"recipe": "flash", "precision": "fp16"}, ""),
}
# Allocator settings -> the scenarios of record_allocator.py that run in one process. Graph capture
# comes last, because its private pool is not freed.
SCENARIOS = {
    "": ["eager", "side_streams", "out_of_memory", "graph_capture"],
    "expandable_segments:True": ["expandable_segments"],
    "max_split_size_mb:32": ["max_split_size"],
    "roundup_power2_divisions:4": ["power2_divisions"],
    "garbage_collection_threshold:0.5": ["garbage_collection"],
}


def with_settings(environment: dict, settings: str) -> dict:
    """The environment with these allocator settings instead of the user's."""
    others = {key: value for key, value in environment.items()
              if key not in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
    return others | ({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})


def record_buffers(run: Run, folder: pathlib.Path, name: str) -> dict:
    """Records CUPTI's buffers of a step, and its trace under the same name. Returns the summary of
    the trace."""
    described, settings = STEPS[name]
    path = folder / name
    plain = run.environment
    run.environment = with_settings(plain, settings) | {"TEMPOSCOPE_CUPTI_RECORDING": str(path)}
    try:
        workload = gpu_workloads.workload({"precision": "fp32"} | described)
        return run.trace(f"{FOLDER}/{path.stem}", workload, steps=1)
    finally:
        run.environment = plain


def record_allocator(run: Run, folder: pathlib.Path, settings: str) -> dict:
    """{file: counts}, or {"problem": sentence} so that the other scenarios still run."""
    plain = run.environment
    run.environment = with_settings(plain, settings)
    try:
        return json.loads(run.python("record_allocator.py", str(folder), *SCENARIOS[settings]))
    except Failed as failed:
        return {"problem": str(failed)}
    finally:
        run.environment = plain


def snapshots() -> list:
    """The files of the allocator's scenarios."""
    scenarios = [name for together in SCENARIOS.values() for name in together]
    return [f"{name}_{family}.pickle" for name in scenarios for family in ("bert", "gpt")]


def problems(folder: pathlib.Path, found: dict, names: list) -> list:
    """Sentences about failed, missing, empty and too large recordings. `names` are the files that
    must be there."""
    wrong = [row["problem"] for row in found.values() if "problem" in row]
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        wrong.append(f"not recorded: {', '.join(missing)}")
    empty = [
        name for name in names
        if name not in missing and (folder / name).stat().st_size < LEAST_BYTES
    ]
    if empty:
        wrong.append(f"without a record: {', '.join(empty)}")
    size = sum((folder / name).stat().st_size for name in names if name not in missing)
    if size > LIMIT_BYTES:
        wrong.append(f"the recordings take {size / (1 << 20):.1f} MiB; at most 8 are allowed")
    return wrong
