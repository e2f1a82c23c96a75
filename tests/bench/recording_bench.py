"""What a recording adds to the processor time of a step, on one thread.

    recording_bench.py [MODEL ...] [--rounds 7] [--stacks]      build/bin/python in PYTHONPATH

The models are `encoder` (nn.TransformerEncoder, two layers of width 256, B=4 S=64), `resnet50`
(torchvision, B=2) and `bert` (BERT-base of transformers, B=4 S=128). Each round times steps without
and with a recording; the least of each counts, because other programs can only make them longer.
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


MODELS = {"encoder": (encoder, 20), "resnet50": (resnet50, 1), "bert": (bert, 1)}


def measure(name: str, rounds: int, stacks: bool) -> str:
    make, steps = MODELS[name]
    model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters())

    def seconds_per_step() -> float:
        start = time.process_time()
        for _ in range(steps):
            loss().backward()
            optimizer.step()
            optimizer.zero_grad()
        return (time.process_time() - start) / steps

    seconds_per_step()
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            plain.append(seconds_per_step())
            with temposcope.record(f"{folder}/step.tscope", model, optimizer, stacks=stacks):
                recorded.append(seconds_per_step())
    ratio = min(recorded) / min(plain) - 1
    return (
        f"{name:10}  plain {min(plain) * 1e3:9.2f} ms  recorded {min(recorded) * 1e3:9.2f} ms  "
        f"{ratio:+.1%}"
    )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stacks", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in arguments.models:
        print(measure(name, arguments.rounds, arguments.stacks), flush=True)


if __name__ == "__main__":
    main()
