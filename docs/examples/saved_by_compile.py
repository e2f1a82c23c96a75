"""What a Transformer layer saves for backward, run by PyTorch and compiled by torch.compile.

    python docs/examples/saved_by_compile.py

torch.compile decides what forward saves when it splits the graph into forward and backward
(the min-cut partitioner). The backend below runs that part and leaves out the code generation,
which saves the same tensors.
"""

import math

import torch
from torch.nn import functional as F

BATCH, TOKENS, HIDDEN, HEADS, DROPOUT = 2, 128, 256, 4, 0.1


def dropout(x):
    """Saves a mask of one byte an element, as on CUDA; F.dropout on the CPU saves a float."""
    return torch.native_dropout(x, DROPOUT, True)[0]


class Layer(torch.nn.Module):
    """A post-LN encoder layer, as BERT has it."""

    def __init__(self, flash):
        super().__init__()
        self.flash = flash
        self.query, self.key, self.value, self.output = (
            torch.nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.up = torch.nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = torch.nn.Linear(4 * HIDDEN, HIDDEN)
        self.first_norm, self.second_norm = torch.nn.LayerNorm(HIDDEN), torch.nn.LayerNorm(HIDDEN)

    def attention(self, x):
        query, key, value = (linear(x).view(BATCH, TOKENS, HEADS, -1).transpose(1, 2)
                             for linear in (self.query, self.key, self.value))
        if self.flash:
            context = F.scaled_dot_product_attention(query, key, value)
        else:
            scores = query @ key.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS)
            context = dropout(torch.softmax(scores, -1)) @ value
        return context.transpose(1, 2).reshape(x.shape)

    def forward(self, x):
        x = self.first_norm(x + dropout(self.output(self.attention(x))))
        return self.second_norm(x + dropout(self.down(F.gelu(self.up(x)))))


def saved_bytes(module, num_layers, flash):
    """Bytes of all storages that forward saves, without parameters and the input."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(Layer(flash) for _ in range(num_layers)))
    x = torch.randn(BATCH, TOKENS, HIDDEN, requires_grad=True)
    known = {tensor.untyped_storage().data_ptr() for tensor in [x, *layers.parameters()]}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = module(layers)(x)
    del result
    return sum(storages.values())


def compiled(layers):
    torch.compiler.reset()
    return torch.compile(layers, backend="aot_eager_decomp_partition")


def main():
    hidden = BATCH * TOKENS * HIDDEN * 4  # one hidden state, en bytes
    for flash in (False, True):
        by_layer = {}
        for name, module in (("PyTorch", lambda layers: layers), ("torch.compile", compiled)):
            by_layer[name] = saved_bytes(module, 3, flash) - saved_bytes(module, 2, flash)
        print(f"{'flash' if flash else 'eager'} attention, T = 2n, fp32: " + ", ".join(
            f"{name} saves {size:,} B a layer ({size / hidden:.2f} en)"
            for name, size in by_layer.items()))


if __name__ == "__main__":
    main()
