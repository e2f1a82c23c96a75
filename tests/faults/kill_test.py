"""Captures that are killed at random instants: the program, its worker, or both.

    kill_test.py [--kills N] [--seed S]

Whatever was killed: a trace under its final name opens, a partial one opens or is refused in one
sentence, and nothing runs on. N is 6 in the suite, 300 for a long run by hand.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "temposcope"
MODEL = "--model bert-base --layers 2 --hidden 64 --heads 2 --batch 1 --seq 16 --device cpu".split()
KINDS = {
    "capture": ["capture", *MODEL, "--steps", "30", "-o", "out.tscope"],
    "recipes": ["capture", *MODEL, "--recipe", "original,tempo", "--steps", "10", "-o", "out"],
    "sweep": ["sweep", *MODEL, "--memory-limit", "16MiB", "-o", "out"],
}
SECONDS_TO_END = 2
PATIENCE = 10  # a loaded machine is slow to schedule what ends


def processes_of(session: int) -> dict[int, str]:
    """The living processes of a session: {id: name}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        state, _, _, of_session = text[text.rindex(")") + 2 :].split()[:4]
        if int(of_session) == session and state != "Z":
            found[int(entry.name)] = name
    return found


def start(kind: str, folder: pathlib.Path) -> subprocess.Popen:
    return subprocess.Popen(
        [PROGRAM, *KINDS[kind]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(process: subprocess.Popen, victim: str) -> None:
    for number, name in processes_of(process.pid).items():
        is_program = number == process.pid
        if victim == "both" or is_program == (victim == "program"):
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass


def problem_of_processes(process: subprocess.Popen, victim: str) -> str | None:
    """After the program has ended, nothing of its session runs on. If only its worker was killed,
    the program itself must end."""
    try:
        process.wait(60 if victim == "worker" else PATIENCE)
    except subprocess.TimeoutExpired:
        return "the program runs on without its worker"
    deadline = time.monotonic() + SECONDS_TO_END * PATIENCE
    while processes_of(process.pid):
        if time.monotonic() > deadline:
            return f"{processes_of(process.pid)} is left"
        time.sleep(0.02)
    return None


def problem_of_files(folder: pathlib.Path) -> str | None:
    for path in sorted(folder.rglob("*.tscope*")):
        if path.suffix not in (".tscope", ".partial"):
            continue  # a log of SQLite
        opened = subprocess.run([PROGRAM, "info", path], capture_output=True, text=True)
        said = opened.stderr.strip()
        if opened.returncode == 0:
            continue
        if path.suffix == ".tscope":
            return f"{path.name} does not open: {said}"
        if opened.returncode != 1 or said.count("\n") != 0 or not said.startswith("temposcope: "):
            return f"{path.name} is not refused in one sentence: {said}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    seconds, wrong = {}, []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            if start(kind, pathlib.Path(folder)).wait() != 0:
                print(f"{kind} fails even if nothing is killed")
                return 1
            seconds[kind] = time.monotonic() - begin
    for number in range(options.kills):
        kind = chance.choice(list(KINDS))
        victim = chance.choice(["program", "worker", "both"])
        after = chance.uniform(0, seconds[kind])
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            process = start(kind, folder)
            time.sleep(after)
            kill(process, victim)
            problem = problem_of_processes(process, victim)
            for left in processes_of(process.pid):
                os.kill(left, signal.SIGKILL)
            process.wait()
            problem = problem or problem_of_files(folder)
        if problem:
            wrong.append(f"{number}: {kind}, {victim} killed after {after:.3f} s: {problem}")
            print(wrong[-1], flush=True)
    print(f"{options.kills} kills, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
