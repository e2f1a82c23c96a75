"""Attention, norms and checkpoints of Hugging Face's models. Imported where transformers is.

Their attention modules look up a function by the name in their config. Ours is registered there as
"temposcope", and each attention module that is swapped gets a config of its own that names it, so
that the model's config, which other models may share, stays as it is.
"""

import copy
import dataclasses
import sys
from collections.abc import Iterable

import torch.nn as nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import output_capturing

from . import _attention
from ._library import load_ops
from ._swapped_modules import takes

NAME = "temposcope"

# The attention modules whose code is known, by class name. All compute what `context_of` does.
ATTENTION = (
    "BertSelfAttention",
    "RobertaSelfAttention",
    "GPT2Attention",
    "ViTAttention",
    "LlamaAttention",
)
# Classes with the code of LlamaRMSNorm (a test holds it).
RMS_NORMS = (
    "LlamaRMSNorm",
    "MistralRMSNorm",
    "MixtralRMSNorm",
    "Qwen2RMSNorm",
    "Qwen3RMSNorm",
)
# GELU modules by class name: whether it is the tanh form.
GELUS = {"GELUActivation": False, "NewGELUActivation": True, "GELUTanh": True}
# Arguments that change what attention computes and that ours does not have.
_OTHER_ARGUMENTS = ("softcap", "s_aux", "position_bias", "cache", "sliding_window", "head_mask")


@dataclasses.dataclass
class Plan(_attention.AttentionPlan):
    previous: str = "eager"  # the name in the config before


def is_of(module: nn.Module, names) -> bool:
    """Whether it is one of transformers' own classes of these names, not a subclass."""
    kind = type(module)
    return kind.__name__ in names and kind.__module__.startswith("transformers.")


def why_not(module: nn.Module) -> str | None:
    """Why this attention module cannot be swapped; None if it can."""
    name = module.config._attn_implementation
    if name not in ("eager", "sdpa"):
        return f"its attention is {name}, which keeps no probabilities"
    if getattr(module, "reorder_and_upcast_attn", False):
        return "reorder_and_upcast_attn is set"
    if getattr(module, "is_cross_attention", False):
        return "cross-attention is not supported"
    return None


def put(module: nn.Module, plan: _attention.AttentionPlan) -> None:
    previous = module.config._attn_implementation
    _give_config(module, NAME, {})
    module._temposcope = Plan(**dataclasses.asdict(plan), previous=previous)


def use_sdpa(modules: Iterable[nn.Module]) -> None:
    """Lets modules with eager attention build masks for scaled_dot_product_attention."""
    copies = {}
    for module in modules:
        if getattr(module.__dict__.get("config"), "_attn_implementation", None) == "eager":
            _give_config(module, "sdpa", copies)


def _give_config(module, name, copies):
    """A config of its own, the same one for all modules that share theirs and `copies`."""
    config = module.config
    if id(config) not in copies:
        copies[id(config)] = copy.copy(config)
        copies[id(config)]._attn_implementation_internal = name
    module.__dict__.setdefault("_temposcope_config", config)
    module.config = copies[id(config)]


def take_away(module: nn.Module) -> None:
    """Undoes put and use_sdpa."""
    if "_temposcope_config" in module.__dict__:
        module.config = module.__dict__.pop("_temposcope_config")
    if isinstance(module.__dict__.get("_temposcope"), Plan):
        del module._temposcope


def attention_forward(
    module, query, key, value, attention_mask, scaling=None, dropout=0.0, **others
):
    """Takes the place of eager_attention_forward and sdpa_attention_forward: query [B, A, S, D],
    key and value [B, A or fewer, K, D]; returns the context [B, S, A, D] and no weights."""
    plan = module._temposcope
    name = "sdpa" if plan.backend else plan.previous
    eager = sys.modules[_model_class(module).__module__].eager_attention_forward
    stock = ALL_ATTENTION_FUNCTIONS.get_interface(name, eager)

    def run_stock():
        return stock(
            module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **others
        )

    # A re-entrant checkpoint runs forward without gradients first, and must draw the same mask.
    needed = query.requires_grad or dropout > 0
    wants_more = any(others.get(one) is not None for one in _OTHER_ARGUMENTS)
    if not needed or wants_more or _wants_weights(others) or not takes(query):
        return run_stock()
    if plan.backend is not None:
        with _attention.pinned(plan.backend):
            return run_stock()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    causal = False
    if plan.previous == "sdpa":
        causal = others.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        causal = causal and attention_mask is None and query.shape[2] > 1
        arguments = query, key, value, attention_mask, dropout, causal, scale
        if not _attention.keeps_probabilities(*arguments) or query.shape[2] != key.shape[2]:
            return run_stock()
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (one.repeat_interleave(groups, dim=1) for one in (key, value))
    context = _attention.context_of(
        plan, query, key, value, attention_mask, dropout, causal, scale
    )
    return context.transpose(1, 2).contiguous(), None


def _model_class(module):
    """The class of transformers: FSDP and parametrizations put their own before it."""
    return next(
        one for one in type(module).__mro__ if one.__module__.startswith("transformers.models.")
    )


def _wants_weights(others) -> bool:
    """Whether the probabilities are an output of the model (output_attentions=True)."""
    collector = output_capturing._active_collector.get()
    return bool(others.get("output_attentions")) or "attentions" in (collector or ())


def checkpointed_layers(model: PreTrainedModel) -> list[str]:
    """The paths of the layers that transformers checkpoints."""
    layers = model.named_modules()
    return [path for path, one in layers if isinstance(one, GradientCheckpointingLayer)]


# At import, because a pickle of a swapped model imports this before any call of swap.
load_ops()
AttentionInterface.register(NAME, attention_forward)
