"""Commands while calls of theirs fail: memory, a read, a write, an open, a thread, a new process.

    faults_test.py [--growth FACTOR] [--only COMMAND] [--kind KIND] [--from K]

A preloaded library makes the k-th call of a kind fail, or all from the k-th on, for growing k until
a run has no k-th call. However the command then ends, it ends by itself within a minute and with a
documented exit code, and a failure is one sentence. Its inputs are as before, and so is a file that
was there under the name of the output if the command failed. If it succeeded, it said and wrote
what it says and writes without a fault. No process, no descriptor and no temporary file is left.
FACTOR is how fast k grows after the first calls: 4 in the suite, 1.02 for a long run by hand.
`--only worker` lets the calls of a real worker fail; each run takes seconds.
"""

import argparse
import dataclasses
import gzip
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
INJECTOR = BUILD / "bin" / "tests" / "temposcope_fault_injector.so"
KINDS = "alloc read write open mmap fork thread rename sync socket folder".split()
# What fails once may succeed when it is tried again; a full disk stays full.
FAIL_ON = {"write", "open", "fork", "thread"}
EXIT_CODES = {0, 1, 3}  # docs/commands.md; 2 and 4 are the user's doing
MOST_SECONDS = 60
BEFORE = b"what was there before"
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
    # A worker is killed with its program, in the middle of what it writes.
    writes_in_worker: bool = False

    @property
    def output(self) -> str | None:
        """The file that is replaced if it is there."""
        words = self.arguments.split()
        return words[-1] if words[0] in ("export", "view", "plan") else None

    @property
    def kinds(self) -> set[str]:
        """Of the calls that the command makes for certain."""
        kinds = {"alloc", "open"}
        if self.environment:
            kinds |= {"fork", "socket"}
        if self.name == "run":
            return kinds | {"fork", "folder"}
        writes = " -o " in self.arguments and not self.writes_in_worker
        return kinds | {"read"} | ({"write", "rename", "sync"} if writes else set())


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
    Command("capture", f"capture {STEP} out.tscope", FAKE_WORKER, writes_in_worker=True),
    Command(
        "sweep", f"sweep {STEP} out --memory-limit 16MiB", FAKE_WORKER, writes_in_worker=True
    ),
    Command("run", "run -o out.tscope -- true"),
    Command(
        "worker",
        f"capture {STEP} out.tscope",
        faulty_program="temposcope-worker",
        is_in_suite=False,
        writes_in_worker=True,
    ),
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
    said: str
    error: str
    has_failed: bool  # a call of the command
    problem: str | None


def run_with_fault(command: Command, words: list[str], fault: str, folder: pathlib.Path) -> End:
    log = folder / "log"
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
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, error = process.communicate(timeout=MOST_SECONDS)
        problem = None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, error = process.communicate()
        problem = f"it hangs for {MOST_SECONDS} s"
    deadline = time.monotonic() + 10
    while processes.processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    if processes.kill_session(process.pid):
        problem = problem or "it leaves a process"
    logged = log.read_text() if log.exists() else ""
    if "d" in logged:
        problem = problem or f"it leaves {logged.count('d')} open descriptors"
    return End(process.returncode, said, error, "x" in logged, problem)


def problem_of_end(end: End, kind: str) -> str | None:
    if end.code not in EXIT_CODES:
        return f"it ended with {end.code}"
    if end.code == 0 or (kind == "write" and not end.error):
        return None  # the message itself could not be written
    return None if processes.is_one_sentence(end.error) else "a failure is not one sentence"


def content_of(file: pathlib.Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


@dataclasses.dataclass
class Undisturbed:
    """What a command says and writes if nothing fails."""

    said: str
    content: bytes | None


def problem_of_success(end: End, output: pathlib.Path | None, expected: Undisturbed) -> str | None:
    if end.said != expected.said:
        return f"it succeeded, and said {end.said.strip()[-200:]!r}"
    if output is not None and content_of(output) != expected.content:
        return f"it succeeded, and {output.name} is another"
    return None


def problem_of_failure(command: Command, output: pathlib.Path, before: bytes | None) -> str | None:
    now = output.read_bytes() if output.exists() else None
    is_whole = now is not None and now.endswith(b"\n")
    if now == before or (command.name == "plan" and is_whole):  # why no row is possible
        return None
    return f"it failed, and {output.name} is not what it was"


def problem_of_files(folder: pathlib.Path, command: Command) -> str | None:
    if left := sorted(path.name for path in (folder / "tmp").iterdir()):
        return f"{left} is left in the folder for temporary files"
    for path in sorted((folder / "work").rglob("*.unfinished-*")):
        if not command.writes_in_worker:
            return f"{path.name} is left"
    return processes.problem_of_traces(PROGRAM, folder / "work")


def problem_of_run(
    command: Command, words: list[str], fault: str, is_there: bool, expected: Undisturbed
) -> tuple[str | None, End]:
    """`is_there`: whether a file lies where the output will."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in ("work", "tmp", "home"):
            (folder / name).mkdir()
        output = folder / "work" / command.output if command.output else None
        if is_there and output is not None:
            output.write_bytes(BEFORE)
        end = run_with_fault(command, words, fault, folder)
        problem = end.problem or problem_of_end(end, fault.split(":")[0])
        if end.code == 0:
            problem = problem or problem_of_success(end, output, expected)
        elif output is not None:
            problem = problem or problem_of_failure(command, output, BEFORE if is_there else None)
        return problem or problem_of_files(folder, command), end


def words_of(command: Command, inputs: dict[str, str]) -> list[str]:
    return [inputs.get(word, word) for word in command.arguments.split()]


def run_undisturbed(command: Command, inputs: dict[str, str]) -> Undisturbed:
    with tempfile.TemporaryDirectory() as name:
        environment = os.environ | command.environment | {"TMPDIR": name}
        run = subprocess.run(
            [PROGRAM, *words_of(command, inputs)],
            cwd=name,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        output = command.output and pathlib.Path(name) / command.output
        return Undisturbed(run.stdout, content_of(output) if output else None)


def check(
    command: Command,
    inputs: dict[str, str],
    expected: Undisturbed,
    kind: str,
    factor: float,
    first: int,
) -> tuple[int, list[str]]:
    """Returns how many runs had a fault, and what was wrong."""
    words = words_of(command, inputs)
    before = {name: pathlib.Path(path).read_bytes() for name, path in inputs.items()}
    num_faults, wrong = 0, []
    for k in growing(factor, first):
        for fault in [f"{kind}:{k}", f"{kind}:{k}+"] if kind in FAIL_ON else [f"{kind}:{k}"]:
            problem, end = problem_of_run(command, words, fault, k % 2 == 0, expected)
            if problem is not None:
                wrong.append(f"{command.name}, {fault}: {problem}: {end.error.strip()[-400:]}")
            if end.has_failed:
                num_faults += 1
                continue
            if before != {name: pathlib.Path(path).read_bytes() for name, path in inputs.items()}:
                wrong.append(f"{command.name}, {kind}: an input is not what it was")
            if num_faults == 0 and kind in command.kinds and first == 1:
                wrong.append(f"{command.name}, {kind}: no call failed; the injector misses them")
            return num_faults, wrong
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
        expected = run_undisturbed(command, inputs)
        for kind in [options.kind] if options.kind else KINDS:
            of_kind = check(command, inputs, expected, kind, options.growth, options.first)
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
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
