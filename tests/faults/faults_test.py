"""Commands while calls of theirs fail: memory, a read, a write, an open, a thread, a new process.

    faults_test.py [--growth FACTOR] [--only COMMAND] [--kind KIND] [--from K]

A preloaded library makes the k-th call of a kind fail, or all from the k-th on, for growing k until
a run has no k-th call. However the command then ends, it ends by itself within a minute and with a
documented exit code, a failure is one sentence, nothing half-written stands under a final name, and
no process, no descriptor and no temporary file is left. FACTOR is how fast k grows after the first
calls: 4 in the suite, 1.02 for a long run by hand. `--only worker` lets the calls of a real worker
fail; each run takes seconds.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import processes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "temposcope"
INJECTOR = pathlib.Path(os.environ["TEMPOSCOPE_FAULT_INJECTOR"])
KINDS = "alloc read write open mmap fork thread rename sync socket folder".split()
# What fails once may succeed when it is tried again; a full disk stays full.
FAIL_ON = {"write", "open", "fork", "thread"}
EXIT_CODES = range(0, 5)  # docs/commands.md
MOST_SECONDS = 60
ENDS = {".svg": "</svg>", ".html": "</html>", ".json": "}", ".pickle": "."}
FAKE_WORKER = {"TEMPOSCOPE_WORKER": str(BUILD / "bin" / "tests" / "fake_worker_for_commands")}
STEP = "--model bert-base --layers 1 --batch 1 --seq 8 -o"


@dataclasses.dataclass
class Command:
    """`arguments` is a text; A and B in it stand for two traces, SNAPSHOT and PROFILE for what is
    exported from one."""

    name: str
    arguments: str
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    faulty_program: str = "temposcope"
    is_in_suite: bool = True


COMMANDS = [
    Command("info", "info A --ledger"),
    Command("compare", "compare A B"),
    Command("replay", "replay SNAPSHOT"),
    Command("svg", "export A --to svg -o out.svg"),
    Command("csv", "export A --to csv -o out.csv"),
    Command("snapshot", "export A --to snapshot -o out.pickle"),
    Command("chrome", "export A --to chrome -o out.json"),
    Command("hta", "export A --to hta -o out.raw.json.gz"),
    Command("import", "import SNAPSHOT PROFILE -o out.tscope"),
    Command("view", "view A -o out.html"),
    Command("plan", "plan --model bert-base --gpu t4 --seq 128 -o out.csv", FAKE_WORKER),
    Command("capture", f"capture {STEP} out.tscope", FAKE_WORKER),
    Command("sweep", f"sweep {STEP} out --memory-limit 16MiB", FAKE_WORKER),
    Command("run", "run -o out.tscope -- true"),
    Command("worker", f"capture {STEP} out.tscope", {}, "temposcope-worker", is_in_suite=False),
]


def inputs_of_commands(folder: pathlib.Path) -> dict[str, str]:
    """The files that the words of `Command.arguments` stand for."""
    words = [PROGRAM, *f"capture {STEP} {folder} --recipe original,tempo".split()]
    subprocess.run(words, check=True, capture_output=True, env=os.environ | FAKE_WORKER)
    inputs = {
        "A": str(folder / "tempo.tscope"),
        "B": str(folder / "original.tscope"),
        "SNAPSHOT": str(folder / "a.pickle"),
        "PROFILE": str(folder / "a.json"),
    }
    for format, name in ("snapshot", "SNAPSHOT"), ("chrome", "PROFILE"):
        words = [PROGRAM, "export", inputs["A"], "--to", format, "-o", inputs[name]]
        subprocess.run(words, check=True, capture_output=True)
    return inputs


def growing(factor: float, k: int):
    while True:
        yield k
        k = k + 1 if k < 3 else max(k + 1, int(k * factor))


@dataclasses.dataclass
class End:
    code: int
    error: str
    has_failed: bool  # a call of the command
    problem: str | None


def run_with_fault(command: Command, words: list[str], fault: str, folder: pathlib.Path) -> End:
    log = folder / "log"
    for name in ("work", "tmp", "home"):
        (folder / name).mkdir()
    environment = os.environ | command.environment | {
        "LD_PRELOAD": str(INJECTOR),
        "TEMPOSCOPE_FAULT": fault,
        "TEMPOSCOPE_FAULT_IN": command.faulty_program,
        "TEMPOSCOPE_FAULT_LOG": str(log),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home"),
    }  # fmt: skip
    process = subprocess.Popen(
        [PROGRAM, *words],
        cwd=folder / "work",
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
    while processes.processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    for left in processes.processes_of(process.pid):
        os.kill(left, signal.SIGKILL)
        problem = problem or "it leaves a process"
    logged = log.read_text() if log.exists() else ""
    if "d" in logged:
        problem = problem or f"it leaves {logged.count('d')} open descriptors"
    return End(process.returncode, error, "x" in logged, problem)


def problem_of_end(end: End, kind: str) -> str | None:
    if end.code not in EXIT_CODES:
        return f"it ended with {end.code}"
    if end.code == 0 or (kind == "write" and not end.error):
        return None  # the message itself could not be written
    return None if processes.is_one_sentence(end.error) else "a failure is not one sentence"


def problem_of_files(folder: pathlib.Path, command: Command) -> str | None:
    if left := sorted(path.name for path in (folder / "tmp").iterdir()):
        return f"{left} is left in the folder for temporary files"
    for path in sorted((folder / "work").rglob("*")):
        # A worker is killed with its program, in the middle of what it writes.
        if ".unfinished-" in path.name and not command.environment:
            return f"{path.name} is left"
        end = ENDS.get(path.suffix)
        if end and not path.read_text(errors="replace").rstrip().endswith(end):
            return f"{path.name} is half-written"
    return processes.problem_of_traces(PROGRAM, folder / "work")


def check(
    command: Command, inputs: dict[str, str], kind: str, factor: float, first: int
) -> tuple[int, list[str]]:
    """Returns how many runs had a fault, and what was wrong."""
    words = [inputs.get(word, word) for word in command.arguments.split()]
    num_faults, wrong = 0, []
    for k in growing(factor, first):
        for fault in [f"{kind}:{k}", f"{kind}:{k}+"] if kind in FAIL_ON else [f"{kind}:{k}"]:
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                end = run_with_fault(command, words, fault, folder)
                problem = end.problem or problem_of_end(end, kind)
                problem = problem or problem_of_files(folder, command)
            if problem is not None:
                wrong.append(f"{command.name}, {fault}: {problem}: {end.error.strip()[-400:]}")
            if not end.has_failed:
                return num_faults, wrong
            num_faults += 1
    raise AssertionError("unreachable")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", type=float, default=4.0)
    parser.add_argument("--only", choices=[command.name for command in COMMANDS])
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--from", type=int, default=1, dest="first")
    options = parser.parse_args()
    num_faults, wrong = 0, []
    folder = pathlib.Path(tempfile.mkdtemp())
    inputs = inputs_of_commands(folder)
    for command in COMMANDS:
        is_wanted = command.is_in_suite if options.only is None else command.name == options.only
        if not is_wanted:
            continue
        begin = time.monotonic()
        faults, problems = 0, []
        for kind in [options.kind] if options.kind else KINDS:
            of_kind = check(command, inputs, kind, options.growth, options.first)
            faults += of_kind[0]
            problems += of_kind[1]
        seconds = time.monotonic() - begin
        said = f"{command.name}: {faults} faults, {len(problems)} problems, {seconds:.0f} s"
        print(said, flush=True)
        num_faults += faults
        wrong += problems
    shutil.rmtree(folder)
    print("\n".join(wrong))
    print(f"{num_faults} faults, {len(wrong)} problems")
    if num_faults == 0:
        print("no call failed: the injector does not work")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
