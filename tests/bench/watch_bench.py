"""What temposcope.watch adds to the processor time of a step, on one thread.

    watch_bench.py [MODEL ...] [--rounds N]

Needs build/bin/python in PYTHONPATH, and a GPU. On a virtual one kernels take no time, so that the
step is what the host does, and the share is the most that it can be on a real card:

    temposcope run --gpu h100-sxm --steps 1 --skip 0 -o unused.tscope -- python watch_bench.py

(the recorder is gone after the first step). The models are those of recording_bench.py. A round
times three steps without and three with the watch; of each the shortest step of all rounds counts.
"""

import argparse
import os
import tempfile
import time

import recording_bench
import temposcope
import torch

STEPS = 3


def measure(name: str, rounds: int | None, file: str) -> str:
    make, enough_rounds = recording_bench.MODELS[name]
    with torch.device("cuda"):
        model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters())

    def seconds_of_step() -> float:
        torch.cuda.synchronize()
        start = time.process_time()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        return time.process_time() - start

    seconds_of_step()
    plain, watched = [], []
    for _ in range(rounds or enough_rounds):
        torch.cuda.memory._record_memory_history(None)  # all that the watch does in a step
        plain += [seconds_of_step() for _ in range(STEPS)]
        temposcope.watch(file, signal=None)
        watched += [seconds_of_step() for _ in range(STEPS)]
    ratio = min(watched) / min(plain) - 1
    return (
        f"{name:10}  plain {min(plain) * 1e3:9.2f} ms  watched {min(watched) * 1e3:9.2f} ms  "
        f"{ratio:+.1%}"
    )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(recording_bench.MODELS))
    parser.add_argument("--rounds", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "watched.tscope")
        for name in arguments.models:
            print(measure(name, arguments.rounds, file), flush=True)


if __name__ == "__main__":
    main()
