"""Attention from query, key and value to the context, as the switch `attention` says."""

import contextlib
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ._swapped_class import Swapped
from ._swapped_modules import checkpointed, draw_key, takes

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@dataclasses.dataclass
class AttentionPlan:
    """What a module's attention does. With `backend` it is scaled_dot_product_attention of that
    backend. Else it is `tempo::attention_core`, wherever torch would keep the probabilities."""

    backend: str | None = None  # "flash", "efficient" or "cudnn"
    recompute: bool = False  # the dropped probabilities in backward
    checkpointed: bool = False  # scores and softmax too: nothing of their size is kept
    masks: str = "byte"  # "byte", "bit" or "philox"


@contextlib.contextmanager
def pinned(backend: str):
    """scaled_dot_product_attention with one backend. Raises RuntimeError with a sentence where the
    backend cannot run."""
    try:
        with sdpa_kernel(BACKENDS[backend]):
            yield
    except RuntimeError as error:
        if "No available kernel" not in str(error):
            raise
        raise RuntimeError(
            f"{backend} attention cannot run here: swap with another value of attention=, or set "
            "the model's attention dropout to 0. (On the CPU only flash runs, without attention "
            "dropout; on a GPU the dtype, the head's width and the mask decide.)"
        ) from error


def keeps_probabilities(query, key, value, mask, p, causal, scale) -> bool:
    """Whether scaled_dot_product_attention would take its unfused way for these arguments.

    Key and value may have fewer heads than query. Without a mask transformers leaves it to torch to
    share them, and repeats them beside a mask, where a part of the query's heads tells as much.
    """
    shares_heads = query.shape[1] != key.shape[1]
    if shares_heads and mask is not None:
        query, shares_heads = query[:, : key.shape[1]], False
    choice = torch._fused_sdp_choice(
        query, key, value, mask, p, causal, scale=scale, enable_gqa=shares_heads
    )
    return choice == SDPBackend.MATH.value


def context_of(plan: AttentionPlan, query, key, value, mask, p, causal, scale) -> torch.Tensor:
    """dropout(softmax(scale · query keyᵀ + mask)) · value by tempo::attention_core.

    Shapes   query [B, A, S, D]; key and value [B, A, K, D]; mask [B or 1, A or 1, S, K]: numbers to
             add to the scores, or bool, True where a token is seen; result [B, A, S, D].
    Saves    query, key, value, the probabilities [B, A, S, K] and the dropout mask.
    """
    key_of_mask = draw_key() if p > 0 else [0] * 5  # as torch, which draws nothing for p = 0

    def core(query, key, value):
        return _core(plan, query, key, value, mask, p, causal, scale, key_of_mask)

    if plan.checkpointed:
        inputs = [_alone(one) for one in (query, key, value)]
        return checkpointed(core, *inputs, preserve_rng_state=False)
    return core(query, key, value)


def _alone(x: torch.Tensor) -> torch.Tensor:
    """x in a storage of its own: as an input of a checkpoint, a part of a larger tensor (GPT-2's
    projection) would keep all of it."""
    return x if x.untyped_storage().nbytes() == x.nbytes else x.clone()


def _as_type(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """mask in the dtype of the scores, which under autocast has 16 bits; no number becomes -inf."""
    if mask.dtype == dtype:
        return mask
    return mask.clamp(min=torch.finfo(dtype).min).to(dtype)


def _core(plan, query, key, value, mask, p, causal, scale, key_of_mask):
    B, A, S, D = query.shape
    K = key.shape[2]
    hidden = None  # [B or 1, A or 1, S, 1]: rows that see no token, whose context is 0 as in SDPA
    if mask is None:
        scores = torch.matmul(query, key.transpose(2, 3))
    else:
        scores = torch.matmul(query * scale, key.transpose(2, 3))
        scale = 1.0
        if mask.dtype == torch.bool:
            hidden = ~mask.any(dim=-1, keepdim=True)
            lowest = torch.finfo(scores.dtype).min
            mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, lowest)
        scores = scores.add_(_as_type(mask, scores.dtype))
    context = torch.ops.tempo.attention_core(
        scores.view(B * A, S, K),
        value.reshape(B * A, K, -1),
        None,
        scale,
        causal,
        A,
        p,
        plan.masks,
        key_of_mask,
        plan.recompute,
    ).view(B, A, S, -1)
    return context if hidden is None else context.masked_fill(hidden, 0)


class MultiheadAttention(Swapped):
    """nn.MultiheadAttention without weights to return, as nn.TransformerEncoderLayer calls it."""

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        # A re-entrant checkpoint runs forward without gradients first, and must draw this mask.
        needed = torch.is_grad_enabled() or (self.training and self.dropout > 0)
        if not (needed and not need_weights and self._is_plain(query, key, value)):
            return super().forward(
                query,
                key,
                value,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                average_attn_weights=average_attn_weights,
                is_causal=is_causal,
            )
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")  # as torch
        causal = is_causal and key_padding_mask is None
        q, k, v = self._heads(query, key, value)
        mask = None if causal else _additive(attn_mask, key_padding_mask, q)
        context = self._context(q, k, v, mask, causal)
        order = (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)
        context = context.permute(order).flatten(2)
        return F.linear(context, self.out_proj.weight, self.out_proj.bias), None

    def _is_plain(self, query, key, value):
        return (
            takes(query, self.in_proj_weight)
            and query.dim() == 3
            and query.dtype == key.dtype == value.dtype
            and self._qkv_same_embed_dim
            and self.bias_k is None
            and not self.add_zero_attn
        )

    def _heads(self, query, key, value):
        """query, key and value projected, [B, A, tokens, D] each."""
        A, D = self.num_heads, self.head_dim
        order = (2, 0, 3, 1, 4) if self.batch_first else (2, 1, 3, 0, 4)

        def project(x, first, last):
            rows = slice(first * self.embed_dim, last * self.embed_dim)
            bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
            y = F.linear(x, self.in_proj_weight[rows], bias).unflatten(2, (last - first, A, D))
            return y.permute(order).contiguous().unbind()

        if query is key and key is value:
            return project(query, 0, 3)
        return (*project(query, 0, 1), *project(key, 1, 2), *project(value, 2, 3))

    def _context(self, q, k, v, mask, causal):
        plan = self._temposcope
        p = self.dropout if self.training else 0.0
        if plan.backend is not None:
            with pinned(plan.backend):
                return F.scaled_dot_product_attention(q, k, v, mask, p, causal)
        scale = self.head_dim**-0.5
        if keeps_probabilities(q, k, v, mask, p, causal, scale):
            return context_of(plan, q, k, v, mask, p, causal, scale)
        return F.scaled_dot_product_attention(q, k, v, mask, p, causal)


def _additive(attn_mask, key_padding_mask, query) -> torch.Tensor | None:
    """Both masks of nn.MultiheadAttention as one tensor to add to the scores [B, A, S, K]."""
    B, A = query.shape[:2]
    parts = []
    if attn_mask is not None:  # [S, K] or [B*A, S, K]
        parts.append(attn_mask if attn_mask.dim() == 2 else attn_mask.unflatten(0, (B, A)))
    if key_padding_mask is not None:  # [B, K]
        parts.append(key_padding_mask[:, None, None, :])
    total = None
    for part in parts:
        if part.dtype == torch.bool:  # True hides a token
            numbers = torch.zeros_like(part, dtype=query.dtype)
            part = numbers.masked_fill_(part, float("-inf"))
        total = part if total is None else total + part
    while total is not None and total.dim() < 4:
        total = total[None]
    return total
