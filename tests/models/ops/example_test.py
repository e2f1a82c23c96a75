"""docs/examples/tempo_modules.py: after `swap`, a model computes the same function.

Run by ctest with the virtual environment's Python: `example_test.py LIBTEMPO_OPS`. In eval() a
swapped model is compared with itself before; in train() with the layer written out on torch's ops,
whose dropouts draw the same masks.
"""

import copy
import pathlib
import sys
import unittest
import warnings

warnings.filterwarnings("ignore", message=".*NumPy.*")
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "docs" / "examples"))
import tempo_modules

tempo = torch.ops.tempo
B, S, H, A = 3, 10, 16, 4
P = (0.1, 0.2, 0.3, 0.4)  # on probabilities, after attention, after the activation, after the MLP


def encoder_layer(norm_first=False):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        H, A, 4 * H, activation="gelu", batch_first=True, norm_first=norm_first
    ).double()
    layer.self_attn.dropout, layer.dropout1.p, layer.dropout.p, layer.dropout2.p = P
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def swapped(layer, masks):
    model = nn.Sequential(copy.deepcopy(layer))
    tempo_modules.swap(model, masks)
    return model[0]


def in_torch(layer, masks, index, x, mask=0.0):
    """What nn.TransformerEncoderLayer computes in train(), with the masks of `masks`."""

    def drop(x, site):
        return tempo.dropout(x, P[site], "byte", masks.key(index, site))

    def attend(x):
        own = layer.self_attn
        projected = F.linear(x, own.in_proj_weight, own.in_proj_bias).chunk(3, -1)
        q, k, v = (t.view(B, S, A, H // A).transpose(1, 2) for t in projected)
        probs = torch.softmax(q @ k.transpose(-1, -2) / (H // A) ** 0.5 + mask, -1)
        heads = drop(probs, 0) @ v
        return drop(own.out_proj(heads.transpose(1, 2).reshape(B, S, H)), 1)

    def feed_forward(x):
        return drop(layer.linear2(drop(F.gelu(layer.linear1(x)), 2)), 3)

    if layer.norm_first:
        x = x + attend(layer.norm1(x))
        return x + feed_forward(layer.norm2(x))
    x = layer.norm1(x + attend(x))
    return layer.norm2(x + feed_forward(x))


class Swap(unittest.TestCase):
    def test_weights_that_are_loaded_decide_what_a_norm_saves(self):
        model = nn.Sequential(nn.LayerNorm(H))
        tempo_modules.swap(model)
        model.load_state_dict({"0.weight": torch.zeros(H), "0.bias": torch.zeros(H)})
        model(torch.randn(B, H)).sum().backward()
        self.assertTrue(model[0].weight.grad.isfinite().all())

    def test_an_error_leaves_the_model_as_it_was(self):
        model = nn.Sequential(nn.GELU(), nn.LayerNorm((2, H)))
        with self.assertRaisesRegex(ValueError, "only the last dimension"):
            tempo_modules.swap(model)
        self.assertIs(type(model[0]), nn.GELU)


class Ranks(unittest.TestCase):
    def test_processes_with_one_seed_draw_masks_of_their_own(self):
        keeps, masks = [], tempo_modules.Masks(seed=3)  # made before the processes join
        for rank in range(2):
            distributed.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
            key = masks.key(0)
            self.assertEqual(tempo_modules.Masks(seed=3, rank=7).key(0)[1], 7)
            distributed.destroy_process_group()
            keeps.append(tempo.dropout(torch.ones(1000), 0.5, "byte", key))
        self.assertEqual(masks.key(0)[1], 0)
        self.assertLess((keeps[0] == keeps[1]).double().mean(), 0.6)


def input_tensor():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(B, S, H, dtype=torch.float64, generator=generator).requires_grad_()


class Example(unittest.TestCase):
    def assert_same(self, ours, stock, x, modules):
        """Values, and gradients of x and of every parameter of both modules."""
        torch.testing.assert_close(ours, stock)
        upstream = torch.randn(ours.shape, dtype=ours.dtype)
        named = [dict(module.named_parameters()) for module in modules]
        self.assertEqual(named[0].keys(), named[1].keys())
        results = [
            torch.autograd.grad(y, [x, *(own[name] for name in named[0])], upstream)
            for y, own in zip((ours, stock), named)
        ]
        for a, b in zip(*results):
            torch.testing.assert_close(a, b)

    def test_a_layer_in_training_is_torchs_layer_with_other_masks(self):
        x = input_tensor()
        for norm_first in (False, True):
            for kind in ("byte", "bit", "philox"):
                with self.subTest(norm_first=norm_first, kind=kind):
                    layer, masks = encoder_layer(norm_first), tempo_modules.Masks(seed=5, kind=kind)
                    ours = swapped(layer, masks)
                    for masks.step in (0, 1):
                        expected = in_torch(layer, masks, ours.index, x)
                        self.assert_same(ours(x), expected, x, (ours, layer))

    def test_a_layer_takes_the_masks_that_torchs_layer_takes(self):
        x = input_tensor()
        hidden = torch.triu(torch.ones(S, S, dtype=torch.bool), 1)
        causal = torch.zeros(S, S, dtype=torch.float64).masked_fill(hidden, float("-inf"))
        padding = torch.arange(S).repeat(B, 1) >= torch.tensor([[S], [S - 3], [1]])
        bias = torch.randn(B * A, S, S, dtype=torch.float64)
        for arguments in (
            {"src_mask": hidden},
            {"src_mask": causal},
            {"src_mask": causal, "is_causal": True},
            {"src_mask": bias},
            {"src_key_padding_mask": padding},
            {"src_mask": hidden, "src_key_padding_mask": padding},
            {"src_mask": bias, "src_key_padding_mask": 3.0 * padding},
        ):
            for norm_first in (False, True):
                with self.subTest(arguments=str(arguments.keys()), norm_first=norm_first):
                    layer = encoder_layer(norm_first).eval()
                    ours = swapped(layer, tempo_modules.Masks())
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a bool and a float mask together
                        expected = layer(x, **arguments)
                    self.assert_same(ours(x, **arguments), expected, x, (ours, layer))

    def test_masks_in_training(self):
        x = input_tensor()
        layer, masks = encoder_layer(), tempo_modules.Masks()
        ours = swapped(layer, masks)
        causal = nn.Transformer.generate_square_subsequent_mask(S, dtype=torch.float64)
        for is_causal in (False, True):
            expected = in_torch(layer, masks, ours.index, x, causal)
            self.assert_same(ours(x, causal, is_causal=is_causal), expected, x, (ours, layer))

    def test_an_encoder_runs_swapped(self):
        """Its layers are called by keyword; without gradients it would make nested tensors."""
        x = input_tensor()
        padding = torch.arange(S).repeat(B, 1) >= torch.tensor([[S], [S - 3], [1]])
        causal = nn.Transformer.generate_square_subsequent_mask(S, dtype=torch.float64)
        for norm in (None, nn.LayerNorm(H).double()):
            stock = nn.TransformerEncoder(encoder_layer(), 2, norm=norm).eval()
            ours = copy.deepcopy(stock)
            tempo_modules.swap(ours)
            self.assertIsInstance(ours.layers[1], tempo_modules.EncoderLayer)
            for arguments in ({}, {"mask": causal}, {"src_key_padding_mask": padding}):
                self.assert_same(ours(x, **arguments), stock(x, **arguments), x, (ours, stock))
                with torch.no_grad():
                    visible = ~padding if "src_key_padding_mask" in arguments else slice(None)
                    torch.testing.assert_close(
                        ours(x, **arguments)[visible], stock(x, **arguments)[visible]
                    )
            ours.train()
            ours(x, mask=causal).sum().backward()

    def test_backward_draws_the_dropout_before_the_second_linear_layer_again(self):
        """The layer saves its input, GELU's output once and one bit of branch mask per element."""
        layer = encoder_layer()
        ours = swapped(layer, tempo_modules.Masks())
        x = input_tensor().detach()
        saved, _ = tempo_modules.saved_bytes(lambda: ours._feed_forward(x), ours)
        elements = B * S * 4 * H
        self.assertEqual(saved, x.numel() * 8 + elements * 8 + elements // 8)

    def test_hugging_face_modules_are_known_by_name(self):
        class GELUActivation(nn.Module):
            pass

        class NewGELUActivation(nn.Module):
            pass

        class Mlp(nn.Module):
            def __init__(self, activation):
                super().__init__()
                self.act, self.dropout = activation, nn.Dropout(0.5)

            def forward(self, x):
                return self.dropout(self.act(x))

        x = input_tensor()
        for activation, approximate in ((GELUActivation(), "none"), (NewGELUActivation(), "tanh")):
            model = Mlp(activation)
            masks = tempo_modules.swap(model)
            dropped = model(x)
            masks.step += 1
            self.assertFalse(torch.equal(model(x), dropped))
            torch.testing.assert_close(model.eval()(x), F.gelu(x, approximate=approximate))

    def test_what_is_not_supported_is_refused(self):
        for wrong in (
            nn.TransformerEncoderLayer(H, A, activation="relu", batch_first=True),
            nn.TransformerEncoderLayer(H, A, activation="gelu"),
            nn.TransformerEncoderLayer(H, A, activation="gelu", batch_first=True, bias=False),
        ):
            with self.assertRaisesRegex(ValueError, "supported"):
                tempo_modules.swap(nn.Sequential(wrong))


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
