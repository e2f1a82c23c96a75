"""In the place of torchrun's agent: starts only the ranks that stand for all of a virtual run.

torchrun, `python -m torch.distributed.run` and `accelerate launch` all call torch's elastic_launch
with what is to be started. Here it starts each chosen rank as a process alone, which meets the
others in _virtual_world.
"""

import collections
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable

from torch.distributed.rendezvous import _rendezvous_handlers
from torch.distributed.launcher import api

_CARDS_OF_A_NODE = 8  # where the launcher names no number of processes
_SECONDS_TO_END = 30  # for ranks after Ctrl-C


def replace_launcher(options: dict, tell: Callable[..., None]) -> None:
    """From here on torch's launcher starts representative ranks of `options["world_size"]`, and
    tells that it did, and with which exit code a rank failed."""

    def launch(elastic, *arguments):
        config = elastic._config
        # One process is torchrun's default, but not where several nodes are named.
        names_one = config.nproc_per_node > 1 or config.min_nodes > 1
        of_node = config.nproc_per_node if names_one else _CARDS_OF_A_NODE
        raise SystemExit(_Launch(options, of_node, tell).run([elastic._entrypoint, *arguments]))

    def needs_launcher(_url, **_options):
        raise RuntimeError(
            "temposcope: with --world-size a launcher starts the program: put torchrun in front, "
            "as in temposcope run --gpu h100-sxm --world-size 64 -- torchrun train.py"
        )

    api.elastic_launch.__call__ = launch
    _rendezvous_handlers["env"] = needs_launcher


class _Launch:
    def __init__(self, options: dict, processes_of_node: int, tell: Callable[..., None]):
        self._options = options
        self._tell = tell
        self._world_size: int = options["world_size"]
        self._id = secrets.token_hex(8)  # instead of that of _ranks: no port is its own
        self._of_node = min(processes_of_node, self._world_size)
        self._running: dict[int, subprocess.Popen] = {}

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
            for process in self._running.values():
                process.terminate()

    def _run_all(self, command: list[str]) -> int:
        waiting = collections.deque(self._first_ranks())
        seen = set(waiting)
        exit_code = 0
        while waiting or self._running:
            while waiting and len(self._running) < (os.cpu_count() or 1):
                rank = waiting.popleft()
                self._running[rank] = subprocess.Popen(command, env=self._environment(rank))
                self._tell(state="launched")
            rank, code = self._wait()
            exit_code = exit_code or code
            if code != 0:
                self._tell(rank=rank, exit_code=code)
            for other in self._asked_for() if self._options["ranks"] == "representative" else ():
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return exit_code

    def _wait_after_interrupt(self) -> int:
        """Ranks close their traces at their end."""
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            for process in self._running.values():
                process.wait(_SECONDS_TO_END)
        return 128 + signal.SIGINT

    def _first_ranks(self) -> Iterable[int]:
        ranks = self._options["ranks"]
        if ranks == "representative":
            return sorted({0, self._world_size - 1})
        return range(self._world_size) if ranks == "all" else ranks

    def _asked_for(self) -> list[int]:
        """The ranks that those which ran found to differ from them: see _representatives."""
        with open(self._options["status"], encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return sorted({rank for entry in entries for rank in entry.get("representatives", ())})

    def _wait(self) -> tuple[int, int]:
        """A rank that ended, and its exit code as a shell gives it."""
        ranks = {process.pid: rank for rank, process in self._running.items()}
        while (ended := os.wait())[0] not in ranks:  # this process may have had other children
            pass
        pid, status = ended
        rank = ranks[pid]
        process = self._running.pop(rank)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        return rank, code if code >= 0 else 128 - code

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
