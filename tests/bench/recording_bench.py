"""What a recording adds to the processor time of a step, on one thread.

    recording_bench.py [MODEL ...] [--rounds N] [--stacks | --cpp-stacks]

Needs build/bin/python in PYTHONPATH.

The models are `encoder` (nn.TransformerEncoder, two layers of width 256, B=4 S=64), `resnet50`
(torchvision, B=2) and `bert` (BERT-base of transformers, B=4 S=128). A round times three steps
without and three with a recording, as many as `temposcope run` records. Of each the shortest step
of all rounds counts, because other programs can only make it longer.
"""

import argparse
import tempfile
import time

import torch
from torch import nn

import temposcope


def encoder():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(4, 64, 256)
    return model, lambda: model(x).square().mean()


def resnet50():
    import torchvision

    model = torchvision.models.resnet50()
    x = torch.randn(2, 3, 224, 224)
    return model, lambda: model(x).square().mean()


def bert():
    import transformers

    model = transformers.BertForMaskedLM(transformers.BertConfig())
    ids = torch.randint(0, 30000, (4, 128))
    return model, lambda: model(input_ids=ids, labels=ids).loss


def processor_seconds_of_step(loss, optimizer) -> float:
    """A step of training on a GPU, which makes the loss by calling it."""
    torch.cuda.synchronize()
    start = time.process_time()
    loss().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    return time.process_time() - start


MODELS = {"encoder": (encoder, 40), "resnet50": (resnet50, 5), "bert": (bert, 5)}  # rounds
STEPS = 3


def measure(name: str, rounds: int | None, stacks: bool | str) -> str:
    make, enough_rounds = MODELS[name]
    model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters())

    def seconds_of_step() -> float:
        start = time.process_time()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
        return time.process_time() - start

    seconds_of_step()
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds or enough_rounds):
            plain += [seconds_of_step() for _ in range(STEPS)]
            with temposcope.record(f"{folder}/step.tscope", model, optimizer, stacks=stacks):
                recorded += [seconds_of_step() for _ in range(STEPS)]
    ratio = min(recorded) / min(plain) - 1
    return (
        f"{name:10}  plain {min(plain) * 1e3:9.2f} ms  recorded {min(recorded) * 1e3:9.2f} ms  "
        f"{ratio:+.1%}"
    )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--cpp-stacks", action="store_const", const="all", default=False)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in arguments.models:
        stacks = arguments.cpp_stacks or arguments.stacks
        print(measure(name, arguments.rounds, stacks), flush=True)


if __name__ == "__main__":
    main()
