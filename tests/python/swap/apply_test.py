"""A recipe on a program that knows nothing of it."""

import unittest

import small_models
import torch
import torch.nn as nn

from temposcope._apply import Applied


class Apply(unittest.TestCase):
    def setUp(self):
        self.told = []
        self.applied = Applied("tempo", [], lambda model, report: self.told.append((model, report)))
        self.addCleanup(self.applied.end)

    def test_a_model_is_swapped_once_when_it_is_first_trained(self):
        model = small_models.build("BERT").eval()
        loss = nn.MSELoss()
        small_models.run("BERT", model)  # not in training mode
        model.train()
        with torch.no_grad():
            small_models.run("BERT", model)
        self.assertEqual(self.told, [])
        for _ in range(3):
            output = small_models.run("BERT", model)
            loss(output, torch.zeros_like(output)).backward()
        self.assertEqual([one for one, _ in self.told], [model])
        self.assertIn("2 GELU, 5 LayerNorm, 7 dropouts, 2 attention cores", str(self.told[0][1]))

    def test_the_first_step_already_runs_swapped(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.GELU())
        output = model(torch.randn(2, 8))
        self.assertIn("InplaceGelu", output.grad_fn.name())

    def test_two_models_of_one_program(self):
        one, other = nn.Sequential(nn.LayerNorm(8)), nn.Sequential(nn.LayerNorm(8))
        for model in (one, other, one):
            model(torch.randn(2, 8))
        self.assertEqual([model for model, _ in self.told], [one, other])

    def test_not_after_its_end(self):
        self.applied.end()
        nn.Sequential(nn.LayerNorm(8))(torch.randn(2, 8))
        self.assertEqual(self.told, [])

    def test_a_wrong_recipe_is_an_error_at_once(self):
        with self.assertRaisesRegex(ValueError, "is not a recipe"):
            Applied("temp", [], print)


if __name__ == "__main__":
    unittest.main()
