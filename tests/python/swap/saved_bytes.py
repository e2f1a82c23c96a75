"""Counts what autograd saves, independently of temposcope."""

import torch


def saved_bytes(model, run) -> int:
    """Bytes of the storages that autograd saves in `run()`, each once, without parameters and
    buffers. `run` returns its output, which keeps them alive until they are counted."""
    own = [*model.parameters(), *model.buffers()]
    own = {one.untyped_storage().data_ptr() for one in own}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # an output that its own node keeps would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = run()
    total = sum(storages.values())
    del output
    return total
