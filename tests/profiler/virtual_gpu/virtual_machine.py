"""Runs Python programs on a virtual GPU."""

import json
import os
import subprocess
import sys

GIB = 1 << 30
CARDS = {
    "a100": ("8.0", 2048, 32, 167936, 166912),
    "h100": ("9.0", 2048, 32, 233472, 232448),
    "2080ti": ("7.5", 1024, 16, 65536, 65536),
}


def machine_of(card, count=2):
    capability, threads, blocks, shared, shared_block = CARDS[card]
    device = {
        "name": card,
        "compute_capability": capability,
        "total_bytes": 16 * GIB,
        "context_bytes": GIB // 2,
        "sm_count": 100,
        "l2_bytes": 40 << 20,
        "threads_per_sm": threads,
        "blocks_per_sm": blocks,
        "shared_bytes_per_sm": shared,
        "shared_bytes_per_block": shared_block,
    }
    return {"devices": [device] * count}


def h200():
    """A machine whose card torch takes for an H200."""
    machine = machine_of("h100", 1)
    machine["devices"][0] |= {
        "name": "NVIDIA H200", "total_bytes": 150 * 10**9, "sm_count": 132, "l2_bytes": 60 << 20,
    }
    return machine


def run(folder, machine, *command, **variables):
    """`folder` has the virtual GPU's libraries; `machine` is a dict, or text in its place."""
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(sorted(str(path) for path in folder.iterdir())),
        "LD_LIBRARY_PATH": f"{folder}:{folder}_fallback",
        "TORCH_DIST_USE_NCCL2": "0",
        "TEMPOSCOPE_VIRTUAL_GPU": machine if isinstance(machine, str) else json.dumps(machine),
        **variables,
    }
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
