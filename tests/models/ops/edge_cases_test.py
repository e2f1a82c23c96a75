"""torch.ops.tempo where ops usually break: threads, layouts, p = 1, masks together, 16-bit types,
small gammas, second derivatives, and an op that no other test knows.

Run by ctest with the virtual environment's Python: `edge_cases_test.py LIBTEMPO_OPS`.
"""

import os
import subprocess
import sys
import unittest

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

from ops_test import KEY, attention, cases, norm_arguments, randn, tempo


def gradients(op, arguments):
    """Outputs of one call and gradients of all its leaves, for random upstream gradients."""
    outputs = op(*arguments)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    upstream = [randn(*y.shape, grad=False, seed=9).to(y.dtype) for y in outputs]
    return outputs + list(torch.autograd.grad(outputs, leaves, upstream))


def large_cases():
    """Enough elements for several threads, in rows that are not a multiple of any vector."""
    x, gamma, beta = norm_arguments(300, 515, dtype=torch.float32)
    residual = randn(300, 515, dtype=torch.float32, seed=2)
    scores, value = randn(6, 129, 129, dtype=torch.float32), randn(6, 129, 8, dtype=torch.float32)
    for masks in ("byte", "bit", "philox"):
        yield tempo.dropout, (x, 0.3, masks, KEY)
        yield tempo.gelu, (x, False, masks)
        yield tempo.bias_gelu, (x, gamma, True, masks)
        yield tempo.residual_layer_norm_sum, (x, residual, gamma, beta, 0.3, masks, KEY)
        yield tempo.attention_core, (scores, value, None, 0.5, True, 2, 0.3, masks, KEY)
    for save in ("output", "normalized"):
        yield tempo.layer_norm, (x, gamma, beta, 1e-5, save)


class Threads(unittest.TestCase):
    def tearDown(self):
        torch.set_num_threads(1)

    def test_results_do_not_depend_on_threads_nor_on_the_run(self):
        for op, arguments in large_cases():
            with self.subTest(op=str(op), arguments=str(arguments[-3:])):
                torch.set_num_threads(1)
                expected = gradients(op, arguments)
                for threads in (1, 2, 5):
                    torch.set_num_threads(threads)
                    for a, b in zip(gradients(op, arguments), expected):
                        self.assertTrue(torch.equal(a, b))

    @unittest.skipUnless(os.path.isdir("/proc/self/task"), "threads are counted in /proc")
    def test_ops_run_on_torchs_threads(self):
        """The first parallel loop starts n - 1 threads; torch's own op then starts none."""
        program = """
import os, sys, torch
torch.ops.load_library(sys.argv[1])
x = torch.randn(1 << 20)
def threads():
    return len(os.listdir("/proc/self/task"))
torch.set_num_threads(4)
counts = [threads()]
torch.ops.tempo.gelu(x)
counts.append(threads())
torch.softmax(x.view(1024, 1024), -1)
counts.append(threads())
print(*counts)
"""
        run = [sys.executable, "-W", "ignore", "-c", program, LIBRARY]
        start, ours, both = map(int, subprocess.check_output(run, text=True).split())
        self.assertEqual((ours - start, both - ours), (3, 0))


class SecondDerivatives(unittest.TestCase):
    """Backward consists of ops without autograd. Without the error, their share of a second
    derivative would silently be zero."""

    def test_are_refused_by_the_op_that_lacks_them(self):
        for op, arguments in cases():
            if op is tempo.gelu_linear:
                continue
            name = op._qualified_op_name.removesuffix("_sum")
            with self.subTest(op=name):
                leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
                y = op(*arguments)
                y = y if isinstance(y, torch.Tensor) else y[0]
                dy = randn(*y.shape, seed=9)
                plain = torch.autograd.grad(y, leaves, dy, retain_graph=True)
                first = torch.autograd.grad(y, leaves, dy, create_graph=True)
                for a, b in zip(first, plain):
                    self.assertTrue(torch.equal(a, b))
                loss = sum(gradient.square().sum() for gradient in first)
                for target in (*leaves, dy):  # each way to what the gradients depend on
                    with self.assertRaisesRegex(RuntimeError, f"{name} has no second derivative"):
                        torch.autograd.grad(loss, target, retain_graph=True)
                with self.assertRaisesRegex(RuntimeError, f"{name} has no second derivative"):
                    loss.backward()

    def test_exist_where_backward_is_torchs(self):
        arguments = (randn(4, 17), randn(6, 17), randn(6))
        for tanh in (False, True):
            self.assertTrue(
                torch.autograd.gradgradcheck(
                    lambda *leaves, tanh=tanh: tempo.gelu_linear(*leaves, tanh), arguments
                )
            )

    def test_a_checkpoint_is_no_second_derivative(self):
        """Backward enables gradients while it computes the forward again."""
        x, scores, value = randn(4, 8), randn(4, 5, 5), randn(4, 5, 3)

        def run(x, scores, value):
            y = tempo.dropout(tempo.gelu(tempo.layer_norm(x, None, None)), 0.3, "bit", KEY)
            return y.sum() * attention(scores, value)

        expected = torch.autograd.grad(run(x, scores, value).sum(), [x, scores, value])
        for reentrant in (False, True):
            y = torch.utils.checkpoint.checkpoint(run, x, scores, value, use_reentrant=reentrant)
            y.sum().backward()
            for leaf, gradient in zip((x, scores, value), expected):
                torch.testing.assert_close(leaf.grad, gradient)
                leaf.grad = None


class FunctionalUse(unittest.TestCase):
    """The pairs without autograd, called from functions of a user's own."""

    def test_a_saved_tensor_that_a_pair_overwrites_is_refused(self):
        x = randn(4, 5, 5)
        probs, _, keep = tempo.softmax_dropout_forward(
            x.detach(), None, 1.0, False, 2, 0.3, "bit", KEY
        )
        y = x * 1
        squared = y.square()  # saves y
        with torch.no_grad():
            tempo.softmax_dropout_backward_(y, probs, keep, 1.0, 0.3, "bit", KEY)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            squared.sum().backward()

    def test_arguments_that_are_written_count_up_their_version(self):
        x = randn(4, 16, grad=False)
        biased = torch.empty_like(x)
        tempo.bias_residual_norm_forward(
            x, x[0], x, x[0], x[1], biased, 0.5, "element", KEY, 1e-5
        )
        self.assertEqual((biased._version, x._version), (1, 0))

    def test_a_pair_has_no_derivative_and_says_so(self):
        x = randn(4, 16)
        y, _ = tempo.dropout_forward(x, 0.3, "bit", KEY)
        with self.assertRaisesRegex(RuntimeError, "tempo::dropout_forward is not implemented"):
            y.sum().backward()
        scores = randn(2, 4, 4) * 1
        with self.assertRaisesRegex(RuntimeError, "argument ddropped requires a gradient"):
            tempo.softmax_dropout_backward_(scores, scores, x, 1.0, 0.0, "bit", KEY)


class EdgeCases(unittest.TestCase):
    def test_every_op_is_checked_by_opcheck(self):
        """cases() has the differentiable ops; the rest are their forwards and backwards, and the
        table of recipes."""
        names = {
            name.split("::")[1]
            for name in torch._C._dispatch_get_all_op_names()
            if name.startswith("tempo::")
            and not name.startswith(("tempo::recipe_", "tempo::allow_"))
        }
        differentiable = {op._qualified_op_name.split("::")[1] for op, _ in cases()}
        endings = ("_forward", "_backward", "_recompute", "_backward_")
        self.assertEqual({n for n in names if not n.endswith(endings)}, differentiable)
        self.assertEqual(len(names), 36)  # the pairs: test_opcheck_of_...

    def test_attention_of_any_layout(self):
        scores, value = randn(4, 7, 7), randn(4, 7, 3)
        strided = [t.detach().transpose(1, 2).contiguous().transpose(1, 2) for t in (scores, value)]
        for t in strided:
            self.assertFalse(t.is_contiguous())
            t.requires_grad_()
        dy = randn(4, 3, 7, grad=False).transpose(1, 2)
        for p in (0.0, 0.3):
            dense = torch.autograd.grad(attention(scores, value, p=p), [scores, value], dy)
            others = torch.autograd.grad(attention(*strided, p=p), strided, dy)
            for a, b in zip(others, dense):
                torch.testing.assert_close(a, b)

    def test_additive_and_causal_mask_together(self):
        scores, value = randn(4, 5, 5), randn(4, 5, 3)
        padding = torch.tensor([[0.0, 0, 0, 0, -1e4], [0, 0, 0, -1e4, -1e4]], dtype=torch.float64)
        hidden = torch.full((5, 5), float("-inf"), dtype=torch.float64).triu(1)
        ours = attention(scores, value, mask=padding, causal=True, p=0.0)
        added = padding.repeat_interleave(2, 0)[:, None, :] + hidden
        stock = torch.softmax(scores * 0.5 + added, -1) @ value
        torch.testing.assert_close(ours, stock)
        dy = randn(4, 5, 3, grad=False, seed=3)
        for a, b in zip(*(torch.autograd.grad(y, [scores, value], dy) for y in (ours, stock))):
            torch.testing.assert_close(a, b)

    def test_a_causal_row_that_sees_only_padding_is_nan_as_torchs(self):
        scores, value = randn(4, 67, 67, grad=False), randn(4, 67, 3, grad=False)
        padding = torch.zeros(2, 67, dtype=torch.float64)
        padding[1, :2] = float("-inf")
        hidden = torch.full((67, 67), float("-inf"), dtype=torch.float64).triu(1)
        added = padding.repeat_interleave(2, 0)[:, None, :] + hidden
        ours = tempo.softmax_dropout_forward(scores, padding, 0.5, True, 2, 0.0, "byte", KEY)[0]
        stock = torch.softmax(scores * 0.5 + added, -1)
        self.assertEqual(int(stock.isnan().sum()), 2 * 2 * 67)
        torch.testing.assert_close(ours, stock, equal_nan=True)

    def test_probability_1_gives_zeros_and_zero_gradients(self):
        x, gamma, beta = norm_arguments(3, 40)
        scores, value = randn(4, 5, 5), randn(4, 5, 3)
        for masks in ("byte", "bit", "philox"):
            for y, leaves in (
                (tempo.dropout(x, 1.0, masks, KEY), [x]),
                (attention(scores, value, p=1.0, masks=masks), [scores, value]),
            ):
                self.assertEqual(y.abs().max(), 0)
                for gradient in torch.autograd.grad(y.sum(), leaves):
                    self.assertEqual(gradient.abs().max(), 0)
            y = tempo.residual_layer_norm(x, x.detach(), gamma, beta, 1.0, masks, KEY)
            torch.testing.assert_close(y, F.layer_norm(x, (40,), gamma, beta))
            self.assertEqual(torch.autograd.grad(y.square().sum(), x)[0].abs().max(), 0)

    def test_layer_norm_in_16_bits_and_without_affine(self):
        """Against torch in double on the same stored values, within roundings of the type."""
        for dtype in (torch.float16, torch.bfloat16):
            x, gamma, beta = norm_arguments(9, 65, dtype=dtype)
            eps = torch.finfo(dtype).eps
            for affine in ((gamma, beta), (gamma, None), (None, beta), (None, None)):
                leaves = [x] + [t for t in affine if t is not None]
                wide = [t.detach().double().requires_grad_() for t in leaves]
                given = iter(wide[1:])
                wide_affine = [None if t is None else next(given) for t in affine]
                dy = randn(9, 65, dtype=dtype, grad=False, seed=4)
                expected = F.layer_norm(wide[0], (65,), *wide_affine, 1e-5)
                truth = torch.autograd.grad(expected, wide, dy.double())
                for save in ("output", "normalized"):
                    y = tempo.layer_norm(x, *affine, 1e-5, save)
                    torch.testing.assert_close(y.double(), expected, rtol=eps, atol=eps)
                    for a, b in zip(torch.autograd.grad(y, leaves, dy), truth):
                        torch.testing.assert_close(a.double(), b, rtol=2 * eps, atol=16 * eps)

    def test_gamma_of_zero_needs_the_normalized_value(self):
        x, gamma, beta = norm_arguments(6, 32)
        with torch.no_grad():
            gamma[::5] = 0
        y = tempo.layer_norm(x, gamma, beta, 1e-5, "normalized")
        stock = F.layer_norm(x, (32,), gamma, beta, 1e-5)
        dy = randn(6, 32, grad=False, seed=5)
        for a, b in zip(*(torch.autograd.grad(r, [x, gamma, beta], dy) for r in (y, stock))):
            torch.testing.assert_close(a, b)

    def test_attention_in_16_bits(self):
        for dtype in (torch.float16, torch.bfloat16):
            eps = torch.finfo(dtype).eps
            scores, value = randn(4, 33, 33, dtype=dtype), randn(4, 33, 8, dtype=dtype)
            wide = [t.detach().double().requires_grad_() for t in (scores, value)]
            dy = randn(4, 33, 8, dtype=dtype, grad=False, seed=6)
            ours = attention(scores, value, p=0.3)
            truth = attention(*wide, p=0.3)  # the same mask
            torch.testing.assert_close(ours.double(), truth, rtol=2 * eps, atol=2 * eps)
            for a, b in zip(
                torch.autograd.grad(ours, [scores, value], dy),
                torch.autograd.grad(truth, wide, dy.double()),
            ):
                torch.testing.assert_close(a.double(), b, rtol=4 * eps, atol=4 * eps)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop()
    torch.ops.load_library(LIBRARY)
    unittest.main(verbosity=1)
