"""Memory of a GPU runs out: asked in torch's observer, on the thread that wanted memory, before the
error is raised. In backward that is a thread of autograd's, which runs no line of the program."""

import threading

import torch
from asking import find_keepers, text_of
from torch import nn

from temposcope._keepers import lines_of_threads

GIB = 1 << 30


def on_out_of_memory(_device, _rounded, _total, _free):
    with lock:
        for line in lines_of_threads():
            if line.thread == "main thread" and line.function == "train_step":
                print(f"asked at {line.function}():{line.line}")
        segments = torch._C._cuda_memorySnapshot(None)["segments"]
        blocks = [block for segment in segments for block in segment["blocks"]]
        large = [b for b in blocks if b["state"] == "active_allocated" and b["size"] >= GIB]
        found = find_keepers([(block["address"], block["size"]) for block in large])
        # Which line another thread runs just then is left to chance.
        print(*sorted(text_of(block).partition(" at ")[0] for block in found), sep="\n")


def train_step(batch):
    tokens = torch.zeros(batch, 1024, dtype=torch.long, device="cuda")
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()


def work(num_gib):
    mine = torch.zeros(num_gib * GIB, dtype=torch.uint8, device="cuda")
    all_have_memory.wait()
    try:
        torch.zeros(1 << 40, device="cuda")
    except torch.OutOfMemoryError:
        done.append(mine.numel() // GIB)
    all_have_memory.wait()


lock, all_have_memory = threading.Lock(), threading.Barrier(2)
torch._C._cuda_attach_out_of_memory_observer(on_out_of_memory)
model = nn.Sequential(nn.Embedding(50000, 512), nn.Linear(512, 50000)).cuda()
try:
    train_step(64)
except torch.OutOfMemoryError as error:
    print(type(error).__name__)
done = []
threads = [threading.Thread(target=work, args=(i,), name=f"worker-{i}") for i in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", sorted(done))
