"""What the checks of gpu-check share: the card, programs with a time limit, and what was found."""

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import trace_checks
import worker_link
from worker_link import last_line

BUNDLE = pathlib.Path(__file__).resolve().parent  # the packed folder; tools/gpu_check before
MIB = 1 << 20
TORCH = "2.11"
VIRTUAL_GPU = "TEMPOSCOPE_VIRTUAL_GPU"  # set in a process that sees a virtual GPU
OUT_OF_MEMORY = 3  # exit code of the worker
NO_CARD = {"name": "", "compute_capability": "", "memory_gib": 0.0}


class Failed(Exception):
    """A goal is missed, or a program failed. The text is the sentence of the result."""


class Skipped(Exception):
    """The check cannot run here."""


class NotJudged(Exception):
    """The check ran, but its figures cannot be compared with a goal."""


class TimeUp(Exception):
    """The check reached its time limit."""


def torch_folder() -> pathlib.Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"gpu-check: this python3 has no torch; use a python3 with torch {TORCH}")
    return pathlib.Path(spec.submodule_search_locations[0])


def torch_version(torch: pathlib.Path) -> str:
    """The version that is installed in the folder `torch`, without importing it."""
    path = torch / "version.py"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split("'")[1] for line in lines if "__version__ =" in line), "")


def require_torch(version: str):
    """The built files need the torch with which they were built."""
    if not version.startswith(f"{TORCH}."):
        raise SystemExit(
            f"gpu-check: this python3 has torch {version or 'of an unknown version'}; use a "
            f"python3 with torch {TORCH}"
        )


def loader_environment() -> dict:
    """An environment in which the loader finds torch, its CUDA libraries and the bundle."""
    torch = torch_folder()
    nvidia = sorted(str(path) for path in (torch.parent / "nvidia").glob("*/lib"))
    folders = [str(BUNDLE), str(torch / "lib"), *nvidia, os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {
        "LD_LIBRARY_PATH": ":".join(filter(None, folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def refusal(error: Exception) -> dict:
    """The row of a step that did not run. That the GPU is too small for it is no problem."""
    if getattr(error, "exit_code", 1) == OUT_OF_MEMORY:
        return {"problems": [], "out_of_memory": str(error)}
    return {"problems": [str(error)]}


def run_program(command: list, environment: dict, timeout_s: float, text: str = ""):
    """Runs a program with all that it starts. Ends them and raises TimeUp after `timeout_s`. A
    failed program is returned too."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(text, timeout=max(0.1, timeout_s))
        except BaseException as error:  # also an interrupt: nothing may go on alone
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeUp from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


class Run:
    """One run of gpu-check.

    A check writes its figures to `detail` as it measures them, so that they are in the result also
    if the check fails or reaches its time limit. Other checks read them in `found`, where `trusted`
    is false if the check did not end well.
    """

    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path, few: bool = False):
        self.folder = folder  # its files come back
        self.scratch = scratch
        self.few = few  # a short trial: a few of each list, one round of each measurement
        self.environment = loader_environment()
        self.virtual = VIRTUAL_GPU in os.environ
        self.card = NO_CARD
        self.missing = ""  # why the GPU cannot be used
        self.found = {}  # name of an earlier check -> its detail
        self.detail = {}  # of the check that runs now
        self.end = float("inf")  # when the check that runs now must have ended

    def left_s(self) -> float:
        return self.end - time.monotonic()

    def some(self, items, few: int) -> list:
        """The items, or at most `few` of them, evenly spread, in a short trial."""
        items = list(items)
        return items[:: -(-len(items) // few)] if self.few else items

    def rounds(self, count: int) -> int:
        return 1 if self.few else count

    def side_by_side(self, measure, items, into: dict):
        """Puts what `measure` returns of each item, (name, row), into `into` as it comes. Several
        run at a time where there are processors for it: only for memory and values. What is timed
        there needs a lock of its own."""
        with ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2))) as pool:
            waiting = [pool.submit(measure, item) for item in items]
            try:
                for done in as_completed(waiting):
                    name, row = done.result()
                    into[name] = row
            finally:  # after an error the others do not begin
                for one in waiting:
                    one.cancel()

    def ask(self, timeout_s: float = 120.0, **fields) -> dict:
        """What the worker answers. Raises WorkerError, or TimeUp if it does not answer."""
        limit_s = max(0.1, min(timeout_s, self.left_s()))
        worker = str(BUNDLE / "temposcope-worker")
        try:
            return worker_link.request(worker, fields, self.environment, limit_s)
        except worker_link.WorkerTimeout as error:
            if self.left_s() <= 0:
                raise TimeUp from None
            raise Failed(str(error)) from None

    def program(self, command: list, text: str = "", **environment):
        return run_program(command, self.environment | environment, self.left_s(), text)

    def output(self, command: list, text: str = "", name: str = "", **environment) -> str:
        """What a program prints. Raises Failed with the last line of its errors."""
        done = self.program(command, text, **environment)
        if done.returncode:
            line = last_line(done.stderr, f"it ended with {done.returncode}")
            raise Failed(f"{name or pathlib.Path(command[0]).name}: {line}")
        return done.stdout

    def python(self, script: str, *arguments: str, **environment) -> str:
        """What a script of the bundle prints."""
        return self.output(
            [sys.executable, str(BUNDLE / script), *arguments], name=script, **environment
        )

    def tool_output(self, command: list) -> str:
        """What a program of the machine prints; empty if there is no such program."""
        if not shutil.which(command[0]):
            return ""
        return run_program(command, self.environment, min(20.0, self.left_s())).stdout.strip()

    def trace(self, name: str, workload: dict, kind="capture", keep=True, **fields) -> dict:
        """Runs a capture or a sweep and returns the summary of its trace. Its file comes back if
        `keep` is true."""
        path = (self.folder if keep else self.scratch) / f"{name}.tscope"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.ask(request=kind, workload=workload, device="cuda", output_path=str(path), **fields)
        return trace_checks.summary(path)

    def judge(self, wrong: list):
        """Ends the check if something is wrong."""
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise Failed(f"{wrong[0]}{more}")

    def judge_measured(self, wrong: list):
        """The same where the figures depend on computed values or on times."""
        if self.virtual:
            raise NotJudged("not judged: virtual GPU")
        self.judge(wrong)
