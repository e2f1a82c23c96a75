#!/usr/bin/env python3
"""Records torch's CUDA caching allocator in training steps of a small BERT and a small GPT layer.
The recordings are torch's own memory snapshots, which `temposcope replay` reads.

    record_allocator.py FOLDER SCENARIO ...

All scenarios of one process use the same allocator settings, because torch reads
PYTORCH_CUDA_ALLOC_CONF once. Prints {"FILE": {"events": N, "retries": N, "refusals": N,
"freed_segments": N}, ...}.
Exits with 1 and a sentence if a scenario did not cause the events that it is meant to record.
"""

import contextlib
import json
import pathlib
import pickle
import sys

import torch

MIB = 1 << 20
SEQ, HIDDEN, HEADS, VOCAB = 64, 256, 4, 2048
ROOM_BYTES = 80 * MIB  # memory beyond that of a small step, in the scenario out_of_memory
COLLECTED_BYTES = 512 * MIB  # the limit in the scenario garbage_collection


class Model(torch.nn.Module):
    """Embeddings, one layer and a head. A BERT normalizes after the sublayers; a GPT normalizes
    before them and has a causal mask."""

    def __init__(self, family: str):
        super().__init__()
        gpt = family == "gpt"
        self.words = torch.nn.Embedding(VOCAB, HIDDEN)
        self.layer = torch.nn.TransformerEncoderLayer(
            HIDDEN, HEADS, 4 * HIDDEN, activation="gelu", batch_first=True, norm_first=gpt
        )
        self.head = torch.nn.Linear(HIDDEN, VOCAB)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(SEQ) if gpt else None
        self.register_buffer("mask", mask)

    def forward(self, tokens):  # [B, S] -> the loss
        logits = self.head(self.layer(self.words(tokens), src_mask=self.mask))
        return torch.nn.functional.cross_entropy(logits.view(-1, VOCAB), tokens.view(-1))


class Training:
    def __init__(self, family: str, device, **optimizer):
        torch.manual_seed(0)
        self.device = device
        self.model = Model(family).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **optimizer)

    def tokens(self, batch_size: int):
        return torch.randint(VOCAB, (batch_size, SEQ))

    def step(self, tokens):
        loss = self.model(tokens)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss


def eager(training: Training):
    for _ in range(3):
        training.step(training.tokens(8).to(training.device))


def large_blocks(training: Training):
    """Batches whose logits (32 MiB at 64 sequences) are larger than blocks that may be split."""
    for batch_size in (64, 96, 80, 8, 64):
        training.step(training.tokens(batch_size).to(training.device))


def side_streams(training: Training):
    """A side stream copies the batches to the GPU, as a data loader does, and runs a part of
    forward. Its blocks are freed after events on the other stream have passed."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for _ in range(4):
        with torch.cuda.stream(side):
            tokens = training.tokens(8).pin_memory().to(training.device, non_blocking=True)
            weights = torch.rand(8, SEQ, HIDDEN, device=training.device)
        main.wait_stream(side)
        tokens.record_stream(main)
        weights.record_stream(main)
        scaled = training.model.words(tokens) * weights
        side.wait_stream(main)
        with torch.cuda.stream(side):
            scaled.record_stream(side)
            total = scaled.sum()
        main.wait_stream(side)
        total.record_stream(main)
        del weights, scaled
        total.backward()
        training.step(tokens)


def out_of_memory(training: Training):
    """Batches grow under a memory limit. The allocator frees cached segments and tries again
    (retries) until that does not help. Then a small batch continues."""
    training.step(training.tokens(2).to(training.device))  # cuBLAS allocates its workspaces here
    torch.cuda.empty_cache()
    total_bytes = torch.cuda.get_device_properties(training.device).total_memory
    limit_bytes = torch.cuda.memory_reserved() + ROOM_BYTES
    torch.cuda.set_per_process_memory_fraction(limit_bytes / total_bytes)
    try:
        for batch_size in (2, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128):
            training.step(training.tokens(batch_size).to(training.device))
    except torch.OutOfMemoryError:
        training.optimizer.zero_grad(set_to_none=True)
    training.step(training.tokens(2).to(training.device))
    torch.cuda.set_per_process_memory_fraction(1.0)


def garbage_collection(training: Training):
    """Batches of other sizes under a memory limit. Above half of the limit the allocator frees
    cached segments that were not used for long."""
    total_bytes = torch.cuda.get_device_properties(training.device).total_memory
    torch.cuda.set_per_process_memory_fraction(COLLECTED_BYTES / total_bytes)
    for batch_size in (8, 64, 24, 96, 8, 48, 80, 16, 64, 32, 96):
        training.step(training.tokens(batch_size).to(training.device))
    torch.cuda.set_per_process_memory_fraction(1.0)


def graph_capture(training: Training):
    """A whole step in a CUDA graph with its private pool. Its replays alternate with eager
    allocations."""
    tokens = training.tokens(8).to(training.device)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        for _ in range(3):
            training.step(tokens)
    main.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step(tokens)
    for _ in range(2):
        graph.replay()
        torch.rand(1 << 20, device=training.device).sum().item()
    del graph


SCENARIOS = {
    "eager": eager,
    "side_streams": side_streams,
    "out_of_memory": out_of_memory,
    "expandable_segments": eager,
    "max_split_size": large_blocks,
    "power2_divisions": large_blocks,
    "garbage_collection": garbage_collection,
    "graph_capture": graph_capture,
}


@contextlib.contextmanager
def recorded(path: pathlib.Path):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)
    try:
        yield
        torch.cuda.synchronize()
        path.write_bytes(pickle.dumps(torch.cuda.memory._snapshot()))
    finally:
        torch.cuda.memory._record_memory_history(None)


def counts(path: pathlib.Path, before: dict) -> dict:
    with path.open("rb") as file:
        snapshot = pickle.load(file)
    after = torch.cuda.memory_stats()
    return {
        "events": sum(len(events) for events in snapshot["device_traces"]),
        "retries": after["num_alloc_retries"] - before["num_alloc_retries"],
        "refusals": after["num_ooms"] - before["num_ooms"],
        "freed_segments": sum(
            event["action"] == "segment_free"
            for events in snapshot["device_traces"] for event in events
        ),
    }


def problem(scenario: str, found: dict) -> str:
    """A sentence if the recording lacks the events that its scenario should cause, else ""."""
    if not found["events"]:
        return "no allocator event was recorded"
    if scenario == "out_of_memory" and not (found["retries"] and found["refusals"]):
        return f"{found['retries']} retries and {found['refusals']} refusals happened"
    if scenario == "garbage_collection" and (found["retries"] or not found["freed_segments"]):
        freed = found["freed_segments"]
        return f"{found['retries']} retries happened and {freed} segments were freed"
    return ""


def record(folder: pathlib.Path, scenario: str, family: str) -> dict:
    path = folder / f"{scenario}_{family}.pickle"
    before = torch.cuda.memory_stats()
    with recorded(path):
        options = {"capturable": True} if scenario == "graph_capture" else {}
        SCENARIOS[scenario](Training(family, torch.device("cuda"), **options))
    found = counts(path, before)
    if wrong := problem(scenario, found):
        sys.exit(f"record_allocator: {path.name}: {wrong}")
    return {path.name: found}


def main():
    folder, scenarios = pathlib.Path(sys.argv[1]), sys.argv[2:]
    torch.cuda.init()
    found = {}
    for scenario in scenarios:
        for family in ("bert", "gpt"):
            found |= record(folder, scenario, family)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
