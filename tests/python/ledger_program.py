"""Records a step of each family into FOLDER/FAMILY.tscope, and counts by other means what the trace
should say. Prints one JSON object per family.

    ledger_program.py cpu|cuda FOLDER FAMILY...
"""

import gc
import json
import sys

import torch

import families
import temposcope


def count_saved_bytes(model, batch, device) -> int:
    """Bytes of the storages that autograd saves in a forward, without the step's own data: counted
    by Python's saved-tensor hooks."""
    own = [*model.parameters(), *model.buffers(), *batch.values()]
    left_out = {tensor.untyped_storage().data_ptr() for tensor in own}
    sizes = {}
    held = []  # so that no address is used twice

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.device.type == device and storage.data_ptr() not in left_out:
            sizes[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        families.loss_of(model, batch).backward()
    return sum(sizes.values())


def gradients_of(model) -> list:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def run(family: str, device: str, folder: str) -> dict:
    model, batch = families.build(family, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def forward_and_backward():
        torch.manual_seed(1)
        families.loss_of(model, batch).backward()

    forward_and_backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.manual_seed(1)
    # A checkpoint has hooks of its own inside of these, so that only its inputs are counted.
    expected = count_saved_bytes(model, batch, device)
    optimizer.zero_grad()
    forward_and_backward()
    plain = gradients_of(model)
    optimizer.zero_grad()
    gc.collect()

    result = {"family": family, "saved_bytes": expected}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with temposcope.record(f"{folder}/{family}.tscope", model, optimizer) as recording:
        forward_and_backward()
        optimizer.step()
        result["steps"] = recording.recorded_steps
    if device == "cuda":
        result["peak_bytes"] = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    recorded = gradients_of(model)
    result["gradients"] = len(recorded)
    result["gradients_equal"] = len(plain) == len(recorded) and all(
        torch.equal(a, b) for a, b in zip(plain, recorded)
    )
    return result


if __name__ == "__main__":
    device, folder, *names = sys.argv[1:]
    torch.set_num_threads(1)
    for name in names:
        print(json.dumps(run(name, device, folder)), flush=True)
