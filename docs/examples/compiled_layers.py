"""What torch.compile makes of the techniques that save memory, for a Transformer layer.

    python docs/examples/compiled_layers.py           what a layer keeps for backward
    python docs/examples/compiled_layers.py --time    the time of forward and backward, too

Each technique is written with PyTorch alone, run as it is and compiled. Bytes are in units of en,
one hidden state. Times are those of this processor over the time of the original layer run as it
is: the layers take turns, and each has the median of its rounds.

torch.compile decides what forward saves when it splits the graph into forward and backward (the
min-cut partitioner). Without --time that part runs alone: the code generation behind it saves the
same tensors.
"""

import math
import statistics
import sys
import time

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

BATCH, TOKENS, HIDDEN, HEADS, DROPOUT, ROUNDS = 2, 128, 256, 4, 0.1, 100


def again(function, *inputs):
    """Keeps the inputs and runs the function again in backward."""
    return checkpoint(function, *inputs, use_reentrant=False)


def dropout(x):
    """Saves a mask of one byte an element, as on CUDA; F.dropout on the CPU saves a float."""
    return torch.native_dropout(x, DROPOUT, True)[0]


def dropped_values(probs, value):
    return dropout(probs) @ value


class Layer(torch.nn.Module):
    """A post-LN encoder layer, as BERT has it, with some of IDEAS."""

    def __init__(self, ideas):
        super().__init__()
        self.ideas = ideas
        self.query, self.key, self.value, self.output = (
            torch.nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.up = torch.nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = torch.nn.Linear(4 * HIDDEN, HIDDEN)
        self.first_norm, self.second_norm = torch.nn.LayerNorm(HIDDEN), torch.nn.LayerNorm(HIDDEN)

    def core(self, query, key, value):
        scores = query @ key.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS)
        probs = torch.softmax(scores, -1)
        if "dropout" in self.ideas:
            return again(dropped_values, probs, value)
        return dropped_values(probs, value)

    def attention(self, x):
        query, key, value = (linear(x).view(BATCH, TOKENS, HEADS, -1).transpose(1, 2)
                             for linear in (self.query, self.key, self.value))
        if "flash" in self.ideas:
            context = F.scaled_dot_product_attention(query, key, value)
        elif "attention" in self.ideas:
            context = again(self.core, query, key, value)
        else:
            context = self.core(query, key, value)
        return context.transpose(1, 2).reshape(x.shape)

    def gelu(self, x):
        return again(F.gelu, x) if "gelu" in self.ideas else F.gelu(x)

    def whole(self, x):
        x = self.first_norm(x + dropout(self.output(self.attention(x))))
        return self.second_norm(x + dropout(self.down(self.gelu(self.up(x)))))

    def forward(self, x):
        return again(self.whole, x) if "layer" in self.ideas else self.whole(x)


IDEAS = {
    "original": (),
    "GELU computed again": ("gelu",),
    "attention dropout computed again": ("dropout",),
    "scores, softmax and dropout computed again": ("attention",),
    "the layer computed again": ("layer",),
    "flash attention": ("flash",),
    "flash attention, GELU computed again": ("flash", "gelu"),
}


class Case:
    """Some layers with these ideas, run as they are or by a backend of torch.compile."""

    def __init__(self, ideas, num_layers, backend=None):
        torch.manual_seed(0)
        torch.compiler.reset()
        self.layers = torch.nn.Sequential(*(Layer(ideas) for _ in range(num_layers)))
        self.x = torch.randn(BATCH, TOKENS, HIDDEN, requires_grad=True)
        self.run = torch.compile(self.layers, backend=backend) if backend else self.layers

    def saved_bytes(self):
        """Of all storages that forward saves, without parameters and the input."""
        known = {tensor.untyped_storage().data_ptr()
                 for tensor in [self.x, *self.layers.parameters()]}
        storages = {}

        def keep(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in known:
                storages[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            result = self.run(self.x)
        del result
        return sum(storages.values())

    def seconds(self):
        start = time.perf_counter()
        self.run(self.x).sum().backward()
        return time.perf_counter() - start


def bytes_of_a_layer(ideas, backend=None):
    return Case(ideas, 3, backend).saved_bytes() - Case(ideas, 2, backend).saved_bytes()


def print_bytes():
    hidden = BATCH * TOKENS * HIDDEN * 4
    print("| technique | saved a layer | saved when compiled |\n|---|---:|---:|")
    for name, ideas in IDEAS.items():
        kept = (bytes_of_a_layer(ideas), bytes_of_a_layer(ideas, "aot_eager_decomp_partition"))
        print(f"| {name} | " + " | ".join(f"{size / hidden:.2f} en" for size in kept) + " |")


def print_times():
    cases = {(name, backend): Case(ideas, 2, backend)
             for name, ideas in IDEAS.items() for backend in (None, "inductor")}
    for case in cases.values():
        case.seconds()  # compiles
    times = {key: [] for key in cases}
    for _ in range(ROUNDS):
        for key, case in cases.items():
            times[key].append(case.seconds())
    base = statistics.median(times["original", None])
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, fp32\n")
    print("| technique | time | time when compiled |\n|---|---:|---:|")
    for name in IDEAS:
        shares = (statistics.median(times[name, backend]) / base for backend in (None, "inductor"))
        print(f"| {name} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")


if __name__ == "__main__":
    print_bytes()
    if "--time" in sys.argv[1:]:
        print_times()
