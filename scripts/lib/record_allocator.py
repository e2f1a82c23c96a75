#!/usr/bin/env python3
"""Records what torch's CUDA caching allocator does in training steps of a small BERT and a small
GPT layer, as torch's own memory snapshots, which `temposcope replay` reads.

    record_allocator.py FOLDER SCENARIO ...

Scenarios of one process share its allocator settings (PYTORCH_CUDA_ALLOC_CONF, read once).
Prints {"FILE": {"events": N, "retries": N, "refusals": N}, ...}; ends with 1 and a sentence when a
scenario did not bring about what it is there for.
"""

import contextlib
import json
import pathlib
import pickle
import sys

import torch

MIB = 1 << 20
SEQ, HIDDEN, HEADS, VOCAB = 64, 256, 4, 2048
ROOM_BYTES = 80 * MIB  # beside what a small step keeps, in the scenario that runs out of memory


class Model(torch.nn.Module):
    """Embeddings, one layer and a head: normalization after the sublayers as in BERT, or before
    them and with a causal mask as in GPT."""

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
    """Batches whose logits (32 MiB at 64 sequences) are larger than what may be split."""
    for batch_size in (64, 96, 80, 8, 64):
        training.step(training.tokens(batch_size).to(training.device))


def side_streams(training: Training):
    """Batches come on a stream of their own, as data loaders send them, and a part of forward runs
    there: their blocks are freed when events of the other stream have passed."""
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
    """Growing batches under a limit: cached segments of smaller ones are given back and asked for
    again (retries), until that does not help; then a small batch trains on."""
    training.step(training.tokens(2).to(training.device))  # cuBLAS takes its workspaces
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


def graph_capture(training: Training):
    """A whole step in a CUDA graph, with its private pool, replayed among eager allocations."""
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
    }


def problem(scenario: str, found: dict) -> str:
    """Why a recording is not what its name says; empty: it is."""
    if not found["events"]:
        return "it has no event"
    if scenario == "out_of_memory" and not (found["retries"] and found["refusals"]):
        return f"{found['retries']} retries and {found['refusals']} refusals happened"
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
