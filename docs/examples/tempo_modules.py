"""Swaps Tempo's ops into an existing PyTorch model.

    import torch, tempo_modules
    torch.ops.load_library("build/bin/libtempo_ops.so")  # and libtempo_ops_cuda.so with CUDA
    tempo_modules.swap(model)                            # in place; keeps the parameters

`swap` replaces nn.LayerNorm, nn.Dropout and GELU modules anywhere in a model, for example in a
Hugging Face BERT. It replaces nn.TransformerEncoderLayer as a whole (also inside
nn.TransformerEncoder): its attention and second linear layer then recompute their dropout in
backward. Autograd then saves:

    LayerNorm    its output and 4 bytes per row    instead of its input
    GELU         its output and 1 bit per element  instead of its input
    dropout      1 bit per element, or nothing     instead of a byte ("philox" draws it again)
    attention    probabilities and 1 bit each      instead of two [B, A, S, S] and a byte each
    MLP          GELU's output and 1 bit each      instead of two such tensors and a byte each

As a program, it swaps the ops into an encoder layer and prints the saved bytes before and after. It
does the same with a Hugging Face BERT if the package transformers is installed:
    python3 tempo_modules.py build/bin/libtempo_ops.so
"""

import itertools
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

tempo = torch.ops.tempo


def rank_of_process():
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if joined else 0


class Masks:
    """Which dropout masks a model draws: functions of (seed, rank, step, layer, site). Unless you
    give a rank, it is that of torch.distributed when a mask is drawn, so that processes drop
    different elements, also if the model is made before they join."""

    def __init__(self, seed=0, rank=None, kind="bit"):
        self.seed, self.rank, self.kind = seed, rank, kind
        self.step = 0  # set it, or add one, before each step; under torch.compile: docs/ops.md

    def key(self, layer, site=0):
        rank = rank_of_process() if self.rank is None else self.rank
        return [self.seed, rank, self.step, layer, site]


class Dropout(nn.Module):
    """Calls of one module in one step draw the same mask, unless they give other sites."""

    def __init__(self, p, masks, index):
        super().__init__()
        self.p, self.masks, self.index = p, masks, index

    def forward(self, x, site=0):
        if not self.training or self.p == 0:
            return x
        return tempo.dropout(x, self.p, self.masks.kind, self.masks.key(self.index, site))


class LayerNorm(nn.Module):
    """Shares weight and bias with the module it replaces.

    If some |weight| is small (or bias / weight is large), it saves x̂ instead of its output. This
    costs more if the next layer saves the output too, as a linear layer does. `refresh` decides;
    call it once per optimizer step. Loading a state dict calls it, too.
    """

    def __init__(self, norm):
        super().__init__()
        if len(norm.normalized_shape) != 1:
            raise ValueError(
                f"LayerNorm over {norm.normalized_shape}: only the last dimension is supported"
            )
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.refresh()

    @torch.no_grad()
    def refresh(self):
        weight = torch.ones(1) if self.weight is None else self.weight.float().abs()
        bias = 0 if self.bias is None else self.bias.float().abs()
        exact = bool(((weight >= 1 / 64) & (bias <= 16 * weight)).all())
        self.save = "output" if exact else "normalized"

    def _load_from_state_dict(self, *arguments):
        super()._load_from_state_dict(*arguments)
        self.refresh()

    def forward(self, x):
        return tempo.layer_norm(x, self.weight, self.bias, self.eps, self.save)


class Gelu(nn.Module):
    def __init__(self, tanh):
        super().__init__()
        self.tanh = tanh

    def forward(self, x):
        return tempo.gelu(x, self.tanh)


class EncoderLayer(nn.Module):
    """nn.TransformerEncoderLayer (batch first, GELU) on Tempo's ops, with its own parameters and
    the probabilities of its four dropouts. Same arguments, same function, in training too."""

    def __init__(self, layer, masks, index):
        super().__init__()
        if layer.activation is not F.gelu or not layer.self_attn.batch_first:
            raise ValueError("only batch_first=True, activation='gelu' is supported")
        if layer.linear1.bias is None:
            raise ValueError("only bias=True is supported")
        self.self_attn, self.linear1, self.linear2 = layer.self_attn, layer.linear1, layer.linear2
        self.norm1, self.norm2 = LayerNorm(layer.norm1), LayerNorm(layer.norm2)
        self.norm_first, self.masks, self.index = layer.norm_first, masks, index
        # One for each site: on the probabilities, after attention, activation and MLP.
        self.p = layer.self_attn.dropout, layer.dropout1.p, layer.dropout.p, layer.dropout2.p

    def _dropout_key(self, site):
        p = self.p[site] if self.training else 0.0
        return p, self.masks.kind, self.masks.key(self.index, site)

    def _add_dropped(self, x, branch, site):
        """x + dropout(branch)."""
        p, kind, key = self._dropout_key(site)
        return x + (tempo.dropout(branch, p, kind, key) if p > 0 else branch)

    def _add_and_normalize(self, x, branch, norm, site):
        """norm(x + dropout(branch)) in one pass."""
        return tempo.residual_layer_norm(
            branch, x, norm.weight, norm.bias, *self._dropout_key(site), norm.eps, norm.save
        )

    def _attention(self, x, src_mask, padding, is_causal):
        B, S, H = x.shape
        A, D = self.self_attn.num_heads, self.self_attn.head_dim
        projected = F.linear(x, self.self_attn.in_proj_weight, self.self_attn.in_proj_bias)
        # [3, B*A, S, D], dense: a view would keep the whole projection alive.
        q, k, v = (
            projected.view(B, S, 3, A, D).permute(2, 0, 3, 1, 4).reshape(3, B * A, S, D).unbind()
        )
        if src_mask is None or is_causal:
            scores, scale = torch.bmm(q, k.transpose(1, 2)), D**-0.5
        else:  # scale here, because attention_core would scale the mask too
            scores, scale = torch.baddbmm(src_mask, q, k.transpose(1, 2), alpha=D**-0.5), 1.0
        out = tempo.attention_core(scores, v, padding, scale, is_causal, A, *self._dropout_key(0))
        out = out.view(B, A, S, D).transpose(1, 2).reshape(B, S, H)
        return self.self_attn.out_proj(out)

    def _feed_forward(self, x):
        """linear2(dropout(gelu(linear1(x))))."""
        y = tempo.bias_gelu(F.linear(x, self.linear1.weight), self.linear1.bias)
        p, _, key = self._dropout_key(2)
        if p == 0:
            return self.linear2(y)

        def dropped_linear(y):
            return self.linear2(tempo.dropout(y, p, "philox", key))

        # GELU saves y. Without the checkpoint, linear2 would save the dropped y beside it. Backward
        # draws the mask again from the key, so no generator state has to be restored.
        return checkpoint(dropped_linear, y, use_reentrant=False, preserve_rng_state=False)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        """src is [B, S, H], src_mask [S, S] or [B*A, S, S], src_key_padding_mask [B, S]. The masks
        are bool (True hides a token) or numbers that are added to the scores. is_causal=True says
        that src_mask, if given, is the causal mask; the layer then does not read it."""
        x, src_mask = src, _additive(src_mask, src.dtype)
        padding = _additive(src_key_padding_mask, src.dtype)
        if self.norm_first:
            a = self._attention(self.norm1(x), src_mask, padding, is_causal)
            normed, x = tempo.residual_layer_norm_sum(
                a,
                x,
                self.norm2.weight,
                self.norm2.bias,
                *self._dropout_key(1),
                self.norm2.eps,
                self.norm2.save,
            )
            return self._add_dropped(x, self._feed_forward(normed), 3)
        a = self._attention(x, src_mask, padding, is_causal)
        x = self._add_and_normalize(x, a, self.norm1, 1)
        return self._add_and_normalize(x, self._feed_forward(x), self.norm2, 3)


def _additive(mask, dtype):
    """Turns a mask of torch's attention into numbers to add to scores; None stays None."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))
    return mask.to(dtype)


def _replacement(module, masks, index):
    if isinstance(module, nn.TransformerEncoderLayer):
        return EncoderLayer(module, masks, index)
    if isinstance(module, nn.LayerNorm):
        return LayerNorm(module)
    if type(module) is nn.Dropout:
        return Dropout(module.p, masks, index)
    if isinstance(module, nn.GELU):
        return Gelu(module.approximate == "tanh")
    if type(module).__name__ in ("GELUActivation", "NewGELUActivation"):  # Hugging Face's
        return Gelu(type(module).__name__ == "NewGELUActivation")
    return None


def swap(model, masks=None):
    """Replaces every supported module in `model`, in place, but not `model` itself. Returns the
    Masks; the training loop increases their `step`. An error leaves the model as it was."""
    masks = masks or Masks()
    indices = itertools.count()
    replaced = [
        (parent, name, child, _replacement(child, masks, next(indices)))
        for parent in model.modules()
        for name, child in parent.named_children()
    ]
    for parent, name, child, new in replaced:
        if new is not None:
            new.train(child.training)
            setattr(parent, name, new)
    for parent in model.modules():
        if isinstance(parent, nn.TransformerEncoder):
            parent.use_nested_tensor = False  # in inference its layers would get nested tensors
    return masks


def saved_bytes(run, model):
    """Bytes that autograd saves for backward: each storage once, without the parameters."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()  # stays alive until the sum is taken, so no storage is reused
    return sum(storages.values()), result


def _compare(name, model, run):
    """Compares `run(model)` with torch's ops and with Tempo's: saved bytes in training mode,
    gradients in eval mode."""
    model.eval()
    expected = run(model)
    weight = torch.randn(expected.shape)
    stock = torch.autograd.grad(
        (expected * weight).sum(), list(model.parameters()), allow_unused=True
    )
    model.train()
    before, _ = saved_bytes(lambda: run(model), model)
    swap(model)
    after, _ = saved_bytes(lambda: run(model), model)
    model.eval()
    actual = run(model)
    ours = torch.autograd.grad((actual * weight).sum(), list(model.parameters()), allow_unused=True)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    # Near the minimum of GELU, the derivative from the stored output is off by up to 4.8e-5.
    for a, b in zip(ours, stock):
        if b is not None:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4 * float(b.abs().max()) + 1e-6)
    print(
        f"{name}: saved for backward {before:,} B with torch's ops, {after:,} B with Tempo's "
        f"({after / before - 1:+.1%})"
    )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 tempo_modules.py build/bin/libtempo_ops.so")
    torch.ops.load_library(sys.argv[1])
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, activation="gelu", batch_first=True)
    x = torch.randn(4, 128, 256)
    _compare("nn.TransformerEncoderLayer", nn.Sequential(layer), lambda model: model(x))
    try:
        from transformers import BertConfig, BertModel
    except ImportError:
        print("Hugging Face BERT: the package transformers is not installed")
        return
    config = BertConfig(
        hidden_size=256, num_attention_heads=8, num_hidden_layers=2, intermediate_size=1024
    )
    config._attn_implementation = "eager"
    tokens = torch.randint(config.vocab_size, (4, 128))
    _compare("Hugging Face BERT", BertModel(config), lambda model: model(tokens).last_hidden_state)


if __name__ == "__main__":
    main()
