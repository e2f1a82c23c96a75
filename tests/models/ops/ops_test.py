"""torch.ops.tempo as a Python program sees it, against torch's own ops.

Run by ctest with the virtual environment's Python: `ops_test.py LIBTEMPO_OPS LIBTEMPO_OPS_CUDA`.
Every op is checked by torch.library.opcheck (schema, fake tensors, autograd registration,
AOTAutograd with dynamic shapes), by gradcheck in float64, under torch.compile and autocast, without
gradients, with inputs that are not contiguous or empty, and with arguments that are wrong.
"""

import sys
import unittest
import warnings

warnings.filterwarnings("ignore", message=".*NumPy.*")
import torch
import torch.nn.functional as F

tempo = torch.ops.tempo
KEY = [7, 0, 1, 2, 3]
OPCHECK_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


def randn(*shape, dtype=torch.float64, grad=True, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(grad)


def attention(scores, value, mask=None, scale=0.5, causal=False, num_heads=2, p=0.25, masks="bit"):
    return tempo.attention_core(scores, value, mask, scale, causal, num_heads, p, masks, KEY)


def norm_arguments(*shape, dtype=torch.float64):
    gamma = (1 + 0.1 * randn(shape[-1], grad=False).to(dtype)).requires_grad_()
    beta = (0.1 * randn(shape[-1], grad=False, seed=1).to(dtype)).requires_grad_()
    return randn(*shape, dtype=dtype), gamma, beta


def cases():
    """(op, arguments) of every differentiable op, each mask kind once."""
    x, gamma, beta = norm_arguments(3, 5, 16)
    yield tempo.dropout, (randn(5, 13), 0.25, "byte", KEY)
    yield tempo.dropout, (randn(5, 13), 0.25, "bit", KEY)
    yield tempo.dropout, (randn(5, 13), 0.25, "philox", KEY)
    yield tempo.gelu, (randn(4, 17), False, "byte")
    yield tempo.gelu, (randn(4, 17), True, "bit")
    yield tempo.gelu_linear, (randn(4, 17), randn(6, 17), randn(6), False)
    yield tempo.bias_gelu, (randn(4, 17), randn(17, seed=1), False, "byte")
    yield tempo.bias_gelu, (randn(2, 3, 16), randn(16, seed=1), True, "bit")
    for p, masks in ((0.25, "byte"), (0.25, "bit"), (0.25, "philox"), (0.0, "bit")):
        for save in ("output", "normalized"):
            arguments = (randn(3, 5, 16, seed=2), p, masks, KEY, 1e-5, save)
            yield tempo.residual_layer_norm, (x, arguments[0], gamma, beta, *arguments[1:])
    yield tempo.residual_layer_norm, (x, randn(3, 5, 16, seed=2), None, None, 0.25, "bit", KEY)
    yield tempo.residual_layer_norm_sum, (
        x,
        randn(3, 5, 16, seed=2),
        gamma,
        beta,
        0.25,
        "bit",
        KEY,
    )
    yield tempo.layer_norm, (x, gamma, beta, 1e-5, "output")
    yield tempo.layer_norm, (x, gamma, beta, 1e-5, "normalized")
    yield tempo.layer_norm, (x, None, None, 1e-5, "output")
    mask = torch.tensor([[0.0, 0, 0, 0, -1e4], [0, 0, 0, -1e4, -1e4]], dtype=torch.float64)
    for masks in ("byte", "bit", "philox"):
        yield tempo.attention_core, (
            randn(4, 5, 5),
            randn(4, 5, 3),
            mask,
            0.5,
            False,
            2,
            0.25,
            masks,
            KEY,
        )
    yield tempo.attention_core, (
        randn(4, 5, 5),
        randn(4, 5, 3),
        None,
        0.5,
        True,
        2,
        0.0,
        "byte",
        KEY,
    )


class Ops(unittest.TestCase):
    def test_opcheck(self):
        for op, arguments in cases():
            with self.subTest(op=str(op), arguments=str(arguments[1:])[:60]):
                torch.library.opcheck(op.default, arguments, test_utils=OPCHECK_TESTS)

    def test_opcheck_of_the_pairs_without_autograd(self):
        x = randn(4, 16, grad=False)
        scores = randn(4, 5, 5, grad=False)
        for masks in ("byte", "bit", "philox"):
            torch.library.opcheck(tempo.dropout_forward.default, (x, 0.5, masks, KEY))
            torch.library.opcheck(tempo.gelu_forward.default, (x, False, masks))
            torch.library.opcheck(
                tempo.softmax_dropout_forward.default,
                (scores, None, 0.5, True, 2, 0.5, masks, KEY),
            )
        for save in ("output", "normalized"):
            torch.library.opcheck(tempo.layer_norm_forward.default, (x, x[0], None, 1e-5, save))
        y, keep = tempo.dropout_forward(x, 0.5, "byte", KEY)
        torch.library.opcheck(tempo.dropout_backward.default, (y, keep, 0.5, "byte", KEY))
        y, branch = tempo.gelu_forward(x, False, "bit")
        torch.library.opcheck(tempo.gelu_backward.default, (x, y, branch, False, "bit"))
        y, _, rstd = tempo.layer_norm_forward(x, None, None, 1e-5, "output")
        torch.library.opcheck(tempo.layer_norm_backward.default, (x, y, None, None, rstd, "output"))
        y, branch = tempo.bias_gelu_forward(x, x[0], False, "bit")
        torch.library.opcheck(tempo.bias_gelu_forward.default, (x, x[0], False, "bit"))
        residual_arguments = (x, x, None, None, 0.5, "byte", KEY, 1e-5, "output", True)
        torch.library.opcheck(tempo.residual_layer_norm_forward.default, residual_arguments)
        y, total, _, rstd, keep = tempo.residual_layer_norm_forward(*residual_arguments)
        for dsum in (None, total):
            torch.library.opcheck(
                tempo.residual_layer_norm_backward.default,
                (x, dsum, y, None, None, rstd, keep, 0.5, "byte", KEY, "output"),
            )
        probs, dropped, keep = tempo.softmax_dropout_forward(
            scores, None, 0.5, False, 2, 0.5, "bit", KEY
        )
        torch.library.opcheck(
            tempo.softmax_dropout_recompute.default, (probs, keep, 0.5, "bit", KEY)
        )
        torch.library.opcheck(
            tempo.softmax_dropout_backward_.default, (dropped, probs, keep, 0.5, 0.5, "bit", KEY)
        )

    def test_gradients_equal_numerical_ones(self):
        # A GELU from its output is worst at x* = -0.7518: 2e-9 in fp64, far below gradcheck's 1e-6.
        for op, arguments in cases():
            with self.subTest(op=str(op)):
                tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]

                def run(*leaves, op=op, arguments=arguments):
                    given = iter(leaves)
                    return op(
                        *[
                            next(given) if isinstance(a, torch.Tensor) and a.requires_grad else a
                            for a in arguments
                        ]
                    )

                self.assertTrue(torch.autograd.gradcheck(run, tensors))

    def test_values_equal_torch(self):
        x, gamma, beta = norm_arguments(6, 64)
        torch.testing.assert_close(tempo.gelu(x), F.gelu(x))
        torch.testing.assert_close(tempo.gelu(x, True), F.gelu(x, approximate="tanh"))
        torch.testing.assert_close(
            tempo.layer_norm(x, gamma, beta), F.layer_norm(x, (64,), gamma, beta)
        )
        scores, value = randn(4, 7, 7), randn(4, 7, 3)
        expected = torch.softmax(scores * 0.5, -1) @ value
        torch.testing.assert_close(attention(scores, value, p=0.0), expected)
        causal = torch.full((7, 7), float("-inf"), dtype=torch.float64).triu(1)
        torch.testing.assert_close(
            attention(scores, value, p=0.0, causal=True),
            torch.softmax(scores * 0.5 + causal, -1) @ value,
        )

    def test_dropout_of_probability_0_and_1(self):
        x = randn(3, 40)
        torch.testing.assert_close(tempo.dropout(x, 0.0, "byte", KEY), x)
        self.assertEqual(tempo.dropout(x, 1.0, "byte", KEY).abs().max(), 0)

    def test_mask_kinds_agree(self):
        x = randn(9, 50, dtype=torch.float32)
        outputs = [tempo.dropout(x, 0.3, masks, KEY) for masks in ("byte", "bit", "philox")]
        for output in outputs[1:]:
            self.assertTrue(torch.equal(outputs[0], output))

    def test_torch_compile(self):
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(16, 16)
                self.norm = torch.nn.LayerNorm(16)

            def forward(self, x):
                h = tempo.dropout(tempo.gelu(self.linear(x)), 0.2, "bit", KEY)
                h, total = tempo.residual_layer_norm_sum(
                    h, x, self.norm.weight, self.norm.bias, 0.2, "bit", KEY
                )
                h = tempo.bias_gelu(h + total, self.linear.bias)
                h = tempo.residual_layer_norm(
                    h, total, self.norm.weight, self.norm.bias, 0.1, "philox", KEY
                )
                return attention(h @ h.transpose(1, 2), h, num_heads=1, p=0.2)

        block = Block().double()
        compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
        for batch in (2, 3, 5):  # static, then dynamic
            x = randn(batch, 6, 16)
            expected, actual = block(x), compiled(x)
            torch.testing.assert_close(actual, expected)
            grads = [
                torch.autograd.grad(y.square().sum(), [x, *block.parameters()])
                for y in (expected, actual)
            ]
            torch.testing.assert_close(grads[1], grads[0])

    def test_autocast(self):
        x, gamma, beta = norm_arguments(4, 32, dtype=torch.float32)
        weight = randn(8, 32, dtype=torch.float32)
        bias = randn(8, dtype=torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = F.linear(x, weight, bias)
            self.assertEqual(hidden.dtype, torch.bfloat16)
            self.assertEqual(tempo.gelu(hidden).dtype, torch.bfloat16)
            self.assertEqual(tempo.layer_norm(x.bfloat16(), gamma, beta).dtype, torch.float32)
            y = tempo.gelu_linear(x, weight, bias)
            self.assertEqual(y.dtype, torch.bfloat16)
            self.assertEqual(tempo.bias_gelu(hidden, bias).dtype, torch.bfloat16)
            normed, total = tempo.residual_layer_norm_sum(
                x.bfloat16(), x, gamma, beta, 0.1, "bit", KEY
            )
            self.assertEqual((normed.dtype, total.dtype), (torch.float32, torch.float32))
            scores = randn(4, 5, 5, dtype=torch.float32)
            value = randn(4, 5, 3, dtype=torch.float32)
            out = attention(scores.bfloat16(), value)
            self.assertEqual(out.dtype, torch.bfloat16)
        (
            y.float().sum() + out.float().sum()
        ).backward()  # outside of autocast, as training loops do
        for leaf in (x, weight, bias, value):
            self.assertEqual(leaf.grad.dtype, torch.float32)
        torch.testing.assert_close(
            y.float(), F.linear(F.gelu(x), weight, bias), rtol=0.05, atol=0.1
        )

    def test_inference_mode_and_no_grad(self):
        x, gamma, beta = norm_arguments(2, 32)
        expected = tempo.layer_norm(tempo.gelu(x), gamma, beta)
        with torch.inference_mode():
            torch.testing.assert_close(
                tempo.layer_norm(tempo.gelu(x.detach()), gamma, beta), expected
            )
        with torch.no_grad():
            y = tempo.dropout(x, 0.1, "byte", KEY)
            self.assertFalse(y.requires_grad)

    def test_inputs_of_any_layout(self):
        x, gamma, beta = norm_arguments(12, 32)
        strided = x.detach().t().contiguous().t().requires_grad_()
        self.assertFalse(strided.is_contiguous())
        wide = torch.stack([gamma.detach(), beta.detach()], 1)  # columns are strided
        for run in (
            lambda t: tempo.gelu(t),
            lambda t: tempo.dropout(t, 0.3, "bit", KEY),
            lambda t: tempo.layer_norm(t, wide[:, 0], wide[:, 1]),
            lambda t: tempo.bias_gelu(t, wide[:, 0]),
            lambda t: tempo.residual_layer_norm(t, t, wide[:, 0], wide[:, 1], 0.3, "bit", KEY),
        ):
            dy = randn(32, 12, grad=False).t()
            results = [(run(t), t) for t in (x, strided)]
            torch.testing.assert_close(results[1][0], results[0][0])
            grads = [torch.autograd.grad(y, t, dy) for y, t in results]
            torch.testing.assert_close(grads[1], grads[0])

    def test_empty_inputs(self):
        for shape in ((0, 16), (3, 0, 16)):
            x = torch.zeros(shape, requires_grad=True)
            total = tempo.gelu(x).sum() + tempo.dropout(x, 0.5, "bit", KEY).sum()
            total = total + tempo.residual_layer_norm(x, x, None, None, 0.5, "bit", KEY).sum()
            total = total + tempo.bias_gelu(x, torch.zeros(16)).sum()
            (total + tempo.layer_norm(x, None, None).sum()).backward()
            self.assertEqual(x.grad.shape, x.shape)

    def test_backward_is_deterministic(self):
        scores, value = randn(4, 33, 33, dtype=torch.float32), randn(4, 33, 8, dtype=torch.float32)
        runs = [
            torch.autograd.grad(attention(scores, value).sum(), [scores, value]) for _ in range(3)
        ]
        for run in runs[1:]:
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(run, runs[0])))

    def test_kept_bytes(self):
        """GELU keeps y + n/8, LayerNorm y + 4 B a row, attention P + T/8 and value; the fused forms
        what their steps keep."""

        def kept(run):
            storages = {}

            def pack(t):
                storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
                return t

            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                result = run()
            return sum(storages.values()), result

        n = 24 * 64
        x, gamma, beta = norm_arguments(24, 64, dtype=torch.float32)
        parameters = 2 * 64 * 4
        self.assertEqual(kept(lambda: tempo.gelu(x))[0], 4 * n + n // 8)
        self.assertEqual(
            kept(lambda: tempo.layer_norm(x, gamma, beta))[0] - parameters, 4 * n + 4 * 24
        )
        self.assertEqual(kept(lambda: tempo.dropout(x, 0.1, "bit", KEY))[0], n // 8)
        self.assertEqual(kept(lambda: tempo.dropout(x, 0.1, "philox", KEY))[0], 0)
        self.assertEqual(kept(lambda: tempo.bias_gelu(x, beta))[0], 4 * n + n // 8)
        for p, masks, mask_bytes in (
            (0.1, "byte", n),
            (0.1, "bit", n // 8),
            (0.1, "philox", 0),
            (0, "byte", 0),
        ):
            for op in (tempo.residual_layer_norm, tempo.residual_layer_norm_sum):
                both = kept(lambda: op(x, x, gamma, beta, p, masks, KEY))[0]
                self.assertEqual(both - parameters, 4 * n + 4 * 24 + mask_bytes)
        scores, value = randn(4, 32, 32, dtype=torch.float32), randn(4, 32, 8, dtype=torch.float32)
        probs, values = 4 * 4 * 32 * 32, 4 * 4 * 32 * 8
        self.assertEqual(kept(lambda: attention(scores, value))[0], probs + probs // 32 + values)
        self.assertEqual(kept(lambda: attention(scores, value, masks="philox"))[0], probs + values)

    def test_cuda_library_loads_and_registers_without_a_gpu(self):
        torch.ops.load_library(CUDA_LIBRARY)
        self.assertTrue(
            torch._C._dispatch_has_kernel_for_dispatch_key("tempo::bias_gelu_forward", "CUDA")
        )
        for name in ("dropout", "gelu", "layer_norm", "residual_layer_norm"):
            for direction in ("forward", "backward"):
                op = f"tempo::{name}_{direction}"
                self.assertTrue(torch._C._dispatch_has_kernel_for_dispatch_key(op, "CUDA"), op)
        for name in ("forward", "recompute", "backward_"):
            op = f"tempo::softmax_dropout_{name}"
            self.assertTrue(torch._C._dispatch_has_kernel_for_dispatch_key(op, "CUDA"), op)

    def test_errors_name_the_argument(self):
        x = randn(4, 16, grad=False)
        y, branch = tempo.gelu_forward(x, False, "bit")
        _, keep = tempo.dropout_forward(x, 0.5, "byte", KEY)
        scores, value = randn(4, 5, 5, grad=False), randn(4, 5, 3, grad=False)

        def residual(x, r, gamma=None, beta=None, p=0.1, masks="bit", key=KEY, save="output"):
            return tempo.residual_layer_norm(x, r, gamma, beta, p, masks, key, 1e-5, save)

        def residual_backward(dsum=None, rstd=torch.ones(4).double(), keep=keep):
            return tempo.residual_layer_norm_backward(
                x, dsum, x, None, None, rstd, keep, 0.5, "byte", KEY, "output"
            )

        wrong = {
            "x has dtype Int": lambda: tempo.gelu(torch.ones(4, dtype=torch.int32)),
            "masks is 'nibble'": lambda: tempo.gelu(x, False, "nibble"),
            "p is 1.5": lambda: tempo.dropout(x, 1.5, "byte", KEY),
            "key has 2 values": lambda: tempo.dropout(x, 0.5, "byte", [1, 2]),
            "dy has shape": lambda: tempo.gelu_backward(x[:2], y, branch, False, "bit"),
            "dy has dtype": lambda: tempo.gelu_backward(x.float(), y, branch, False, "bit"),
            "branch_mask has 3 elements": lambda: tempo.gelu_backward(
                x, y, branch[:3], False, "bit"
            ),
            "keep_mask has 0 elements": lambda: tempo.dropout_backward(
                x, keep[:0], 0.5, "byte", KEY
            ),
            "gamma has shape": lambda: tempo.layer_norm(x, torch.ones(15).double(), None),
            "beta has shape": lambda: tempo.layer_norm(x, None, torch.ones(16)),  # float32
            "save is 'input'": lambda: tempo.layer_norm(x, None, None, 1e-5, "input"),
            "x has shape": lambda: tempo.layer_norm(torch.ones(3, 0), None, None),
            "rstd has 1 elements": lambda: tempo.layer_norm_backward(
                x, x, None, None, torch.ones(1), "output"
            ),
            "bias has shape": lambda: tempo.bias_gelu(x, torch.ones(15).double()),
            "bias has shape .* and dtype Float": lambda: tempo.bias_gelu(x, torch.ones(16)),
            "residual has shape": lambda: residual(x, x[:2]),
            "residual has dtype": lambda: residual(x, x.float()),
            "residual is on": lambda: residual(x, x.to("meta")),
            "x has shape .* last dimension": lambda: residual(x[:, :0], x[:, :0]),
            r"gamma has shape \[15\] and dtype Double; expected \[16\]": lambda: residual(
                x, x, torch.ones(15).double()
            ),
            "p is -0.5": lambda: residual(x, x, p=-0.5),
            "masks is 'nibbles'": lambda: residual(x, x, masks="nibbles"),
            "key has 1 values": lambda: residual(x, x, key=[1]),
            "save is 'inputs'": lambda: residual(x, x, save="inputs"),
            "dsum has shape": lambda: residual_backward(dsum=x[:2]),
            "rstd is on meta": lambda: residual_backward(rstd=torch.ones(4).double().to("meta")),
            "keep_mask is on meta": lambda: residual_backward(keep=keep.to("meta")),
            "gamma is on meta": lambda: tempo.layer_norm(x, x[0].to("meta"), None),
            "rstd has 3 elements": lambda: residual_backward(rstd=torch.ones(3).double()),
            "keep_mask has 2 elements": lambda: residual_backward(keep=keep.flatten()[:2]),
            "scores has shape": lambda: attention(scores[0], value),
            "value has shape": lambda: attention(scores, value[:2]),
            "num_heads is 0": lambda: attention(scores, value, num_heads=0),
            "num_heads is 3": lambda: attention(scores, value, num_heads=3),
            "additive_mask has shape": lambda: attention(scores, value, mask=torch.zeros(2, 4)),
            "additive_mask has dtype Bool": lambda: attention(
                scores, value, mask=torch.zeros(2, 5).bool()
            ),
            "additive_mask is on meta": lambda: attention(
                scores, value, mask=torch.zeros(2, 5, device="meta")
            ),
            "value has shape .* on meta": lambda: attention(scores, value.to("meta")),
            "ddropped is not contiguous": lambda: tempo.softmax_dropout_backward_(
                scores.transpose(1, 2), scores, keep, 1.0, 0.0, "byte", KEY
            ),
            "weight has shape": lambda: tempo.gelu_linear(
                x, torch.ones(3, 4).double(), torch.ones(3).double()
            ),
            r"bias has shape \[2\]; expected \[3\]": lambda: tempo.gelu_linear(
                x, torch.ones(3, 16).double(), torch.ones(2).double()
            ),
            "weight is on meta": lambda: tempo.gelu_linear(
                x, torch.ones(3, 16, device="meta").double(), torch.ones(3).double()
            ),
            "weight and bias have dtypes": lambda: tempo.gelu_linear(
                x, torch.ones(3, 16), torch.ones(3)
            ),
        }
        for message, call in wrong.items():
            with self.subTest(message=message), self.assertRaisesRegex(
                RuntimeError, "tempo: " + message
            ):
                call()


if __name__ == "__main__":
    CUDA_LIBRARY = sys.argv.pop()
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
