"""A middle layer of a swapped model saves what the closed form says, to the byte
(docs/techniques.md, docs/apply_techniques.md). Run on a virtual GPU too:
`swap_bytes_test.py --device cuda`."""

import sys
import unittest

import small_models
import torch
from saved_bytes import saved_bytes
from small_models import FAMILIES, A, B, F, H
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.models.llama.modeling_llama import LlamaRMSNorm

import temposcope

DEVICE = "cpu"
MATH = [SDPBackend.MATH]
ANY = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]


def layer_bytes(
    name, recipe, attention="eager", dtype=torch.float32, backends=MATH, autocast=False
) -> int:
    """What one more layer saves. MATH: where scaled_dot_product_attention has no fused way."""
    totals = []
    for num_layers in (2, 3):
        model = small_models.build(name, num_layers, attention)
        temposcope.swap(model, recipe)
        model = model.to(DEVICE, dtype)
        with sdpa_kernel(backends), torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            totals.append(saved_bytes(model, lambda model=model: small_models.run(name, model)))
    return totals[1] - totals[0]


class Bytes(unittest.TestCase):
    def test_layers_with_layer_norm_and_gelu(self):
        families = [name for name in FAMILIES if name != "Llama"]
        for name in families:
            S = FAMILIES[name].seq_len
            n, T, R = B * S * H, B * A * S * S, B * S
            for dtype, e in ((torch.float32, 4), (torch.bfloat16, 2)):
                forms = {
                    "tempo": n * (10 * e + 6) + T * (e + 1) + 8 * R,
                    "tempo-packed": 10 * e * n + e * T + 8 * R + -(-T // 8) + 2 * n // 8 + n // 2,
                    "tempo-philox": 10 * e * n + e * T + 8 * R + n // 2,
                    "tempo,checkpoint=attention_core": n * (10 * e + 6) + 8 * R,
                }
                for attention in ("eager", "sdpa"):
                    for recipe, form in forms.items():
                        with self.subTest(f"{name}, {attention}, {recipe}, {dtype}"):
                            got = layer_bytes(name, recipe, attention, dtype)
                            self.assertEqual(got, form)

    def test_under_autocast_they_save_what_they_save_in_16_bits(self):
        """And 16-bit copies of the linear layers' weights. nn.TransformerEncoder's second layer of
        the MLP runs again in backward, and makes its copy again."""
        for name in [name for name in FAMILIES if name != "Llama"]:
            S = FAMILIES[name].seq_len
            n, T, R = B * S * H, B * A * S * S, B * S
            kept = 1 if name.startswith("TransformerEncoder") else 2
            form = 26 * n + 3 * T + 8 * R + 2 * (4 * H * H + kept * H * F)
            for attention in ("eager", "sdpa"):
                with self.subTest(f"{name}, {attention}"):
                    self.assertEqual(layer_bytes(name, "tempo", attention, autocast=True), form)

    def test_llama(self):
        """Query, key and value, context, two norms: 6en; gate, its SiLU, up, their product: 4ef."""
        S = FAMILIES["Llama"].seq_len
        n, f, T, R = B * S * H, B * S * F, B * A * S * S, B * S
        for dtype, e in ((torch.float32, 4), (torch.bfloat16, 2)):
            with self.subTest(str(dtype)):
                form = 6 * e * n + 4 * e * f + e * T + 8 * R + -(-T // 8)
                self.assertEqual(layer_bytes("Llama", "tempo-packed", dtype=dtype), form)

    def test_a_norm_alone(self):
        """From its output and 4 bytes a row; as it was: its input and statistics beside it."""
        rows, width = 24, 64
        x = torch.randn(rows, width, device=DEVICE, requires_grad=True)
        for norm in (torch.nn.LayerNorm(width), torch.nn.RMSNorm(width)):
            norm = norm.to(DEVICE)
            with self.subTest(type(norm).__name__):
                temposcope.swap(norm, "tempo")
                got = saved_bytes(norm, lambda norm=norm: norm(x))
                self.assertEqual(got, 4 * rows * width + 4 * rows)

    def test_llamas_norm_before_a_linear_layer(self):
        """As it was it saves its input in float32, x̂ and 4 bytes a row beside its output."""
        rows, width = 24, 64
        n = rows * width
        for dtype, e in ((torch.float32, 4), (torch.bfloat16, 2)):
            layers = LlamaRMSNorm(width), torch.nn.Linear(width, width, bias=False)
            model = torch.nn.Sequential(*layers).to(DEVICE, dtype)
            x = torch.randn(rows, width, device=DEVICE, dtype=dtype, requires_grad=True)
            with self.subTest(str(dtype)):
                before = saved_bytes(model, lambda model=model, x=x: model(x))
                self.assertEqual(before, n * (4 + 2 * e) + 4 * rows)
                temposcope.swap(model, "tempo")
                after = saved_bytes(model, lambda model=model, x=x: model(x))
                self.assertEqual(after, e * n + 4 * rows)

    def test_checkpointed_layers_save_their_input(self):
        for name in FAMILIES:
            with self.subTest(name):
                n = B * FAMILIES[name].seq_len * H
                self.assertEqual(layer_bytes(name, "checkpoint"), 4 * n)

    def test_swapped_models_save_less_than_before_whatever_attention_torch_chooses(self):
        for name in FAMILIES:
            for attention in ("eager", "sdpa"):
                with self.subTest(f"{name}, {attention}"):
                    before = layer_bytes(name, "original-stock", attention, backends=ANY)
                    self.assertLess(layer_bytes(name, "tempo", attention, backends=ANY), before)

    def test_a_fused_attention_stays_and_keeps_nothing_of_the_size_of_the_scores(self):
        flash = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
        S = 24
        n, R = B * S * H, B * S
        if DEVICE == "cpu":  # flash attention there has no dropout
            self.skipTest("runs on a virtual GPU")
        for name in ("BERT", "RoBERTa"):
            for dtype, e in ((torch.float16, 2), (torch.bfloat16, 2)):
                for recipe, attention in (
                    ("tempo-packed", "sdpa"),
                    ("flash-tempo,masks=bit", "eager"),
                    ("flash-tempo,masks=bit", "sdpa"),
                ):
                    with self.subTest(f"{name}, {dtype}, {recipe}, {attention}"):
                        got = layer_bytes(name, recipe, attention, dtype, flash)
                        # And 4 bytes of logsumexp for each row and head, and a generator's state.
                        form = 10 * e * n + 8 * R + 2 * n // 8 + n // 2 + 4 * B * A * S
                        self.assertLess(abs(got - form), 64)


if __name__ == "__main__":
    if "--device" in sys.argv:
        at = sys.argv.index("--device")
        DEVICE = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    unittest.main()
