"""Commands while one call of theirs fails: memory, a write, an open, a thread, a new process.

    faults_test.py [--growth FACTOR] [--only COMMAND] [--kind KIND] [--from K]

A preloaded library makes the k-th call of a kind fail, for growing k until a run has no k-th call.
However the command then ends, it ends by itself within a minute and with a documented exit code, a
failure is one sentence, nothing half-written stands under a final name, and no process is left.
FACTOR is how fast k grows after the first four calls: 2 in the suite, 1.02 for a long run by hand.
`--only worker` lets the calls of a real worker fail; each run takes seconds.
"""

import argparse
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "temposcope"
INJECTOR = pathlib.Path(os.environ["TEMPOSCOPE_FAULT_INJECTOR"])
EXAMPLES = ROOT / "assets" / "examples"
KINDS = ("alloc", "write", "open", "mmap", "fork", "thread", "rename", "sync")
EXIT_CODES = range(0, 5)  # docs/commands.md
MOST_SECONDS = 60
ENDS = {".svg": "</svg>", ".html": "</html>"}


@dataclasses.dataclass
class Command:
    name: str
    arguments: list[str]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    faulty_program: str = "temposcope"
    is_in_suite: bool = True


COMMANDS = [
    Command("info", ["info", f"{EXAMPLES}/tempo.tscope", "--ledger"]),
    Command("compare", ["compare", f"{EXAMPLES}/original.tscope", f"{EXAMPLES}/tempo.tscope"]),
    Command("export", ["export", f"{EXAMPLES}/tempo.tscope", "--to", "svg", "-o", "out.svg"]),
    Command("view", ["view", f"{EXAMPLES}/tempo.tscope", "-o", "out.html"]),
    Command(
        "capture",
        "capture --model bert-base --layers 1 --batch 1 --seq 8 -o out.tscope".split(),
        {"TEMPOSCOPE_WORKER": str(BUILD / "bin" / "tests" / "fake_worker_for_commands")},
    ),
    Command(
        "worker",
        "capture --model bert-base --layers 1 --batch 1 --seq 8 -o out.tscope".split(),
        faulty_program="temposcope-worker",
        is_in_suite=False,
    ),
]


def growing(factor: float, k: int):
    while True:
        yield k
        k = k + 1 if k < 4 else max(k + 1, int(k * factor))


def processes_of(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run_with_fault(command: Command, kind: str, k: int, folder: pathlib.Path):
    """Returns (exit code, standard error, whether the call failed, what is wrong)."""
    log = folder.parent / "fault"
    log.unlink(missing_ok=True)
    environment = os.environ | command.environment | {
        "LD_PRELOAD": str(INJECTOR),
        "TEMPOSCOPE_FAULT": f"{kind}:{k}",
        "TEMPOSCOPE_FAULT_IN": command.faulty_program,
        "TEMPOSCOPE_FAULT_LOG": str(log),
    }
    process = subprocess.Popen(
        [PROGRAM, *command.arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        error = process.communicate(timeout=MOST_SECONDS)[1]
        problem = None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        error, problem = process.communicate()[1], f"it hangs for {MOST_SECONDS} s"
    deadline = time.monotonic() + 10
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    if processes_of(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
        problem = problem or "it leaves a process"
    return process.returncode, error, log.exists(), problem


def problem_of_end(code: int, error: str, kind: str) -> str | None:
    if code not in EXIT_CODES:
        return f"it ended with {code}"
    if code == 0 or (kind == "write" and not error):
        return None  # the message itself could not be written
    said = [line for line in error.splitlines() if line.startswith("temposcope: ")]
    if len(said) != 1 or not said[0].endswith((".", "?")):
        return "a failure is not one sentence"
    return None


def problem_of_files(folder: pathlib.Path) -> str | None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        if ".unfinished-" in path.name:
            return f"{path.name} is left"
        if path.suffix in ENDS:
            if not path.read_text(errors="replace").rstrip().endswith(ENDS[path.suffix]):
                return f"{path.name} is half-written"
        elif path.suffix == ".tscope":
            opened = subprocess.run([PROGRAM, "info", path], capture_output=True, text=True)
            if opened.returncode != 0:
                return f"{path.name} does not open: {opened.stderr.strip()}"
    return None


def check(command: Command, kind: str, factor: float, first: int) -> tuple[int, list[str]]:
    """Returns how many faults there were, and what was wrong."""
    wrong = []
    for number, k in enumerate(growing(factor, first)):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "work"
            folder.mkdir()
            code, error, failed, problem = run_with_fault(command, kind, k, folder)
            problem = problem or problem_of_end(code, error, kind) or problem_of_files(folder)
        if problem is not None:
            wrong.append(f"{command.name}, {kind} {k}: {problem}: {error.strip()[-400:]}")
        if not failed:
            return number, wrong
    raise AssertionError("unreachable")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", type=float, default=2.0)
    parser.add_argument("--only", choices=[command.name for command in COMMANDS])
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--from", type=int, default=1, dest="first")
    options = parser.parse_args()
    num_faults, wrong = 0, []
    for command in COMMANDS:
        is_wanted = command.is_in_suite if options.only is None else command.name == options.only
        if not is_wanted:
            continue
        for kind in [options.kind] if options.kind else KINDS:
            faults, problems = check(command, kind, options.growth, options.first)
            print(f"{command.name}, {kind}: {faults} faults, {len(problems)} problems", flush=True)
            num_faults += faults
            wrong += problems
    print("\n".join(wrong))
    print(f"{num_faults} faults, {len(wrong)} problems")
    if num_faults == 0:
        print("no call failed: the injector does not work")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
