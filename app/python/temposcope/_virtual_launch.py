"""In the place of torchrun's agent: starts only the ranks that stand for all of a virtual run.

torchrun, `python -m torch.distributed.run` and `accelerate launch` all call torch's elastic_launch
with what is to be started. Here it starts each chosen rank as a process alone, which meets the
others in _virtual_world.

Rank 0 comes first. A rank that it sends to or receives from is another stage of its pipeline, and
runs, too. Each stage so leads to the next one. If rank 0 has no such partner, the last rank runs.
Ranks that wait for each other's messages (profiler/capture/values/rank_messages.h) run at the same
time.
"""

import collections
import contextlib
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

from torch.distributed.rendezvous import _rendezvous_handlers
from torch.distributed.launcher import api

from ._ranks import folder_of_launch

_CARDS_OF_A_NODE = 8  # where the launcher names no number of processes
_SECONDS_TO_END = 30  # for ranks after Ctrl-C
_PAUSE_S = 0.05
_LINES_OF_FAILURE = 40

def replace_launcher(options: dict, tell: Callable[..., None]) -> None:
    """From here on torch's launcher starts representative ranks of `options["world_size"]`, and
    tells that it did, and with which exit code a rank failed."""

    def launch(elastic, *arguments):
        config = elastic._config
        # One process is torchrun's default, but not where several nodes are named.
        names_one = config.nproc_per_node > 1 or config.min_nodes > 1
        of_node = config.nproc_per_node if names_one else _CARDS_OF_A_NODE
        command = [elastic._entrypoint, *arguments]
        shown = getattr(config.logs_specs, "_local_ranks_filter", None)
        raise SystemExit(_Launch(options, of_node, tell, shown).run(command))

    def needs_launcher(_url, **_options):
        raise RuntimeError(
            "temposcope: with --world-size a launcher starts the program: put torchrun in front, "
            "as in temposcope run --gpu h100-sxm --world-size 64 -- torchrun train.py"
        )

    api.elastic_launch.__call__ = launch
    _rendezvous_handlers["env"] = needs_launcher


class _Launch:
    def __init__(
        self,
        options: dict,
        processes_of_node: int,
        tell: Callable[..., None],
        shown_local_ranks: set[int] | None = None,
    ):
        """`shown_local_ranks`: those whose output is shown (--local-ranks-filter); none: all."""
        self._options = options
        self._shown_local_ranks = shown_local_ranks
        self._tell = tell
        self._world_size: int = options["world_size"]
        self._id = secrets.token_hex(8)  # instead of that of _ranks: no port is its own
        self._of_node = min(processes_of_node, self._world_size)
        self._running: dict[int, subprocess.Popen] = {}
        self._command: list[str] = []
        self._seen: set[int] = set()  # waiting, running or ended
        self._folder = pathlib.Path(folder_of_launch(options["status"]))
        self._folder.mkdir(exist_ok=True)

    def run(self, command: list) -> int:
        """The exit code: that of the first rank that failed, else 0."""
        if not all(isinstance(word, str) for word in command):
            print(
                "temposcope: --world-size starts programs, and this launcher starts a function: "
                "put it into a script.",
                file=sys.stderr,
            )
            return 2
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        try:
            return self._run_all(command)
        except KeyboardInterrupt:  # the terminal has sent it to the ranks, too
            return self._wait_after_interrupt()
        finally:
            self._end_all()

    def _end_all(self) -> None:
        """Ranks that still run close their traces; after a time they are killed."""
        for process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + _SECONDS_TO_END
        for process in self._running.values():
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                process.kill()
                process.wait()

    def _run_all(self, command: list[str]) -> int:
        self._command = command
        waiting = collections.deque(self._first_ranks())
        self._seen.update(waiting)
        for rank in waiting:
            self._mark("planned", rank)
        exit_code = 0
        while waiting or self._running or self._add_ranks(waiting):
            while waiting and len(self._running) < (os.cpu_count() or 1):
                self._start(waiting.popleft())
            for rank in self._wanted():
                if rank in waiting:
                    waiting.remove(rank)
                self._start(rank)
            self._add_ranks(waiting)
            for code in self._ended():
                exit_code = exit_code or code
            time.sleep(_PAUSE_S)
        return exit_code

    def _start(self, rank: int) -> None:
        self._seen.add(rank)
        shown = self._shown_local_ranks
        is_shown = not shown or rank % self._of_node in shown
        with contextlib.nullcontext() if is_shown else open(self._output_of(rank), "wb") as output:
            self._running[rank] = subprocess.Popen(
                self._command, env=self._environment(rank), stdout=output, stderr=output
            )
        self._mark("started", rank)
        self._tell(state="launched")

    def _output_of(self, rank: int) -> pathlib.Path:
        """Of a rank whose output is not shown."""
        return self._folder / f"output.{rank}"

    def _show_end_of(self, rank: int) -> None:
        """The last lines of a rank that failed."""
        if not self._output_of(rank).exists():
            return
        lines = self._output_of(rank).read_text(errors="replace").splitlines(keepends=True)
        sys.stderr.writelines(lines[-_LINES_OF_FAILURE:])

    def _mark(self, what: str, rank: int) -> None:
        (self._folder / f"{what}.{rank}").touch()

    def _has(self, what: str, rank: int) -> bool:
        return (self._folder / f"{what}.{rank}").exists()

    def _is_representative(self) -> bool:
        return self._options["ranks"] == "representative"

    def _wanted(self) -> list[int]:
        """Ranks for whose messages another one waits now. They run at once, if they may run."""
        wanted = [int(mark.name.partition(".")[2]) for mark in self._folder.glob("wanted.*")]
        new = []
        for rank in wanted:
            if self._has("started", rank) or self._has("absent", rank):
                continue
            if self._is_representative() or rank in self._seen:
                new.append(rank)
            else:
                self._mark("absent", rank)
        return new

    def _add_ranks(self, waiting: collections.deque) -> bool:
        """Those that ranks have asked for, and the last one. Returns whether any was added."""
        if not self._is_representative():
            return False
        told = self._told()
        new = self._asked_for(told)
        if self._stands_alone(told):
            new.add(self._world_size - 1)
        new -= self._seen
        self._seen |= new
        waiting.extend(sorted(new))
        return bool(new)

    def _stands_alone(self, told: list[dict]) -> bool:
        """Whether rank 0 has stepped or ended without a partner."""
        entries = [entry for entry in told if entry.get("rank") == 0]
        if any(entry.get("partners") for entry in entries):
            return False
        return 0 not in self._running or any("partners" in entry for entry in entries)

    def _wait_after_interrupt(self) -> int:
        """Ranks close their traces at their end."""
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            for process in self._running.values():
                process.wait(_SECONDS_TO_END)
        return 128 + signal.SIGINT

    def _first_ranks(self) -> Iterable[int]:
        ranks = self._options["ranks"]
        if self._is_representative():
            return [0]
        return range(self._world_size) if ranks == "all" else ranks

    def _told(self) -> list[dict]:
        with open(self._options["status"], encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]

    @staticmethod
    def _asked_for(told: list[dict]) -> set[int]:
        """The ranks that those which run found to differ from them (_representatives), and their
        partners."""
        return {
            rank
            for entry in told
            for rank in (*entry.get("representatives", ()), *entry.get("partners", ()))
        }

    def _ended(self) -> list[int]:
        """The exit codes of ranks that have ended, as a shell gives them."""
        codes = []
        for rank, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[rank]
            self._mark("ended", rank)
            codes.append(code if code >= 0 else 128 - code)
            if codes[-1] != 0:
                self._tell(rank=rank, exit_code=codes[-1])
                self._show_end_of(rank)
        return codes

    def _environment(self, rank: int) -> dict[str, str]:
        node, local_rank = divmod(rank, self._of_node)
        run = self._options | {"rank": rank, "launch_id": self._id}
        return os.environ | {
            "RANK": str(rank),
            "WORLD_SIZE": str(self._world_size),
            "LOCAL_RANK": str(local_rank),
            "LOCAL_WORLD_SIZE": str(self._of_node),
            "GROUP_RANK": str(node),
            "GROUP_WORLD_SIZE": str(-(-self._world_size // self._of_node)),
            "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": str(self._world_size),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500",  # nobody opens it
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),  # as torchrun sets it
            # NCCL's monitor outlives the process group, and crashes if it asks the store while the
            # process ends.
            "TORCH_NCCL_ENABLE_MONITORING": os.environ.get("TORCH_NCCL_ENABLE_MONITORING", "0"),
            "TORCH_NCCL_DUMP_ON_TIMEOUT": os.environ.get("TORCH_NCCL_DUMP_ON_TIMEOUT", "0"),
            "TEMPOSCOPE_RUN": json.dumps(run),
        }
