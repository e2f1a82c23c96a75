"""Trains batches of 1, 2, 4, ... under a limit of torch's allocator until one runs out of memory.

    torch_limit.py BYTES FILE

Writes torch's memory snapshot of the step that fails to FILE, for `temposcope replay`. Prints
{"fits": batch, "fails": batch}.
"""

import json
import pathlib
import pickle
import sys

import torch
from torch_memory import SEQ, VOCAB, Model

MOST = 4096  # batches


def train(batch_size: int, model, optimizer):
    tokens = torch.randint(VOCAB, (batch_size, SEQ)).to("cuda")
    model(tokens).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def fits(batch_size: int, model, optimizer) -> bool:
    """Whether one step runs. Only its actions are in the allocator's history."""
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)
    try:
        train(batch_size, model, optimizer)
    except torch.OutOfMemoryError:
        return False
    return True


def main():
    limit_bytes, path = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    total_bytes = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((limit_bytes + 0.5) / total_bytes)
    model = Model().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch_size = 1
    while fits(batch_size, model, optimizer):
        batch_size *= 2
        if batch_size > MOST:
            sys.exit(f"torch_limit: no batch up to {MOST} runs out of memory")
    torch.cuda.synchronize()
    path.write_bytes(pickle.dumps(torch.cuda.memory._snapshot()))
    print(json.dumps({"fits": batch_size // 2, "fails": batch_size}))


if __name__ == "__main__":
    main()
