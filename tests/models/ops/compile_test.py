"""torch.ops.tempo under torch.compile: traced with fake tensors, static and dynamic shapes, and a
step that is counted.

Run by ctest with the virtual environment's Python: `compile_test.py LIBTEMPO_OPS`.
"""

import sys
import unittest

import torch
import torch._dynamo.testing

from example_test import encoder_layer, input_tensor, tempo_modules
from ops_test import attention, randn, tempo


class Block(torch.nn.Module):
    """Calls every op once; the keys of its dropouts contain the step."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x, step):
        key = [7, 0, step, 2, 3]
        h = tempo.dropout(tempo.gelu(self.linear(x)), 0.2, "bit", key)
        h, total = tempo.residual_layer_norm_sum(
            h, x, self.norm.weight, self.norm.bias, 0.2, "bit", key
        )
        h = tempo.bias_gelu(h + total, self.linear.bias)
        h = tempo.residual_layer_norm(
            h, total, self.norm.weight, self.norm.bias, 0.1, "philox", key
        )
        h = tempo.layer_norm(tempo.gelu_linear(h, self.linear.weight, self.linear.bias), None, None)
        return attention(h @ h.transpose(1, 2), h, num_heads=1, p=0.2, key=key)


class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        self.counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")

    def check(self, model, compiled, x, *arguments):
        """Checks that values and all gradients equal those of eager mode. Returns the values."""
        leaves = [x, *model.parameters()]
        ys = model(x, *arguments), compiled(x, *arguments)
        torch.testing.assert_close(ys[1], ys[0])
        grads = [torch.autograd.grad(y.square().sum(), leaves) for y in ys]
        torch.testing.assert_close(grads[1], grads[0])
        return ys[0]

    def test_shapes_static_then_dynamic(self):
        block = Block().double()
        compiled = torch.compile(block, backend=self.counter, fullgraph=True)
        for batch in (2, 3, 5, 6):
            self.check(block, compiled, randn(batch, 6, 16), 1)
        self.assertLessEqual(self.counter.frame_count, 2)

    def test_a_counted_step_is_traced_twice_and_not_each_time(self):
        """It is traced with the first step as a constant, then with a symbolic step."""
        block = Block().double()
        compiled = torch.compile(block, backend=self.counter, fullgraph=True)
        x = randn(2, 6, 16)
        results = [self.check(block, compiled, x, step) for step in range(12)]
        for before, after in zip(results, results[1:]):
            self.assertFalse(torch.equal(before, after))
        self.assertLessEqual(self.counter.frame_count, 2)

    def test_the_examples_step_with_the_setting_that_its_page_names(self):
        model = torch.nn.TransformerEncoder(encoder_layer(), 2)
        masks = tempo_modules.swap(model)
        compiled = torch.compile(model, backend=self.counter)
        x = input_tensor()
        with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):
            results = []
            for masks.step in range(12):
                results.append(self.check(model, compiled, x))
        for before, after in zip(results, results[1:]):
            self.assertFalse(torch.equal(before, after))
        self.assertLessEqual(self.counter.frame_count, 2)


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
