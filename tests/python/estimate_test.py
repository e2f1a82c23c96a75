"""`temposcope.estimate`: what a training step takes on a GPU that is not here.

    estimate_test.py BIN_FOLDER
"""

import dataclasses
import functools
import sys
import unittest

import temposcope
import torch
from commands import BIN, main, thorough
from torch import nn

WIDTH, LAYERS, BATCH = 256, 4, 512
PARAMETER_BYTES = 4 * LAYERS * (WIDTH * WIDTH + WIDTH)


class Net(nn.Sequential):
    """Of this main program: the process that trains it imports this file again."""

    def __init__(self):
        super().__init__(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, WIDTH)
        self.head = nn.Linear(WIDTH, 1000)
        self.head.weight = self.embedding.weight

    def forward(self, ids, labels):
        logits = self.head(self.embedding(ids))
        return Output(logits, nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()))


def square(output: torch.Tensor) -> torch.Tensor:
    return output.square().sum()


def on_meta(make):
    with torch.device("meta"):
        return make()


class Estimates(unittest.TestCase):
    def test_a_step_that_fits(self):
        estimate = temposcope.estimate(Net(), torch.zeros(BATCH, WIDTH), torch.optim.AdamW)
        self.assertTrue(estimate.fits())
        self.assertEqual((estimate.gpu, estimate.batch_size), ("a100-40gb", BATCH))
        self.assertEqual(estimate.breakdown["parameter"], PARAMETER_BYTES)
        self.assertGreaterEqual(estimate.breakdown["optimizer_state"], 2 * PARAMETER_BYTES)
        self.assertEqual(sum(estimate.breakdown.values()), estimate.peak_allocated_bytes)
        self.assertGreaterEqual(estimate.peak_reserved_bytes, estimate.peak_allocated_bytes)
        text = str(estimate)
        self.assertIn("A training step with a batch of 512 fits on a100-40gb.", text)
        self.assertIn("parameter", text)

    @thorough
    def test_values_do_not_matter(self):
        inputs = torch.zeros(BATCH, WIDTH)
        stays = temposcope.estimate(Net(), inputs, torch.optim.AdamW, loss=square)
        empty = temposcope.estimate(
            on_meta(Net), inputs.to("meta"), torch.optim.AdamW, loss=square
        )
        self.assertEqual(stays.breakdown, empty.breakdown)

    @thorough
    def test_an_optimizer_in_each_form(self):
        peaks = set()
        for make in (Net, functools.partial(on_meta, Net)):
            model = make()
            momentum = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)
            for optimizer in (momentum, momentum(model.parameters())):
                estimate = temposcope.estimate(model, torch.zeros(BATCH, WIDTH), optimizer)
                self.assertEqual(estimate.breakdown["optimizer_state"], PARAMETER_BYTES)
                peaks.add(estimate.peak_allocated_bytes)
        self.assertEqual(len(peaks), 1)

    @thorough
    def test_a_model_with_its_own_loss_and_shared_weights(self):
        ids = torch.zeros(8, 64, dtype=torch.long)
        for make in (WithLoss, functools.partial(on_meta, WithLoss)):
            estimate = temposcope.estimate(make(), {"ids": ids, "labels": ids})
            self.assertTrue(estimate.fits())
            self.assertEqual(estimate.breakdown["parameter"], 4 * (1000 * WIDTH + 1000))

    @thorough
    def test_autocast_takes_less(self):
        inputs = torch.zeros(1 << 16, WIDTH)
        whole = temposcope.estimate(Net(), inputs)
        halves = temposcope.estimate(Net(), inputs, autocast=torch.bfloat16)
        self.assertLess(halves.peak_allocated_bytes, whole.peak_allocated_bytes)

    @thorough
    def test_the_largest_batch(self):
        def estimate_of(batch: int) -> temposcope.Estimate:
            model = on_meta(lambda: nn.Linear(1 << 15, 1 << 15))  # 4 GiB
            inputs = torch.zeros(batch, 1 << 15, device="meta")
            return temposcope.estimate(model, inputs, torch.optim.SGD, gpu="t4")

        largest = estimate_of(2).largest_batch()
        self.assertGreater(largest, 1000)
        self.assertTrue(estimate_of(largest).fits())
        self.assertFalse(estimate_of(largest + 1).fits())

    def test_a_step_that_does_not_fit(self):
        model = on_meta(lambda: nn.Linear(1 << 16, 1 << 16, bias=False))  # 16 GiB
        estimate = temposcope.estimate(model, torch.zeros(1, 1 << 16), torch.optim.SGD, gpu="t4")
        self.assertFalse(estimate.fits())
        self.assertEqual(estimate.largest_batch(), 0)
        self.assertIn("runs out of memory on t4", str(estimate))


class Refused(unittest.TestCase):
    def assert_refused(self, sentence: str, *arguments, **options):
        with self.assertRaisesRegex(temposcope.RecordingError, sentence):
            temposcope.estimate(*arguments, **options)

    def test_what_cannot_be_pickled(self):
        inputs = torch.zeros(2, WIDTH)
        self.assert_refused("cannot be pickled", Net(), inputs, loss=lambda output: output.sum())

    def test_a_gpu_that_is_not_known(self):
        self.assert_refused("h1000", Net(), torch.zeros(2, WIDTH), gpu="h1000")

    def test_a_step_that_fails(self):
        self.assert_refused("the step failed with RuntimeError", Net(), torch.zeros(2, 3))

    def test_inputs_without_a_batch(self):
        with self.assertRaisesRegex(ValueError, "no tensor of a batch"):
            temposcope.estimate(Net(), torch.tensor(1.0))


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: estimate_test.py BIN_FOLDER")
    main()
