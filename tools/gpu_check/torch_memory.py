"""Device memory outside torch's allocator, by stage of a training step, without CUPTI.

    torch_memory.py fp32|tf32|bf16|amp-bf16|fp16

Prints {"stages": [...], "handles": {...}}. Each stage has the memory in use on the device and of
this process (NVML), free memory (cudaMemGetInfo) and the allocator's reserved bytes. A value that
is not known is null. `handles` are the cuBLAS handles of the two threads that train.
"""

import contextlib
import ctypes
import json
import sys

import nvml
import torch

LAYERS, HIDDEN, HEADS, VOCAB, BATCH, SEQ = 2, 1024, 16, 30522, 8, 512
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Model(torch.nn.Module):
    """Embedding, torch's own encoder layers and a head, of BERT-large's sizes."""

    def __init__(self, layers=LAYERS, hidden=HIDDEN, heads=HEADS):
        super().__init__()
        self.words = torch.nn.Embedding(VOCAB, hidden)
        layer = torch.nn.TransformerEncoderLayer(
            hidden, heads, 4 * hidden, activation="gelu", batch_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(hidden, VOCAB)

    def forward(self, tokens):  # [B, S] -> the loss
        logits = self.head(self.layers(self.words(tokens)))
        return torch.nn.functional.cross_entropy(logits.view(-1, VOCAB).float(), tokens.view(-1))


class Stages:
    def __init__(self):
        try:
            self.gpu = nvml.Gpu()
        except OSError:
            self.gpu = None
        self.rows = []

    def add(self, stage: str, has_context=True):
        if has_context:
            torch.cuda.synchronize()
        self.rows.append({
            "stage": stage,
            "used_bytes": self.gpu and self.gpu.used_bytes(),
            "process_bytes": self.gpu and self.gpu.process_bytes(),
            "free_bytes": torch.cuda.mem_get_info()[0] if has_context else None,
            "reserved_bytes": torch.cuda.memory_reserved() if has_context else 0,
        })


def autocast(precision: str):
    if precision != "amp-bf16":
        return contextlib.nullcontext()
    return torch.autocast("cuda", torch.bfloat16)


def train(precision: str, stages: Stages) -> dict:
    """Adds a row for each stage of two steps. Returns the cuBLAS handles by thread."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    model = Model().to("cuda", DTYPES.get(precision))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    stages.add("model")
    tokens = torch.randint(VOCAB, (BATCH, SEQ)).to("cuda")
    handles = {"forward": torch.cuda.current_blas_handle()}

    def note_handle(_):  # runs on the thread of backward
        handles["backward"] = torch.cuda.current_blas_handle()

    for step in ("first", "second"):
        with autocast(precision):
            loss = model(tokens)
        stages.add(f"{step} forward")
        loss.register_hook(note_handle)
        loss.backward()
        stages.add(f"{step} backward")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        stages.add(f"{step} optimizer")
    return handles


def main():
    stages = Stages()
    stages.add("before", has_context=False)
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    stages.add("cuInit", has_context=False)
    torch.cuda.mem_get_info()
    stages.add("context")
    torch.cuda.current_blas_handle()
    stages.add("cuBLAS handle")
    handles = train(sys.argv[1], stages)
    print(json.dumps({"stages": stages.rows, "handles": handles}))


if __name__ == "__main__":
    main()
