"""The checks of gpu-check by group. Each group is one command on the machine with the GPU."""

import time
from collections.abc import Callable
from typing import NamedTuple

import gpu_diagnosis
import gpu_figures
import gpu_limits
import gpu_streams
from gpu_run import Failed, NotJudged, Run, Skipped, TimeUp


class Row(NamedTuple):
    check: Callable  # takes a Run; its docstring says what it does
    cap_s: float  # reaching it is a failure


# Group -> check -> row. The cheapest diagnosis comes first, the least urgent last.
GROUPS = {
    "diagnosis": {
        "environment": Row(gpu_diagnosis.environment, 20),
        "doctor": Row(gpu_diagnosis.doctor, 30),
        "first-captures": Row(gpu_diagnosis.first_captures, 60),
        "kernels": Row(gpu_diagnosis.kernels, 120),
        "ops": Row(gpu_diagnosis.ops, 100),
    },
    "streams": {
        "request-streams": Row(gpu_streams.request_streams, 330),
        "losses": Row(gpu_streams.losses, 5),
        "allocator": Row(gpu_streams.allocator, 100),
        "programs": Row(gpu_streams.programs, 200),
        "cudnn": Row(gpu_streams.cudnn, 100),
        "workspaces": Row(gpu_streams.workspaces, 50),
        "outside-memory": Row(gpu_streams.outside_memory, 120),
    },
    "figures": {
        "calibration": Row(gpu_figures.calibration, 100),
        "launches": Row(gpu_figures.launches, 30),
        "products": Row(gpu_figures.products, 60),
        "attention": Row(gpu_figures.attention, 60),
        "step-times": Row(gpu_figures.step_times, 300),
        "predicted-steps": Row(gpu_figures.predicted_steps, 5),
        "kernel-speed": Row(gpu_figures.kernel_speed, 120),
    },
    "limits": {
        "sweeps": Row(gpu_limits.sweeps, 150),
        "predicted-batches": Row(gpu_limits.predicted_batches, 5),
        "cupti-buffers": Row(gpu_limits.cupti_buffers, 60),
        "leaks": Row(gpu_limits.leaks, 40),
        "overhead": Row(gpu_limits.overhead, 200),
        "memcheck": Row(gpu_limits.sanitizer("memcheck"), 100),
        "racecheck": Row(gpu_limits.sanitizer("racecheck"), 100),
        "synccheck": Row(gpu_limits.sanitizer("synccheck"), 100),
    },
}
CHECKS = {name: row for rows in GROUPS.values() for name, row in rows.items()}
WITHOUT_GPU = ("environment", "doctor")


def selected(names: str) -> list:
    """The checks of a list such as "diagnosis,overhead", in the table's order. All of them if it is
    empty."""
    wanted = [name for name in names.split(",") if name] or list(GROUPS)
    unknown = [name for name in wanted if name not in GROUPS and name not in CHECKS]
    if unknown:
        raise SystemExit(
            f"gpu-check: '{unknown[0]}' is not a check; choose from the groups "
            f"{', '.join(GROUPS)} and the checks {', '.join(CHECKS)}"
        )
    return [
        name for group, rows in GROUPS.items() for name in rows
        if group in wanted or name in wanted
    ]


def listing() -> str:
    """All checks with their time limits, for people."""
    lines = []
    for group, rows in GROUPS.items():
        lines.append(group)
        for name, row in rows.items():
            summary = " ".join(row.check.__doc__.split()).split(". ")[0]
            lines.append(f"  {name:<20}{row.cap_s:>4.0f} s  {summary.rstrip('.')}")
    return "\n".join(lines)


def run_check(name: str, run: Run, left_s: float) -> dict:
    """Runs one check in at most `left_s` seconds and returns its row of the result."""
    start = time.monotonic()
    # A check has its own limit so that a card's minutes last for the others. Without a card the
    # processors alone decide how long it takes, and they may have other work.
    limit_s = left_s if run.virtual else min(CHECKS[name].cap_s, left_s)
    run.detail = {}
    run.end = start + limit_s
    status, sentence = "ok", ""
    try:
        if left_s < 5:
            raise Skipped("no time is left")
        CHECKS[name].check(run)
    except Skipped as skipped:
        status, sentence = "skipped", str(skipped)
    except NotJudged as reason:
        status, sentence = "not judged", str(reason)
    except TimeUp:
        status, sentence = "failed", f"did not finish in {limit_s:.0f} s"
    except Failed as failed:
        status, sentence = "failed", str(failed)
    except Exception as error:  # any error, so that the other checks' results are not lost
        status, sentence = "failed", f"{type(error).__name__}: {error}"
    trusted = status in ("ok", "not judged") and not run.virtual
    run.found[name] = run.detail | {"trusted": trusted}
    return {
        "name": name,
        "status": status,
        "sentence": sentence,
        "trusted": trusted,
        "seconds": round(time.monotonic() - start, 1),
        "detail": run.detail,
    }
