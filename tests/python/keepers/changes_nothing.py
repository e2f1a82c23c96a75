"""A program on a GPU asks twice in each step: it allocates what it does without questions, and a
sum of losses keeps nothing of what backward has freed."""

import gc

import torch
from asking import find_keepers
from torch import nn

MIB = 1 << 20


def blocks():
    segments = torch._C._cuda_memorySnapshot(None)["segments"]
    found = [block for segment in segments for block in segment["blocks"]]
    return [(b["address"], b["size"]) for b in found if b["state"] == "active_allocated"]


def ask(asks):
    return find_keepers(blocks()) if asks else []


def train(asks):
    gc.collect()
    torch.cuda.empty_cache()
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.cuda.memory._record_memory_history(context=None, max_entries=10**6, clear_history=True)
    total_loss = 0
    for _ in range(6):
        loss = model(torch.zeros(256, 1024, device="cuda")).square().mean()
        ask(asks)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total_loss += loss
        found = ask(asks)
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    large = [block for block in found if block.bytes >= MIB and block.verdict == "named"]
    for text in sorted(block.keepers[0].text for block in large):
        print(text)
    return [(event["action"], event["size"]) for event in events if event["action"] != "snapshot"]


train(False)  # libraries take their workspaces
print("events", "equal" if train(False) == train(True) else "different")
