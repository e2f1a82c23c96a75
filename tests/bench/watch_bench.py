"""What temposcope.watch adds to a step: to the processor time of one thread, and to the time that
the step takes on a GPU.

    watch_bench.py [MODEL ...] [--gpu a100-40gb] [--rounds N]

Needs build/bin/python in PYTHONPATH, and runs on a virtual GPU. There kernels take no time, so that
the processor time is all that a step takes: the most that the watch can be of it. On the GPU a step
takes the longer one of this time and of that of its kernels, which `temposcope run` predicts.

The models are those of recording_bench.py, and `large`, which reserves more than half of an
A100-40GB, so that its requests always have stacks. A round times each kind of step: `plain` without
the watch, `stacks` with the Python stack of each request, as the first steps have them, and `watch`
as the steps after the first ones are. Of each the lower quartile counts, since other programs can
only make a step longer. `watch` has one step of 64 with stacks counted in, and the thread that
looks for growth: as the share of its processor time in the time that passed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import recording_bench
import temposcope
import torch
from temposcope import _stack_switch, _watch
from temposcope._command import temposcope as command
from torch import nn

TIMED = 8  # steps of each kind in a round
FLUSH = 8  # steps until the ring holds no stacks of the steps before
GPU = "a100-40gb"


def large():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(30522, 768), encoder)
    tokens = torch.zeros(96, 512, dtype=torch.long)

    def loss():
        with torch.autocast("cuda", torch.bfloat16):
            return model(tokens).square().mean()

    return model, loss


MODELS = recording_bench.MODELS | {"large": (large, 5)}
ROUNDS = 12


class Watched(NamedTuple):
    """Processor time of the kinds of step, in seconds."""

    requests: int  # for memory, in a step
    plain: float
    stacks: float
    watch: float


def measure(name: str, rounds: int) -> Watched:
    """In this process, which has a GPU."""
    make, _ = MODELS[name]
    with torch.device("cuda"):
        model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> float:
        torch.cuda.synchronize()
        start = time.process_time() - seconds_of_watch()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        return time.process_time() - seconds_of_watch() - start

    for _ in range(2):
        step()
    before = _watch.num_allocations()
    step()
    requests = _watch.num_allocations() - before
    plain, stacks, watch, looks = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            torch.cuda.memory._record_memory_history(None)  # ends the watch
            plain += [step() for _ in range(TIMED)]
            temposcope.watch(os.path.join(folder, "watched.tscope"), signal=None)
            stacks += [step() for _ in range(FLUSH + TIMED)][FLUSH:]
            for _ in range(_stack_switch.STEPS_AFTER_GROWTH + FLUSH):
                step()
            began, looked = time.monotonic(), seconds_of_watch()
            watch += [step() for _ in range(TIMED)]
            looks.append((seconds_of_watch() - looked) / (time.monotonic() - began))
    plain_s, stacks_s, quiet_s = (sorted(kind)[len(kind) // 4] for kind in (plain, stacks, watch))
    sample = 1 / _stack_switch.STEPS_PER_SAMPLE
    watch_s = (1 - sample) * quiet_s + sample * stacks_s + statistics.mean(looks) * plain_s
    return Watched(requests, plain_s, stacks_s, watch_s)


def seconds_of_watch() -> float:
    """The processor time of its thread, if it has one."""
    names = {thread.name: thread.ident for thread in threading.enumerate()}
    thread = names.get(_stack_switch.THREAD)
    return 0 if thread is None else time.clock_gettime(time.pthread_getcpuclockid(thread))


def report(name: str, watched: Watched, gpu_s: float) -> str:
    def added(seconds: float) -> str:
        of_request = (seconds - watched.plain) / watched.requests
        on_gpu = max(seconds, gpu_s) / max(watched.plain, gpu_s) - 1
        return f"{seconds / watched.plain - 1:+6.1%} {of_request * 1e6:+5.2f} us {on_gpu:+6.1%}"

    return (
        f"{name:9} {watched.requests:6} {watched.plain * 1e3:9.2f} ms {gpu_s * 1e3:9.2f} ms"
        f" | {added(watched.stacks)} | {added(watched.watch)}"
    )


def run(name: str, gpu: str, rounds: int) -> str:
    """Measures in a program on the virtual GPU, whose recorder is gone after the first step."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "first.tscope")
        recording = ["run", "--gpu", gpu, "--steps", 1, "--skip", 0, "-o", file, "--"]
        here = [sys.executable, __file__, "--here", name, "--rounds", rounds]
        ran = command(*recording, *here)
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        watched = Watched(*json.loads(ran.stdout.splitlines()[-1]))
        info = json.loads(command("info", file, "--json").stdout)
    return report(name, watched, info["step_time_ns"] * 1e-9)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--gpu", default=GPU)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.here:
        print(json.dumps(measure(arguments.models[0], arguments.rounds)))
        return
    kinds = "".join(f" | {kind:>6}   a request  of GPU" for kind in ("stacks", "watch"))
    print(f"{'':9} requests  processor  {arguments.gpu:>12}{kinds}")
    for name in arguments.models:
        print(run(name, arguments.gpu, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
