"""A layer of the built-in models as a module of torch, with the tensors and names of modules that
models/layers has. A workload's fields are attributes here.
"""

import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from ._attention import BACKENDS, pinned
from ._swapped_modules import checkpointed, draw_key


class LayerNames(NamedTuple):
    """Hugging Face's module names in a model of one family."""

    word_embeddings: str
    layers: str
    attention: str
    attention_output: str
    attention_dropout: str
    attention_norm: str
    up: str
    activation: str
    down: str
    output_dropout: str
    output_norm: str


LAYER_NAMES = {
    "bert": LayerNames(
        word_embeddings="embeddings.word_embeddings",
        layers="encoder.layer",
        attention="attention.self",
        attention_output="attention.output.dense",
        attention_dropout="attention.output.dropout",
        attention_norm="attention.output.LayerNorm",
        up="intermediate.dense",
        activation="intermediate.intermediate_act_fn",
        down="output.dense",
        output_dropout="output.dropout",
        output_norm="output.LayerNorm",
    ),
    "gpt2": LayerNames(
        word_embeddings="wte",
        layers="h",
        attention="attn",
        attention_output="attn.c_proj",
        attention_dropout="attn.resid_dropout",
        attention_norm="ln_1",
        up="mlp.c_fc",
        activation="mlp.act",
        down="mlp.c_proj",
        output_dropout="mlp.dropout",
        output_norm="ln_2",
    ),
}


def add_at(model: nn.Module, path: str, module: nn.Module) -> nn.Module:
    """Adds a module under a path, with plain modules on the way."""
    *parents, name = path.split(".")
    for parent in parents:
        if not hasattr(model, parent):
            model.add_module(parent, nn.Module())
        model = getattr(model, parent)
    model.add_module(name, module)
    return module


def layer_norm(model) -> nn.LayerNorm:
    return nn.LayerNorm(model.hidden_size, model.layer_norm_eps)


def gelu(model) -> nn.GELU:
    return nn.GELU("tanh" if model.family == "gpt2" else "none")


def add_residual(branch: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """In place on `branch`, unless autocast made their types differ."""
    return branch.add_(x) if branch.dtype == x.dtype else branch + x


class Attention(nn.Module):
    """Multi-head self-attention from the layer's input to its context, as the recipe says."""

    def __init__(self, workload, switches: dict[str, str]):
        super().__init__()
        model = workload.model
        self.head_dim = model.hidden_size // model.num_heads
        self.is_causal = model.family == "gpt2"
        self.variant, self.masks = switches["attention"], switches["masks"]
        self.is_checkpointed = switches["checkpoint"] == "attention_core"
        self.projections = []
        for group in _projection_groups(model.family, switches["qkv"]):
            is_c_attn = self.is_causal and len(group) == 3
            self.projections.append("c_attn" if is_c_attn else "_".join(group))
            width = len(group) * model.hidden_size
            add_at(self, self.projections[-1], nn.Linear(model.hidden_size, width))
        self.dropout = nn.Dropout(model.attention_dropout_p)

    def forward(self, x, additive_mask=None, causal_mask=None):
        heads = self._project(x)  # stay until the context is there
        if self.variant in BACKENDS:
            return self._fused(*heads, additive_mask)
        dense = [head.contiguous().flatten(0, 1) for head in heads]  # [B*A, S, D]
        core = self._eager if self.variant == "eager" else self._recompute_dropout
        arguments = (*dense, x.size(0), additive_mask, causal_mask)
        del dense
        if self.is_checkpointed:
            return checkpointed(core, *arguments)
        return core(*arguments)

    def _project(self, x) -> list[torch.Tensor]:
        """Query, key and value as views [B, A, S, D]. A rank of tensor parallelism has its share of
        the heads."""
        parts = []
        for name in self.projections:
            num_parts = 3 if name == "c_attn" else name.count("_") + 1
            parts += self.get_submodule(name)(x).chunk(num_parts, dim=-1)
        return [part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in parts]

    def _eager(self, query, key, value, batch_size, additive_mask, causal_mask):
        scores = torch.bmm(query, key.transpose(1, 2))  # [B*A, S, S]
        scores.mul_(1 / math.sqrt(self.head_dim))
        if additive_mask is not None:
            # _unsafe_view, as the built-in layer: an in-place sum on an ordinary view costs copies.
            by_head = (batch_size, -1, *scores.shape[1:])
            shape = scores.shape
            scores = torch.ops.aten._unsafe_view(scores, by_head)
            scores.add_(additive_mask[:, None, None, :])
            scores = torch.ops.aten._unsafe_view(scores, shape)
        if causal_mask is not None:
            scores.add_(causal_mask)
        probs = torch.softmax(scores, -1)
        del scores
        return _merge(torch.bmm(self.dropout(probs), value), batch_size)

    def _recompute_dropout(self, query, key, value, batch_size, additive_mask, _causal_mask):
        p = self.dropout.p
        scores = torch.bmm(query, key.transpose(1, 2))  # [B*A, S, S]
        context = torch.ops.tempo.attention_core(
            scores,
            value,
            additive_mask,
            1 / math.sqrt(self.head_dim),
            self.is_causal,
            scores.size(0) // batch_size,
            p,
            self.masks,
            draw_key() if p > 0 else [0] * 5,
            True,
        )
        return _merge(context, batch_size)

    def _fused(self, query, key, value, additive_mask):
        mask = None if additive_mask is None else additive_mask[:, None, None, :]
        if mask is not None:
            mask = mask.to(query.dtype).expand(-1, query.size(1), query.size(2), -1)
        with pinned(self.variant):
            context = F.scaled_dot_product_attention(
                query, key, value, mask, self.dropout.p, self.is_causal
            )
        return context.transpose(1, 2).flatten(2)


def _projection_groups(family: str, qkv: str) -> list[tuple[str, ...]]:
    """Query, key and value in groups: the projections of a group are one product."""
    if qkv == "model":
        qkv = "fused" if family == "gpt2" else "separate"
    return {
        "separate": [("query",), ("key",), ("value",)],
        "query_key": [("query", "key"), ("value",)],
        "key_value": [("query",), ("key", "value")],
        "fused": [("query", "key", "value")],
    }[qkv]


def _merge(context: torch.Tensor, batch_size: int) -> torch.Tensor:
    """[B*A, S, D] -> [B, S, H]."""
    return context.unflatten(0, (batch_size, -1)).transpose(1, 2).flatten(2)


class Layer(nn.Module):
    """An encoder layer (BERT: post-LN) or a decoder block (GPT-2: pre-LN)."""

    def __init__(self, workload, switches: dict[str, str]):
        super().__init__()
        model = workload.model
        self.names = names = LAYER_NAMES[model.family]
        self.is_pre_norm = model.family == "gpt2"
        self.recomputes_gelu = switches["gelu"] == "recompute"
        hidden, inner = model.hidden_size, model.intermediate_size
        add_at(self, names.attention, Attention(workload, switches))
        add_at(self, names.attention_output, nn.Linear(hidden, hidden))
        add_at(self, names.attention_dropout, nn.Dropout(model.hidden_dropout_p))
        add_at(self, names.attention_norm, layer_norm(model))
        add_at(self, names.up, nn.Linear(hidden, inner))
        add_at(self, names.activation, gelu(model))
        add_at(self, names.down, nn.Linear(inner, hidden))
        add_at(self, names.output_dropout, nn.Dropout(model.hidden_dropout_p))
        add_at(self, names.output_norm, layer_norm(model))

    def forward(self, x, additive_mask=None, causal_mask=None):
        part = self.get_submodule
        names = self.names
        masks = additive_mask, causal_mask
        normed = part(names.attention_norm)(x) if self.is_pre_norm else x
        y = part(names.attention_output)(part(names.attention)(normed, *masks))
        del normed
        y = add_residual(part(names.attention_dropout)(y), x)
        if self.is_pre_norm:
            return add_residual(self._feed_forward(part(names.output_norm)(y)), y)
        y = part(names.attention_norm)(y)
        return part(names.output_norm)(add_residual(self._feed_forward(y), y))

    def projections(self) -> list[str]:
        """The names of the linear layers to query, key and value."""
        return self.get_submodule(self.names.attention).projections

    def _feed_forward(self, x):
        part, names = self.get_submodule, self.names
        x = part(names.up)(x)
        if self.recomputes_gelu:
            down = part(names.down)
            x = torch.ops.tempo.gelu_linear(x, down.weight, down.bias, self.is_pre_norm)
        else:
            x = part(names.down)(part(names.activation)(x))
        return part(names.output_dropout)(x)
