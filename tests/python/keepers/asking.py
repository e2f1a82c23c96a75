"""What the programs of this folder share. Each of them notes blocks of memory, asks what keeps them
alive, and begins with what it shall print."""

import functools

import torch

from temposcope import _keepers
from temposcope._keepers import BlockKeepers

__all__ = ["find_keepers", "note", "note_outputs", "noted", "say", "text_of"]

# Machines that test are busy: what is found shall not depend on the time.
find_keepers = functools.partial(_keepers.find_keepers, budget_s=20)
noted: list[tuple[int, int]] = []  # blocks: (address, bytes)
_VERDICTS = {
    "cpp_only": "only C++",
    "not_found_in_time": "not found in time",
    "failed": "failed",
}


def note(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    noted.append((storage.data_ptr(), storage.nbytes()))
    return tensor


def note_outputs(module: torch.nn.Module) -> None:
    def hook(_module, _inputs, output):
        note(output)

    module.register_forward_hook(hook)


def text_of(block: BlockKeepers) -> str:
    more = f" (+{block.num_more})" if block.num_more else ""
    texts = "; ".join(keeper.text for keeper in block.keepers)
    return texts + more if texts else f"{_VERDICTS[block.verdict]}{block.failure}"


def say(found: list[BlockKeepers]) -> None:
    """One line for each block that was noted since the last time."""
    for block in found:
        print(text_of(block))
    noted.clear()
