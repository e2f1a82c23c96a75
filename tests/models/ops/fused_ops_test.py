"""The fused ops of torch.ops.tempo against their steps as separate ops.

Run by ctest with the virtual environment's Python: `fused_ops_test.py LIBTEMPO_OPS`. What holds for
every op (opcheck, gradcheck, torch.compile, autocast, kept bytes, errors) is in ops_test.py.
"""

import sys
import unittest

import torch

from ops_test import KEY, norm_arguments, randn, tempo


class FusedOps(unittest.TestCase):
    def test_fused_forms_equal_their_steps(self):
        """Values and gradients have the same bits; 16-bit bias_gelu rounds once less."""
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            for shape in ((7, 24), (3, 4, 33), (130, 64)):
                with self.subTest(dtype=dtype, shape=shape):
                    self.check_residual_layer_norm(shape, dtype)
                    self.check_bias_gelu(shape, dtype)

    def check_residual_layer_norm(self, shape, dtype):
        x, gamma, beta = norm_arguments(*shape, dtype=dtype)
        residual = randn(*shape, dtype=dtype, seed=2)
        leaves = [x, residual, gamma, beta]
        dy, dsum = (randn(*shape, dtype=dtype, grad=False, seed=s) for s in (3, 4))
        for p in (0.0, 0.3, 1.0):
            dropped = tempo.dropout(x, p, "bit", KEY) if p > 0 else x
            total = residual + dropped
            y = tempo.layer_norm(total, gamma, beta)
            fused, fused_total = tempo.residual_layer_norm_sum(
                x, residual, gamma, beta, p, "bit", KEY
            )
            alone = tempo.residual_layer_norm(x, residual, gamma, beta, p, "bit", KEY)
            for a, b in ((fused, y), (fused_total, total), (alone, y)):
                self.assertTrue(torch.equal(a, b))
            for outputs, expected, upstream in (
                ([fused, fused_total], [y, total], [dy, dsum]),
                ([fused_total], [total], [dsum]),
                ([alone], [y], [dy]),
            ):
                ours = torch.autograd.grad(
                    outputs, leaves, upstream, retain_graph=True, allow_unused=True
                )
                steps = torch.autograd.grad(
                    expected, leaves, upstream, retain_graph=True, allow_unused=True
                )
                for a, b in zip(ours, steps):
                    b = torch.zeros_like(a) if b is None else b
                    self.assertTrue(torch.equal(a, b))

    def check_bias_gelu(self, shape, dtype):
        x, bias = randn(*shape, dtype=dtype), randn(shape[-1], dtype=dtype, seed=5)
        dy = randn(*shape, dtype=dtype, grad=False, seed=3)
        for tanh in (False, True):
            runs = [tempo.bias_gelu(x, bias, tanh), tempo.gelu(x + bias, tanh)]
            grads = [torch.autograd.grad(y, [x, bias], dy) for y in runs]
            if dtype in (torch.float32, torch.float64):
                self.assertTrue(torch.equal(runs[0], runs[1]))
                self.assertTrue(torch.equal(grads[0][0], grads[1][0]))
            else:
                eps = torch.finfo(dtype).eps  # the sum's rounding: |x + bias| is below 8
                torch.testing.assert_close(runs[0], runs[1], rtol=eps, atol=4 * eps)
            torch.testing.assert_close(
                grads[0][1].float(), grads[0][0].float().flatten(0, -2).sum(0), rtol=0.01, atol=0.01
            )
        frozen = torch.autograd.grad(tempo.bias_gelu(x, bias.detach()), x, dy)[0]
        self.assertEqual(frozen.shape, x.shape)

    def test_rows_that_the_cuda_kernel_does_not_hold(self):
        """Devices other than the CPU run such a row step by step; the shapes agree."""
        for size in (24, 33, 8200):
            x = torch.randn(5, size, device="meta", requires_grad=True)
            weight = torch.ones(size, device="meta", requires_grad=True)
            y, total = tempo.residual_layer_norm_sum(x, x, weight, None, 0.1, "bit", KEY)
            dx, dweight = torch.autograd.grad((y + total).sum(), [x, weight])
            self.assertEqual((dx.shape, dweight.shape), (x.shape, weight.shape))


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
