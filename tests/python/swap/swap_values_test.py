"""Swapped models compute what they did: outputs and all gradients, with the same dropout masks.

The truth is the model as it was, run with torch's dropout and scaled_dot_product_attention
replaced by plain functions that draw the masks of temposcope.
"""

import copy
import functools
import itertools
import unittest
from unittest import mock

import small_models
import torch
import torch.nn.functional as F
from small_models import FAMILIES
from torch.utils.checkpoint import checkpoint
from transformers.models.llama.modeling_llama import LlamaRMSNorm

import temposcope
from temposcope._swapped_modules import draw_key


def plain_dropout(x, p=0.5, training=True, inplace=False):
    if not training or p == 0:
        return x
    return torch.ops.tempo.dropout(x, p, "byte", draw_key())


def plain_attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for one in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return plain_dropout(scores.softmax(-1), dropout_p) @ v


def plain_rms_norm(self, x):
    """LlamaRMSNorm without its way over float."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def plain_softmax(x, dim=None, dtype=None):
    """Without transformers' way over float."""
    return torch.softmax(x, dim) if x.dtype == torch.float64 else torch.softmax(x, dim, dtype)


def as_it_was(run):
    """run() with the masks of temposcope in the model's own code."""
    with (
        mock.patch.object(F, "dropout", plain_dropout),
        mock.patch.object(F, "scaled_dot_product_attention", plain_attention),
    ):
        return run()


def in_double(run):
    """run() without the float in transformers' norms and softmax."""
    with (
        mock.patch.object(F, "softmax", plain_softmax),
        mock.patch.object(LlamaRMSNorm, "forward", plain_rms_norm),
    ):
        return run()


class Values(unittest.TestCase):
    def assert_same(self, ours, truth, tolerance):
        """Within `tolerance` of the largest output, and of the largest gradient."""
        self.assertEqual(len(ours), len(truth))
        largest = max(float(one.abs().max()) for one in truth[1:])
        for index, (one, other) in enumerate(zip(ours, truth, strict=True)):
            scale = float(truth[0].abs().max()) if index == 0 else largest
            self.assertLessEqual(float((one - other).abs().max()), tolerance * scale, index)

    def check(self, name, attention, recipe, mode=True):
        model = small_models.build(name, attention=attention).double().train(mode)
        swapped = copy.deepcopy(model)
        report = temposcope.swap(swapped, recipe)
        truth = in_double(lambda: as_it_was(lambda: small_models.step(name, model)))
        ours = in_double(lambda: small_models.step(name, swapped))
        self.assert_same(ours, truth, 1e-8)
        return report

    def test_outputs_and_gradients_of_every_family(self):
        recipes = "original", "tempo", "tempo-packed", "tempo-philox", "checkpoint-attention"
        for name in FAMILIES:
            for attention in ("eager", "sdpa"):
                for recipe in recipes:
                    with self.subTest(f"{name}, {attention}, {recipe}"):
                        self.check(name, attention, recipe)

    def test_checkpointed_layers_draw_their_masks_again(self):
        for name in FAMILIES:
            for recipe in ("checkpoint", "tempo-packed,checkpoint=per_layer"):
                with self.subTest(f"{name}, {recipe}"):
                    report = self.check(name, "eager", recipe)
                    self.assertEqual(len(report.replaced["checkpointed layers"]), 2)

    def test_checkpoints_of_the_user_draw_the_masks_again(self):
        """The re-entrant kind runs forward without gradients first."""

        def again(reentrant):
            def run(layer, *arguments, **named):
                forward = type(layer).forward
                return checkpoint(
                    functools.partial(forward, layer, **named),
                    *arguments,
                    use_reentrant=reentrant,
                )

            return run

        for name, reentrant in itertools.product(FAMILIES, (True, False)):
            model = small_models.build(name).double()
            temposcope.swap(model, "tempo-packed")
            truth = small_models.step(name, model)
            if isinstance(model, torch.nn.TransformerEncoder):
                for layer in model.layers:
                    layer.forward = functools.partial(again(reentrant), layer)
            else:
                model.gradient_checkpointing_enable({"use_reentrant": reentrant})
            with self.subTest(f"{name}, re-entrant: {reentrant}"):
                ours = in_double(lambda: small_models.step(name, model))
                self.assert_same(ours, truth, 1e-12)

    def test_without_dropout(self):
        for name in FAMILIES:
            with self.subTest(name):
                self.check(name, "eager", "tempo", mode=False)

    def test_padding(self):
        tokens = torch.randint(99, (2, 24), generator=torch.Generator().manual_seed(1))
        seen = torch.ones(2, 24, dtype=torch.long)
        seen[1, 15:] = 0

        def run(model, device):
            return model(tokens, attention_mask=seen).last_hidden_state

        for name in ("BERT", "RoBERTa", "GPT-2", "Llama"):
            for attention in ("eager", "sdpa"):
                padded = small_models.Family(name, FAMILIES[name].build, run)
                with (
                    self.subTest(f"{name}, {attention}"),
                    mock.patch.dict(FAMILIES, {name: padded}),
                ):
                    self.check(name, attention, "tempo")

    def test_masks_of_a_torch_encoder(self):
        hidden = torch.zeros(2, 24, dtype=torch.bool)
        hidden[1, 15:] = True
        causal = torch.nn.Transformer.generate_square_subsequent_mask(24, dtype=torch.float64)
        cases = (
            {"src_key_padding_mask": hidden},
            {"mask": causal},
            {"mask": causal, "is_causal": True},
            {"mask": causal < 0},
        )

        for masks in cases:

            def run(model, device, masks=masks):
                x = torch.randn(2, 24, 64, generator=torch.Generator().manual_seed(1))
                return model(x.double(), **masks)

            name = "TransformerEncoder"
            masked = small_models.Family(name, FAMILIES[name].build, run)
            with self.subTest(str(list(masks))), mock.patch.dict(FAMILIES, {name: masked}):
                self.check(name, "eager", "tempo")

    def test_grouped_heads_of_llama(self):
        llama = FAMILIES["Llama"]

        def build(num_layers, attention):
            model = llama.build(num_layers, attention)
            config = copy.copy(model.config)
            config.num_key_value_heads = 2
            return type(model)(config)

        grouped = small_models.Family("Llama", build, llama.run)
        with mock.patch.dict(FAMILIES, Llama=grouped):
            for attention in ("eager", "sdpa"):
                self.check("Llama", attention, "tempo")

    def test_flash_attention_without_dropout(self):
        for name in FAMILIES:
            for attention in ("eager", "sdpa"):
                with self.subTest(f"{name}, {attention}"):
                    report = self.check(name, attention, "flash-tempo", mode=False)
                    self.assertEqual(len(report.replaced["attention cores"]), 2)

    def test_sequence_first_and_cross_attention_of_torch(self):
        torch.manual_seed(0)
        model = torch.nn.Transformer(
            64, 4, 2, 2, 128, activation="gelu", dropout=0.1, dtype=torch.float64
        )
        swapped = copy.deepcopy(model)
        report = temposcope.swap(swapped, "tempo-packed")
        self.assertEqual(len(report.replaced["attention cores"]), 6)
        source, target = torch.randn(7, 2, 64).double(), torch.randn(5, 2, 64).double()

        def step(one):
            torch.manual_seed(3)
            output = one(source, target)
            output.square().sum().backward()
            return [output.detach(), *(p.grad for p in one.parameters())]

        self.assert_same(step(swapped), as_it_was(lambda: step(model)), 1e-8)


class OtherTypes(unittest.TestCase):
    """float32, 16 bits and autocast: near the model as it was, in the same types. Under autocast
    an output that a norm writes has 16 bits."""

    def check(self, name, recipe, tolerance, dtype=torch.float32, autocast=False, before=True):
        model = small_models.build(name)
        swapped = copy.deepcopy(model)
        if before:
            temposcope.swap(swapped, recipe)
        model, swapped = model.to(dtype), swapped.to(dtype)
        if not before:
            temposcope.swap(swapped, recipe)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            ours = small_models.step(name, swapped)
            truth = as_it_was(lambda: small_models.step(name, model))
        largest = max(float(one.abs().max()) for one in truth[1:])
        for one, other in zip(ours, truth, strict=True):
            self.assertIn(one.dtype, [other.dtype, torch.bfloat16] if autocast else [other.dtype])
            scale = max(largest, float(other.abs().max()))
            self.assertLessEqual(float((one - other).abs().max()), tolerance * scale)

    def test_models_of_every_type_and_under_autocast(self):
        for name in FAMILIES:
            for recipe in ("tempo", "tempo-packed"):
                for before in (True, False):
                    with self.subTest(f"{name}, {recipe}, swapped before: {before}"):
                        # Near its minimum the derivative of GELU from the output is off by 5e-5.
                        self.check(name, recipe, 5e-4, before=before)
                        self.check(name, recipe, 0.06, torch.bfloat16, before=before)
                        self.check(name, recipe, 0.02, torch.float16, before=before)
                        self.check(name, recipe, 0.06, autocast=True, before=before)


if __name__ == "__main__":
    unittest.main()
