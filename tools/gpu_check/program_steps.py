"""Trains a PyTorch program of the kind people have, and writes what it asked of the allocator.

    program_steps.py PACKAGES FOLDER PROGRAM [RECIPE]

PACKAGES is the folder of the Python package temposcope. In FOLDER it leaves torch's own memory
snapshot of the process from its first tensor on (NAME.pickle), and a trace of two later steps
(NAME.tscope). Prints the peaks, and the time of a step without a recorder. Models have random
weights.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch_memory import VOCAB, Model

STEPS, TIMED_STEPS, RECORDED_STEPS = 3, 10, 2


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # [B, S, width]
        heads = self.qkv(self.first(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Decoder(nn.Module):
    """A GPT as people write it: causal scaled_dot_product_attention, the head's weight shared."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.Sequential(*(Block(768) for _ in range(6)))
        self.norm = nn.LayerNorm(768)
        self.head = nn.Linear(768, 50257, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        logits = self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 512)
        self.layers = nn.LSTM(512, 512, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(512, 10000)

    def forward(self, tokens):
        logits = self.head(self.layers(self.words(tokens))[0])
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Classifier(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, pixels, labels):
        return F.cross_entropy(self.body(pixels), labels)


def words(batch_size, seq_len, vocabulary) -> torch.Tensor:
    return torch.randint(1, vocabulary, (batch_size, seq_len)).to("cuda")


def labelled(*names, **shape) -> dict:
    ids = words(**shape)
    return {name: ids for name in names} | {"labels": ids}


def images(batch_size, name="pixels", layout=torch.contiguous_format) -> dict:
    pixels = torch.randn(batch_size, 3, 224, 224).to("cuda").to(memory_format=layout)
    return {name: pixels, "labels": torch.randint(10, (batch_size,)).to("cuda")}


def resnet50(layout=torch.contiguous_format):
    import torchvision

    model = Classifier(torchvision.models.resnet50(num_classes=10)).to("cuda", memory_format=layout)
    return model, images(32, layout=layout)


def convnext():
    import torchvision

    return Classifier(torchvision.models.convnext_tiny(num_classes=10)), images(16)


def bert():
    from transformers import BertConfig, BertForMaskedLM

    batch = labelled("input_ids", batch_size=8, seq_len=512, vocabulary=VOCAB)
    batch["attention_mask"] = torch.ones_like(batch["labels"])
    return BertForMaskedLM(BertConfig()), batch


def bert_eager():
    model, batch = bert()
    model.set_attn_implementation("eager")
    return model, batch


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    batch = labelled("input_ids", batch_size=4, seq_len=1024, vocabulary=50257)
    return GPT2LMHeadModel(GPT2Config(use_cache=False)), batch


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
        num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    batch = labelled("input_ids", batch_size=4, seq_len=1024, vocabulary=32000)
    return LlamaForCausalLM(config), batch


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(num_labels=10)), images(16, "pixel_values")


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(use_cache=False, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config), labelled(
        "input_ids", batch_size=8, seq_len=256, vocabulary=32000
    )


def encoder():
    """Half a BERT-base."""
    return Model(layers=6, hidden=768, heads=12), {"tokens": words(8, 512, VOCAB)}


def decoder():
    return Decoder(), {"tokens": words(4, 1024, 50257)}


def lstm():
    return Recurrent(), {"tokens": words(32, 128, 10000)}


def adamw(parameters, **options):
    return torch.optim.AdamW(parameters, lr=1e-4, **options)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def fused(parameters):
    return adamw(parameters, fused=True)


# Name -> what builds model and batch, type of autocast or of the model, optimizer.
PROGRAMS = {
    "encoder": (encoder, "fp32", adamw),
    "encoder-amp": (encoder, "amp-bf16", adamw),
    "decoder-bf16": (decoder, "bf16", fused),
    "decoder-scaled": (decoder, "amp-fp16", adamw),
    "bert": (bert, "fp32", adamw),
    "bert-eager": (bert_eager, "fp32", adamw),
    "bert-amp": (bert_eager, "amp-bf16", adamw),
    "gpt2-amp": (gpt2, "amp-bf16", adamw),
    "llama-bf16": (llama, "bf16", adamw),
    "resnet50": (resnet50, "fp32", sgd),
    "resnet50-last": (lambda: resnet50(torch.channels_last), "amp-bf16", sgd),
    "vit": (vit, "fp32", adamw),
    "t5": (t5, "fp32", adamw),
    "lstm": (lstm, "fp32", adamw),
    "convnext": (convnext, "amp-bf16", adamw),
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Training:
    def __init__(self, program: str, recipe: str):
        torch.manual_seed(0)
        build, precision, optimizer = PROGRAMS[program]
        self.model, self.batch = build()
        self.model.to("cuda", DTYPES.get(precision)).train()
        if recipe:
            import temposcope

            temposcope.swap(self.model, recipe)
        self.optimizer = optimizer(self.model.parameters())
        kind = DTYPES.get(precision.removeprefix("amp-")) if precision.startswith("amp-") else None
        self.autocast = lambda: torch.autocast("cuda", kind) if kind else contextlib.nullcontext()
        self.scaler = torch.amp.GradScaler("cuda", enabled=kind == torch.float16)

    def step(self):
        with self.autocast():
            output = self.model(**self.batch)
            loss = output.loss if hasattr(output, "loss") else output
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


@contextlib.contextmanager
def turn(folder: str, alone: bool):
    """Programs that run side by side share the GPU, but each times its steps alone."""
    with open(pathlib.Path(folder) / "turns", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def timed_step(training: Training) -> float:
    start = time.perf_counter()
    training.step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def plain_steps(training: Training, snapshot: pathlib.Path) -> dict:
    """Steps from the first one on, with torch's snapshot of all that was asked of the allocator."""
    found = {
        "losses": [float(training.step()) for _ in range(STEPS)],
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }
    torch.cuda.memory._dump_snapshot(str(snapshot))
    torch.cuda.memory._record_memory_history(None)
    return found


def main():
    packages, folder, program, recipe = (*sys.argv[1:], "")[:4]
    sys.path.insert(0, packages)
    path = f"{folder}/{program}-{recipe}" if recipe else f"{folder}/{program}"
    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context=None)
    with turn(folder, alone=False):
        training = Training(program, recipe)
        found = plain_steps(training, pathlib.Path(f"{path}.pickle"))
    if "TEMPOSCOPE_VIRTUAL_GPU" not in os.environ:
        with turn(folder, alone=True):
            seconds = statistics.median(timed_step(training) for _ in range(TIMED_STEPS))
        found["step_seconds"] = seconds
    import temposcope

    with turn(folder, alone=False):
        with temposcope.record(f"{path}.tscope", training.model, training.optimizer):
            for _ in range(RECORDED_STEPS):
                training.step()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
