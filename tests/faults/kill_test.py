"""Commands that are killed at random instants: the program, what it started, or both.

    kill_test.py [--kills N] [--seed S] [--only KIND | --slow] [--verbose]

Whatever was killed: a trace under its final name is complete, a partial one that opens says what it
holds, another is refused in one sentence, and nothing runs on 2 s later. A program that gets SIGINT
or SIGTERM leaves no unfinished file either. N is 9 in the suite, 300 for a long run by hand, with
--slow for what takes minutes: the search of `sweep --auto`, and the window, in which a test clicks
through captures of every kind.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import processes

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from run_test import Display  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "temposcope"
WINDOW = BUILD / "tests" / "gui_test"
NEEDS_OF_WINDOW = {  # its test does not lie beside them
    "TEMPOSCOPE_WORKER": str(BUILD / "bin" / "temposcope-worker"),
    "TEMPOSCOPE_VIRTUAL_GPU_FOLDER": str(BUILD / "bin" / "virtual_gpu"),
    "LIBGL_ALWAYS_SOFTWARE": "1",
}
DEPS = os.environ.get("TEMPOSCOPE_DEPS", pathlib.Path.home() / ".cache" / "temposcope")
PYTHON = pathlib.Path(DEPS) / "venv" / "bin" / "python3"  # it has torch
MODEL = "--model bert-base --layers 2 --hidden 64 --heads 2 --seq 16"
TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(60):
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
KINDS = {
    "capture": f"capture {MODEL} --batch 1 --device cpu --steps 30 -o out.tscope",
    "recipes": f"capture {MODEL} --batch 1 --device cpu --recipe original,tempo --steps 10 -o out",
    "predict": f"capture {MODEL} --batch 1 --device predict:t4 -o out.tscope",
    "sweep": f"sweep {MODEL} --device cpu --memory-limit 16MiB -o out",
    "auto": f"sweep --auto fast {MODEL} --memory-limit 8MiB --steps 1 -o out.json",
    "run": f"run --skip 0 --steps 60 -o out.tscope -- {PYTHON} train.py",
    "window": "--filter trains --pictures pictures",
    "export": f"export {ROOT}/assets/examples/original.tscope --to chrome -o out.json",
    "import": f"import {ROOT}/assets/examples/original.tscope -o out.tscope",
}
SLOW = {"auto", "window"}
# Without its parent the program that `run` runs goes on, as does the window without its worker.
VICTIMS = {
    "run": ["worker", "both"],
    "window": ["program", "both"],
    "export": ["program"],
    "import": ["program"],
}
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
SECONDS_TO_END = 2


def patience() -> float:
    """How much later than on an idle machine this one schedules what ends."""
    return max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


def start(kind: str, folder: pathlib.Path) -> subprocess.Popen:
    (folder / "train.py").write_text(TRAIN)
    return subprocess.Popen(
        [WINDOW if kind == "window" else PROGRAM, *KINDS[kind].split()],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)} | (NEEDS_OF_WINDOW if kind == "window" else {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(process: subprocess.Popen, victim: str, by: signal.Signals) -> bool:
    """Returns whether there was somebody to kill."""
    found = False
    for number in processes.processes_of(process.pid):
        is_program = number == process.pid
        if victim == "both" or is_program == (victim == "program"):
            try:
                os.kill(number, by)
                found = True
            except ProcessLookupError:
                pass
    return found


def problem_of_processes(process: subprocess.Popen) -> tuple[str | None, float]:
    """Once one of them is dead, nothing of the session runs on. Returns also how long that took."""
    begin = time.monotonic()
    while processes.processes_of(process.pid):
        seconds = time.monotonic() - begin
        if seconds > SECONDS_TO_END * patience():
            left = sorted(processes.processes_of(process.pid).values())
            return f"{', '.join(left)} runs on after {seconds:.1f} s", seconds
        time.sleep(0.01)
    return None, time.monotonic() - begin


def steps_of(kind: str) -> int | None:
    """The --steps of the command, which a whole recording has; None: it says nothing of them."""
    steps = re.search(r"--steps (\d+)", KINDS[kind])
    return int(steps[1]) if steps and kind not in SLOW else None


def seconds_of(kind: str) -> float:
    """How long a command takes that nobody kills."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        if start(kind, pathlib.Path(folder)).wait() != 0:
            sys.exit(f"{kind} fails even if nothing is killed")
        return time.monotonic() - begin


def problem_of_files(folder: pathlib.Path, kind: str, by: signal.Signals) -> str | None:
    if by != signal.SIGKILL and (left := sorted(folder.rglob("*.unfinished-*"))):
        return f"{left[0].name} is left"
    return processes.problem_of_traces(PROGRAM, folder, steps_of(kind))


def problem_of_kill(
    kind: str, victim: str, by: signal.Signals, after: float
) -> tuple[str | None, float]:
    """Kills a command `after` some seconds. Returns what is wrong and how long its end took."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        process = start(kind, folder)
        time.sleep(after)  # any instant will do
        if not kill(process, victim, by):
            process.wait()  # before it started another process, or after its end
        problem, took = problem_of_processes(process)
        processes.kill_session(process.pid)
        process.wait()
        return problem or problem_of_files(folder, kind, by), took


def kill_at_random(chance: random.Random, kinds: list[str], kills: int, verbose: bool) -> int:
    """Returns the number of problems."""
    seconds, wrong, longest = {}, 0, 0.0
    for number in range(kills):
        kind = chance.choice(kinds)
        victim = chance.choice(VICTIMS.get(kind, ["program", "worker", "both"]))
        by = chance.choice(SIGNALS) if victim == "program" else signal.SIGKILL
        seconds[kind] = seconds.get(kind) or seconds_of(kind)
        after = chance.uniform(0, seconds[kind])
        problem, took = problem_of_kill(kind, victim, by, after)
        what = f"{number}: {kind}, {by.name} to {victim} after {after:.3f} s"
        if verbose:
            print(f"{what}: {took:.2f} s", flush=True)
        longest = max(longest, took)
        if problem:
            wrong += 1
            print(f"{what}: {problem}", flush=True)
    print(f"{kills} kills, {wrong} problems; all had ended after {longest:.2f} s")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    kinds = [k for k in KINDS if options.slow or k not in SLOW]
    if options.only:
        kinds = [options.only]
    with Display() if "window" in kinds else contextlib.nullcontext() as number:
        NEEDS_OF_WINDOW["DISPLAY"] = number or ""
        wrong = kill_at_random(random.Random(options.seed), kinds, options.kills, options.verbose)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
