"""Goal: a loss in chunks is torch's loss, without the logits of a large vocabulary.
Method: small models with and without it; gradients, calls around the loss, what keeps the logits.
"""

import unittest

import torch
import torch.nn.functional as F
from torch import nn

import temposcope
from temposcope._chunked_loss import PromisedLogits, is_head

VOCABULARY = 8192


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).tanh())


def _pair() -> tuple[Model, Model]:
    torch.manual_seed(5)
    plain, chunked = Model(), Model()
    chunked.load_state_dict(plain.state_dict())
    temposcope.swap(chunked, "chunked-loss")
    return plain, chunked


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(7))


LOSSES = {
    "flattened": lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten()),
    "viewed": lambda y, t: F.cross_entropy(y.view(-1, VOCABULARY), t.view(-1)),
    "in float32": lambda y, t: F.cross_entropy(y.float().view(-1, y.size(-1)), t.view(-1)),
    "shifted": lambda y, t: F.cross_entropy(
        y[..., :-1, :].contiguous().view(-1, VOCABULARY), t[..., 1:].reshape(-1)
    ),
    "summed": lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten(), reduction="sum") / 100,
    "one by one": lambda y, t: F.cross_entropy(
        y.flatten(0, 1), t.flatten(), reduction="none"
    ).mean(),
    "weighted, smoothed, some ignored": lambda y, t: F.cross_entropy(
        y.flatten(0, 1),
        torch.where(t % 3 == 0, -100, t).flatten(),
        weight=torch.linspace(0.5, 2, VOCABULARY),
        label_smoothing=0.1,
    ),
    "capped softly": lambda y, t: F.cross_entropy(
        (15 * torch.tanh(y / 15)).flatten(0, 1).mul(0.5), t.flatten()
    ),
    "a module": lambda y, t: nn.CrossEntropyLoss()(y.flatten(0, 1), t.flatten()),
}


class ChunkedLoss(unittest.TestCase):
    def test_it_is_torchs_loss_with_torchs_gradients(self):
        for name, loss_of in LOSSES.items():
            with self.subTest(name):
                tokens = _tokens(3, 11)
                results = []
                for model in _pair():
                    loss = loss_of(model(tokens), tokens)
                    loss.backward()
                    results.append([loss.detach(), *(p.grad for p in model.parameters())])
                torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-7)

    def test_no_op_makes_or_keeps_the_logits_as_a_whole(self):
        _, chunked = _pair()
        tokens = _tokens(4, 16)
        weight = 32 * VOCABULARY
        for name in ("flattened", "capped softly"):
            with self.subTest(name):
                sizes = []
                with torch.autograd.graph.saved_tensors_hooks(
                    lambda x, sizes=sizes: sizes.append(x.numel()) or x, lambda x: x
                ):
                    loss = LOSSES[name](chunked(tokens), tokens)
                kept = [size for size in sizes if size >= 8 * VOCABULARY and size != weight]
                self.assertEqual(kept, [])
                loss.backward()

    def test_other_uses_get_the_logits(self):
        plain, chunked = _pair()
        tokens = _tokens(2, 5)
        logits = chunked(tokens)
        self.assertIsInstance(logits, PromisedLogits)
        self.assertEqual(logits.shape, (2, 5, VOCABULARY))
        torch.testing.assert_close(logits.argmax(-1), plain(tokens).argmax(-1))
        torch.testing.assert_close(logits.softmax(-1).sum(), plain(tokens).softmax(-1).sum())
        torch.testing.assert_close(logits.detach(), plain(tokens).detach())

    def test_without_training_nothing_is_promised(self):
        _, chunked = _pair()
        with torch.no_grad():
            self.assertIs(type(chunked(_tokens(2, 5))), torch.Tensor)
        chunked.eval()
        self.assertIs(type(chunked(_tokens(2, 5))), torch.Tensor)

    def test_under_autocast_the_logits_have_its_type(self):
        _, chunked = _pair()
        with torch.autocast("cpu", torch.bfloat16):
            logits = chunked(_tokens(2, 5))
            self.assertIs(logits.dtype, torch.bfloat16)
            self.assertIs(logits.make().dtype, torch.bfloat16)

    def test_a_report_names_the_heads_or_says_that_there_is_none(self):
        report = temposcope.swap(Model(), "chunked-loss")
        self.assertEqual(report.replaced, {"heads": ("head",)})
        none = temposcope.swap(nn.Sequential(nn.Linear(8, 8)), "chunked-loss")
        self.assertIn("no linear layer makes a vocabulary", str(none))

    def test_it_stands_beside_other_switches_and_is_taken_away(self):
        model = nn.Sequential(nn.LayerNorm(32), nn.GELU(), nn.Linear(32, VOCABULARY))
        report = temposcope.swap(model, "tempo,loss=chunked")
        self.assertEqual(set(report.replaced), {"LayerNorm", "GELU", "heads"})
        temposcope.swap(model, "original-stock")
        self.assertIs(type(model[2]), nn.Linear)

    def test_small_heads_stay(self):
        self.assertFalse(is_head(nn.Linear(32, 1000)))
        self.assertFalse(is_head(nn.Linear(4096, 8192)))
        self.assertTrue(is_head(nn.Linear(768, 30522)))


if __name__ == "__main__":
    unittest.main()
