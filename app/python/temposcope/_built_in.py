"""The built-in models (models/training) as modules of torch, so that torch's own wrappers can shard
and split them: the same layers, tensors and names of modules. tests/python/built_in_test.py holds
both equal to the byte.

A workload is the JSON of models::Workload; its fields are attributes here. models/config/parallel.h
says which ones there are.
"""

import functools
import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from ._attention import BACKENDS, pinned
from ._recipes import switches_of
from ._swap import swap
from ._swapped_modules import checkpointed, draw_key

IGNORED_LABEL = -100

WEIGHT_TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "amp-fp16": torch.float32,
    "amp-bf16": torch.float32,
    "fp16": torch.float16,
    "pure-fp16": torch.float16,
    "bf16": torch.bfloat16,
    "pure-bf16": torch.bfloat16,
}
AUTOCAST_TYPES = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


class Family(NamedTuple):
    """A row of models::FamilyTraits: what the layers of a family are made of, and Hugging Face's
    names of their modules. Code asks for a trait, never for a family."""

    is_pre_norm: bool
    is_causal: bool
    gelu: str  # nn.GELU's approximation
    stacked_projection: str  # query, key and value in one product; empty: in three
    word_embeddings: str
    position_embeddings: str
    token_types: str  # empty: none
    embedding_norm: str  # likewise
    embedding_dropout: str
    final_norm: str  # likewise
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


FAMILIES = {
    "bert": Family(
        is_pre_norm=False,
        is_causal=False,
        gelu="none",
        stacked_projection="",
        word_embeddings="embeddings.word_embeddings",
        position_embeddings="embeddings.position_embeddings",
        token_types="embeddings.token_type_embeddings",
        embedding_norm="embeddings.LayerNorm",
        embedding_dropout="embeddings.dropout",
        final_norm="",
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
    "gpt2": Family(
        is_pre_norm=True,
        is_causal=True,
        gelu="tanh",
        stacked_projection="c_attn",
        word_embeddings="wte",
        position_embeddings="wpe",
        token_types="",
        embedding_norm="",
        embedding_dropout="drop",
        final_norm="ln_f",
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
    return nn.GELU(FAMILIES[model.family].gelu)


def add_residual(branch: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """In place on `branch`, unless autocast made their types differ."""
    return branch.add_(x) if branch.dtype == x.dtype else branch + x


class Attention(nn.Module):
    """Multi-head self-attention from the layer's input to its context, as the recipe says."""

    def __init__(self, workload, switches: dict[str, str]):
        super().__init__()
        model = workload.model
        self.head_dim = model.hidden_size // model.num_heads
        family = FAMILIES[model.family]
        self.is_causal = family.is_causal
        self.variant, self.masks = switches["attention"], switches["masks"]
        self.is_checkpointed = switches["checkpoint"] == "attention_core"
        self.projections = []
        self.parts = []  # so many of query, key and value in each of them
        for group in _projection_groups(family, switches["qkv"]):
            stacked = family.stacked_projection if len(group) == 3 else ""
            self.projections.append(stacked or "_".join(group))
            self.parts.append(len(group))
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
        for name, num_parts in zip(self.projections, self.parts, strict=True):
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


def _projection_groups(family: Family, qkv: str) -> list[tuple[str, ...]]:
    """Query, key and value in groups: the projections of a group are one product."""
    if qkv == "model":
        qkv = "fused" if family.stacked_projection else "separate"
    return {
        "separate": [("query",), ("key",), ("value",)],
        "qk": [("query", "key"), ("value",)],
        "kv": [("query",), ("key", "value")],
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
        self.family = names = FAMILIES[model.family]
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
        names = self.family
        masks = additive_mask, causal_mask
        normed = part(names.attention_norm)(x) if names.is_pre_norm else x
        y = part(names.attention_output)(part(names.attention)(normed, *masks))
        del normed
        y = add_residual(part(names.attention_dropout)(y), x)
        if names.is_pre_norm:
            return add_residual(self._feed_forward(part(names.output_norm)(y)), y)
        y = part(names.attention_norm)(y)
        return part(names.output_norm)(add_residual(self._feed_forward(y), y))

    def inputs(self) -> list[str]:
        """The linear layers into attention and into the MLP."""
        attention = self.family.attention
        projections = self.get_submodule(attention).projections
        return [f"{attention}.{name}" for name in projections] + [self.family.up]

    def _feed_forward(self, x):
        part, names = self.get_submodule, self.family
        x = part(names.up)(x)
        if self.recomputes_gelu:
            down = part(names.down)
            x = torch.ops.tempo.gelu_linear(x, down.weight, down.bias, names.gelu == "tanh")
        else:
            x = part(names.down)(part(names.activation)(x))
        return part(names.output_dropout)(x)


def _swapped_switches(switches: dict[str, str]) -> str:
    """The part of a recipe that `swap` does; attention and its neighbours are in Attention and
    Layer."""
    by_swap = ("gelu", "layer_norm", "masks", "dropout", "checkpoint")
    by_layers = ("recompute", "attention_core")
    chosen = {one: switches[one] for one in by_swap if switches[one] not in by_layers}
    return ",".join(f"{switch}={value}" for switch, value in chosen.items())


class Model(nn.Module):
    """A whole model, or the layers `first` to `last` - 1 of it as one stage of a pipeline: the
    first stage has the embeddings, the last one the head. Parameters have no values."""

    def __init__(self, workload, first: int = 0, last: int | None = None):
        super().__init__()
        self.workload = workload
        model, head = workload.model, workload.head
        last = model.num_layers if last is None else last
        self.has_embeddings = first == 0 and head != "layers"
        self.head = head if last == model.num_layers else "layers"
        self.family = FAMILIES[model.family]
        switches = switches_of(workload.recipe)
        with torch.device("meta"):
            if self.has_embeddings:
                self._add_embeddings()
            layers = {str(i): Layer(workload, switches) for i in range(first, last)}
            self.layers = add_at(self, self.family.layers, nn.ModuleDict(layers))
            self._add_head()
        swap(self, _swapped_switches(switches), (Layer,))

    def _add_embeddings(self) -> None:
        model, family = self.workload.model, self.family
        width = model.hidden_size
        add_at(self, family.word_embeddings, nn.Embedding(model.vocab_size, width))
        positions = nn.Embedding(model.max_position_embeddings, width)
        add_at(self, family.position_embeddings, positions)
        if family.token_types:
            add_at(self, family.token_types, nn.Embedding(model.type_vocab_size, width))
        if family.embedding_norm:
            add_at(self, family.embedding_norm, layer_norm(model))
        add_at(self, family.embedding_dropout, nn.Dropout(model.hidden_dropout_p))

    def _add_head(self) -> None:
        model, width = self.workload.model, self.workload.model.hidden_size
        if self.head == "lm":
            add_at(self, self.family.final_norm, layer_norm(model))
        if self.head == "mlm":
            add_at(self, "cls.predictions.transform.dense", nn.Linear(width, width))
            add_at(self, "cls.predictions.transform.activation", gelu(model))
            add_at(self, "cls.predictions.transform.LayerNorm", layer_norm(model))
            self.cls.predictions.bias = nn.Parameter(torch.empty(model.vocab_size))
        if self.head == "squad":
            self.qa_outputs = nn.Linear(width, 2)
        if self.head in ("lm", "mlm") and not self.has_embeddings:
            # The decoder is the word embedding's weight. A last stage has a copy of its own.
            self.decoder_weight = nn.Parameter(torch.empty(model.vocab_size, width))

    def materialize(self, device: torch.device) -> None:
        """Gives the parameters memory on `device`, or this rank's shards of them. Nobody looks at
        their values (train_built_in.py)."""
        self.to_empty(device=device)

    def forward(
        self, x, token_type_ids=None, additive_mask=None, position_ids=None, causal_mask=None
    ):
        """Token ids [B, S] or hidden states [B, S, H] -> logits, or hidden states."""
        if self.has_embeddings:
            x = self._embed(x, position_ids[:1], token_type_ids)
        for layer in self.layers.values():
            x = layer(x, additive_mask, None if causal_mask is None else causal_mask[0])
        if self.head == "lm":
            norm = self.get_submodule(self.family.final_norm)
            return F.linear(norm(x), self._decoder_weight())
        if self.head == "mlm":
            predictions = self.cls.predictions
            x = predictions.transform.activation(predictions.transform.dense(x))
            x = predictions.transform.LayerNorm(x)
            return F.linear(x, self._decoder_weight(), predictions.bias)
        return self.qa_outputs(x) if self.head == "squad" else x

    def _embed(self, ids, position_ids, token_type_ids):
        part, family = self.get_submodule, self.family
        x = part(family.word_embeddings)(ids)
        x.add_(part(family.position_embeddings)(position_ids))
        if token_type_ids is not None:
            x.add_(part(family.token_types)(token_type_ids))
        dropout = part(family.embedding_dropout)
        return dropout(part(family.embedding_norm)(x) if family.embedding_norm else x)

    def _decoder_weight(self):
        if not self.has_embeddings:
            return self.decoder_weight
        return self.get_submodule(self.family.word_embeddings).weight


class Loss(nn.modules.loss._Loss):
    """The loss of the head. With fp32 master weights the model's output is cast to fp32 first, as
    apex O2 does; GPT-2's always."""

    def __init__(self, workload):
        super().__init__()
        self.head = workload.head
        self.casts = workload.precision in ("fp16", "bf16") or self.head == "lm"

    def forward(self, output, target):
        if self.head == "layers":
            return torch.sum(output * target)
        if self.head == "squad":
            logits = output.float() if self.casts else output
            start, end = (
                F.cross_entropy(logits[..., i].contiguous(), target[:, i]) for i in range(2)
            )
            return (start + end) * 0.5
        logits = output.flatten(0, 1)
        logits = logits.float() if self.casts else logits
        return F.cross_entropy(logits, target.flatten(), ignore_index=IGNORED_LABEL)


class Batch(NamedTuple):
    input: torch.Tensor  # token ids [B, S], or with the head "layers" hidden states [B, S, H]
    target: torch.Tensor
    others: dict[str, torch.Tensor]  # further arguments of the model, all [B, ...]


def make_batch(workload, batch_size: int, device: torch.device) -> Batch:
    """Of zeros: nobody looks at the values."""
    w = workload
    by_token = (batch_size, w.seq_len)
    dtype = WEIGHT_TYPES[w.precision]
    zeros = functools.partial(torch.zeros, device=device)
    others = _other_inputs(w, by_token, device)
    if w.head == "layers":
        shape = (*by_token, w.model.hidden_size)
        hidden = zeros(shape, dtype=dtype).requires_grad_(w.input_requires_grad)
        return Batch(hidden, zeros(shape, dtype=dtype), others)
    labels = (batch_size, 2) if w.head == "squad" else by_token
    return Batch(zeros(by_token, dtype=torch.long), zeros(labels, dtype=torch.long), others)


def _other_inputs(w, by_token: tuple[int, int], device: torch.device) -> dict[str, torch.Tensor]:
    """One row of positions and one causal mask serve all sequences. A pipeline splits them as if
    each sequence had its own."""
    others = {}
    dtype = WEIGHT_TYPES[w.precision]
    if w.head != "layers" and w.model.type_vocab_size > 0:
        others["token_type_ids"] = torch.zeros(by_token, dtype=torch.long, device=device)
    if w.padding == "random":
        others["additive_mask"] = torch.zeros(by_token, dtype=dtype, device=device)
    if w.head != "layers":
        first = w.model.first_position
        positions = torch.arange(first, first + w.seq_len, device=device)
        others["position_ids"] = positions.expand(by_token)
    if FAMILIES[w.model.family].is_causal and switches_of(w.recipe)["attention"] == "eager":
        scores = AUTOCAST_TYPES.get(w.precision, dtype)
        mask = torch.full((w.seq_len, w.seq_len), -math.inf, dtype=scores, device=device)
        others["causal_mask"] = mask.triu_(1).expand(by_token[0], -1, -1)
    return others
