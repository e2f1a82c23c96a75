"""What it costs to count the values that a program reads from a simulated GPU, and to compute them.

    values_bench.py [MODEL ...] [--rounds N]

Needs build/bin/python in PYTHONPATH, and runs the models of recording_bench.py, which read nothing,
and one that selects rows in each step. A round runs each way in a process of its own: `off`,
`zeros` (reads are counted), `computed`, and `recorded`: computed, after the last recorded step. A
step takes the processor time of one thread. Of each way the lower quartile of all rounds counts,
since other programs can only make a step longer.
"""

import argparse
import json
import pathlib
import sys

import recording_bench
import torch
import torch.nn as nn
from temposcope import _library

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "profiler" / "virtual_gpu"))
import virtual_machine  # noqa: E402

WAYS = ("off", "zeros", "computed", "recorded")
WARM, TIMED, ROUNDS = 3, 20, 3


def make_reader():
    """An encoder whose head runs only where the batch has a label."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = nn.ModuleDict(
        {
            "words": nn.Embedding(1000, 256),
            "layers": nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
            "head": nn.Linear(256, 1000),
        }
    )
    ids = torch.randint(0, 1000, (8, 128), device="cpu")
    labels = torch.where(torch.rand(8, 128, device="cpu") < 0.15, ids, -100)

    def loss():
        on_gpu = labels.cuda()
        kept = on_gpu != -100
        hidden = model["layers"](model["words"](ids.cuda()))[kept]
        return nn.functional.cross_entropy(model["head"](hidden), on_gpu[kept])

    return model, loss


MODELS = {name: make for name, (make, _) in recording_bench.MODELS.items()} | {
    "reader": make_reader
}


def measure(name: str, way: str) -> list[float]:
    if way != "off":
        from temposcope import _recorder

        _recorder.follow_values("zeros" if way == "zeros" else "computed", "balanced")
    with torch.device("cuda"):
        model, loss = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(WARM):
        recording_bench.processor_seconds_of_step(loss, optimizer)
    if way == "recorded":
        _recorder.rest_unless_read()
    return [recording_bench.processor_seconds_of_step(loss, optimizer) for _ in range(TIMED)]


def run(name: str, rounds: int) -> str:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    folder = _library.folder() / "virtual_gpu"
    for _ in range(rounds):
        for way in WAYS:
            words = (__file__, "--here", name, "--way", way)
            ran = virtual_machine.run(folder, virtual_machine.machine_of("a100", 1), *words)
            if ran.returncode != 0:
                sys.exit(ran.stderr)
            seconds[way] += json.loads(ran.stdout.splitlines()[-1])
    off, *others = (sorted(seconds[way])[len(seconds[way]) // 4] for way in WAYS)
    ratios = "  ".join(
        f"{way} {one / off:.2f} times" for way, one in zip(WAYS[1:], others, strict=True)
    )
    return f"{name:9} off {off * 1e3:8.2f} ms  {ratios}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--here", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, default="off", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments.here, arguments.way)))
        return
    for name in arguments.models or MODELS:
        print(run(name, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
