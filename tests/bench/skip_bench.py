"""What the steps cost that `temposcope run --skip N` passes over: between the first step and those
that are asked for, allocations alone are recorded.

    skip_bench.py [MODEL ...] [--gpu a100-40gb] [--no-stacks] [--rounds N]

Needs build/bin/python in PYTHONPATH, and runs the models of recording_bench.py on a virtual GPU,
where a step takes the processor time of one thread. A round is a program of its own: its skipped
steps come before the step that is recorded, and the unrecorded ones after it. Of each the lower
quartile of all rounds counts, since other programs can only make a step longer.
"""

import argparse
import json
import os
import sys
import tempfile

import recording_bench
import torch
from temposcope import _watch
from temposcope._command import temposcope as command

WARM = 3  # steps before those that are timed
TIMED = {"encoder": 60}  # steps of each kind in a round
ENOUGH = 16  # of the other models
ROUNDS = 3


def measure(name: str) -> tuple[int, list[float], list[float]]:
    """Requests for memory in a step; the seconds of the skipped and of the unrecorded steps."""
    make, _ = recording_bench.MODELS[name]
    with torch.device("cuda"):
        model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> float:
        return recording_bench.processor_seconds_of_step(loss, optimizer)

    def timed() -> list[float]:
        return [step() for _ in range(WARM + timed_steps(name))][WARM:]

    step()  # is recorded as the first one
    before = _watch.num_allocations()
    skipped = timed()
    requests = (_watch.num_allocations() - before) // (WARM + len(skipped))
    step()  # is recorded
    torch.cuda.memory._record_memory_history(None)  # what `run` goes on with: see watch_bench.py
    return requests, skipped, timed()


def timed_steps(name: str) -> int:
    return TIMED.get(name, ENOUGH)


def run(name: str, rounds: int, options: list[str]) -> str:
    skip = 1 + WARM + timed_steps(name)
    all_skipped, all_plain = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "step.tscope")
            recording = ["run", *options, "--steps", 1, "--skip", skip, "-o", file, "--"]
            ran = command(*recording, sys.executable, __file__, "--here", name)
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        requests, skipped, plain = json.loads(ran.stdout.splitlines()[-1])
        all_skipped += skipped
        all_plain += plain
    skipped_s, plain_s = (sorted(kind)[len(kind) // 4] for kind in (all_skipped, all_plain))
    of_request_us = (skipped_s - plain_s) / requests * 1e6
    return (
        f"{name:9} {requests:5} requests  unrecorded {plain_s * 1e3:8.2f} ms  skipped "
        f"{skipped_s * 1e3:8.2f} ms  {skipped_s / plain_s - 1:+.1%}  {of_request_us:.2f} us a "
        "request"
    )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(recording_bench.MODELS))
    parser.add_argument("--gpu", default="a100-40gb")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-stacks", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.here:
        print(json.dumps(measure(arguments.models[0])))
        return
    options = ["--gpu", arguments.gpu, *(["--no-stacks"] if arguments.no_stacks else [])]
    for name in arguments.models:
        print(run(name, arguments.rounds, options), flush=True)


if __name__ == "__main__":
    main()
