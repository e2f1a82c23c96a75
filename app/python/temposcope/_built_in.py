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

from ._built_in_layer import LAYER_NAMES, Layer, add_at, gelu, layer_norm
from ._recipes import switches_of
from ._swap import swap

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
        self.names = LAYER_NAMES[model.family]
        switches = switches_of(workload.recipe)
        with torch.device("meta"):
            if self.has_embeddings:
                self._add_embeddings()
            layers = {str(i): Layer(workload, switches) for i in range(first, last)}
            self.layers = add_at(self, self.names.layers, nn.ModuleDict(layers))
            self._add_head()
        swap(self, _swapped_switches(switches), (Layer,))

    def _add_embeddings(self) -> None:
        model, width = self.workload.model, self.workload.model.hidden_size
        is_gpt2 = model.family == "gpt2"
        word = nn.Embedding(model.vocab_size, width)
        position = nn.Embedding(model.max_position_embeddings, width)
        add_at(self, self.names.word_embeddings, word)
        add_at(self, "wpe" if is_gpt2 else "embeddings.position_embeddings", position)
        if not is_gpt2:
            types = nn.Embedding(model.type_vocab_size, width)
            add_at(self, "embeddings.token_type_embeddings", types)
            add_at(self, "embeddings.LayerNorm", layer_norm(model))
        dropout = nn.Dropout(model.hidden_dropout_p)
        add_at(self, "drop" if is_gpt2 else "embeddings.dropout", dropout)

    def _add_head(self) -> None:
        model, width = self.workload.model, self.workload.model.hidden_size
        if self.head == "lm":
            self.ln_f = layer_norm(model)
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
            return F.linear(self.ln_f(x), self._decoder_weight())
        if self.head == "mlm":
            predictions = self.cls.predictions
            x = predictions.transform.activation(predictions.transform.dense(x))
            x = predictions.transform.LayerNorm(x)
            return F.linear(x, self._decoder_weight(), predictions.bias)
        return self.qa_outputs(x) if self.head == "squad" else x

    def _embed(self, ids, position_ids, token_type_ids):
        if self.workload.model.family == "gpt2":
            return self.drop(self.wte(ids).add_(self.wpe(position_ids)))
        embeddings = self.embeddings
        x = embeddings.word_embeddings(ids)
        x.add_(embeddings.position_embeddings(position_ids))
        if token_type_ids is not None:
            x.add_(embeddings.token_type_embeddings(token_type_ids))
        return embeddings.dropout(embeddings.LayerNorm(x))

    def _decoder_weight(self):
        if not self.has_embeddings:
            return self.decoder_weight
        return self.get_submodule(self.names.word_embeddings).weight


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
    if w.model.family == "gpt2" and switches_of(w.recipe)["attention"] == "eager":
        scores = AUTOCAST_TYPES.get(w.precision, dtype)
        mask = torch.full((w.seq_len, w.seq_len), -math.inf, dtype=scores, device=device)
        others["causal_mask"] = mask.triu_(1).expand(by_token[0], -1, -1)
    return others
