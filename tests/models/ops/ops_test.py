"""torch.ops.tempo from Python, against torch's own ops.

Run by ctest with the virtual environment's Python: `ops_test.py LIBTEMPO_OPS LIBTEMPO_OPS_CUDA`, on
the CPU and, where torch finds one, on a GPU. Every op is checked against torch's own in every
dtype, by torch.library.opcheck (schema, fake tensors, autograd registration, AOTAutograd with
dynamic shapes), by gradcheck in float64, under autocast, without gradients, and with inputs that
are not contiguous or empty. compile_test.py has torch.compile, errors_test.py wrong arguments.
"""

import itertools
import sys
import unittest
import warnings

warnings.filterwarnings("ignore", message=".*NumPy.*")
import torch
import torch.nn.functional as F

tempo = torch.ops.tempo
KEY = [7, 0, 1, 2, 3]
OPCHECK_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor",
                 "test_aot_dispatch_dynamic")  # fmt: skip


def randn(*shape, dtype=torch.float64, grad=True, seed=0):
    """The same numbers on every device; on the default one."""
    generator = torch.Generator("cpu").manual_seed(seed + sum(shape))
    x = torch.randn(*shape, dtype=dtype, generator=generator, device="cpu")
    return x.to(torch.get_default_device()).requires_grad_(grad)


def attention(
    scores, value, mask=None, scale=0.5, causal=False, num_heads=2, p=0.25, masks="bit", key=KEY
):
    return tempo.attention_core(scores, value, mask, scale, causal, num_heads, p, masks, key)


def norm_arguments(*shape, dtype=torch.float64):
    gamma = (1 + 0.1 * randn(shape[-1], grad=False).to(dtype)).requires_grad_()
    beta = (0.1 * randn(shape[-1], grad=False, seed=1).to(dtype)).requires_grad_()
    return randn(*shape, dtype=dtype), gamma, beta


def substation_arguments(p=0.25, activation="relu", mask=None, dtype=torch.float64):
    """A layer of width 8 with two heads on [2, 3, 8]; weights that require gradients."""
    sizes = ((24, 8), (8, 8), (16, 8), (8, 16))
    weights = [(0.3 * randn(*size, grad=False, seed=i)).to(dtype) for i, size in enumerate(sizes)]
    biases = [(0.3 * randn(size[0], grad=False, seed=i)).to(dtype) for i, size in enumerate(sizes)]
    gammas = [(1 + 0.1 * randn(8, grad=False, seed=i)).to(dtype) for i in range(2)]
    betas = [(0.1 * randn(8, grad=False, seed=i + 2)).to(dtype) for i in range(2)]
    parameters = [[t.requires_grad_() for t in group] for group in (weights, biases, gammas, betas)]
    x = randn(2, 3, 8, dtype=dtype)
    return (x, *parameters, mask, activation, 2, 1e-5, p, p, p, KEY)


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
    sums = (x, randn(3, 5, 16, seed=2), gamma, beta, 0.25, "bit", KEY)
    yield tempo.residual_layer_norm_sum, sums
    yield tempo.layer_norm, (x, gamma, beta, 1e-5, "output")
    yield tempo.layer_norm, (x, gamma, beta, 1e-5, "normalized")
    yield tempo.layer_norm, (x, None, None, 1e-5, "output")
    yield tempo.rms_norm, (x, gamma, 1e-5, "output")
    yield tempo.rms_norm, (x, gamma, 1e-5, "normalized")
    yield tempo.rms_norm, (x, None, 1e-5, "output")
    mask = torch.tensor([[0.0, 0, 0, 0, -1e4], [0, 0, 0, -1e4, -1e4]], dtype=torch.float64)
    scores, value = randn(4, 5, 5), randn(4, 5, 3)
    for masks in ("byte", "bit", "philox"):
        yield tempo.attention_core, (scores, value, mask, 0.5, False, 2, 0.25, masks, KEY)
    yield tempo.attention_core, (scores, value, None, 0.5, True, 2, 0.0, "byte", KEY)
    yield tempo.attention_core, (scores, value, None, 0.5, False, 2, 0.25, "byte", KEY, False)
    for activation in ("relu", "gelu", "tanh_gelu"):
        yield tempo.bias_activation, (randn(4, 17), randn(17, seed=1), activation)
    linear = (randn(2, 4, 17), randn(17, seed=1), randn(6, 17, seed=2), "gelu")
    yield tempo.bias_activation_linear, linear
    kinds = ("byte", "bit", "element", "philox")
    for p, masks in (*((0.25, kind) for kind in kinds), (0.0, "bit")):
        arguments = (randn(3, 5, 16), randn(16, seed=1), randn(3, 5, 16, seed=2), p, masks, KEY)
        yield tempo.bias_dropout_residual, arguments
    yield tempo.bias_heads, (randn(2, 5, 24), randn(24, seed=1), 2)
    yield tempo.substation_layer, substation_arguments()
    yield tempo.substation_layer, substation_arguments(0.0, "gelu")


def saved(run):
    """The result of `run()`, and the bytes of the storages that autograd saves in it, each once."""
    storages = {}

    def pack(t):
        storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = run()
    return result, sum(storages.values())


def opcheck(op, arguments):
    torch.library.opcheck(op.default, arguments)


class OpsOnDevice:
    """Tests for every device; they create their tensors on `device`."""

    device = "cpu"

    def setUp(self):
        torch.set_default_device(self.device)

    def tearDown(self):
        torch.set_default_device("cpu")

    def test_opcheck(self):
        for op, arguments in cases():
            with self.subTest(op=str(op), arguments=str(arguments[1:])[:60]):
                torch.library.opcheck(op.default, arguments, test_utils=OPCHECK_TESTS)

    def test_opcheck_of_the_pairs_without_autograd(self):
        x = randn(4, 16, dtype=torch.float32, grad=False)
        scores = randn(4, 5, 5, grad=False)
        for masks in ("byte", "bit", "philox"):
            opcheck(tempo.dropout_forward, (x, 0.5, masks, KEY))
            opcheck(tempo.gelu_forward, (x, False, masks))
            core = (scores, None, 0.5, True, 2, 0.5, masks, KEY)
            opcheck(tempo.softmax_dropout_forward, core)
        for save in ("output", "normalized"):
            opcheck(tempo.layer_norm_forward, (x, x[0], None, 1e-5, save))
            opcheck(tempo.rms_norm_forward, (x, x[0], 1e-5, save))
        y, keep = tempo.dropout_forward(x, 0.5, "byte", KEY)
        opcheck(tempo.dropout_backward, (y, keep, 0.5, "byte", KEY))
        y, branch = tempo.gelu_forward(x, False, "bit")
        opcheck(tempo.gelu_backward, (x, y, branch, False, "bit"))
        wide = (x, x[0], x[1], 1e-5, "output", torch.bfloat16)
        opcheck(tempo.layer_norm_forward, wide)
        y, _, rstd = tempo.layer_norm_forward(*wide)
        opcheck(tempo.layer_norm_backward, (y, y, x[0], x[1], rstd, "output", torch.float32))
        y, _, rstd = tempo.layer_norm_forward(x, None, None, 1e-5, "output")
        opcheck(tempo.layer_norm_backward, (x, y, None, None, rstd, "output"))
        y, _, rstd = tempo.rms_norm_forward(x, None, 1e-5, "output")
        opcheck(tempo.rms_norm_backward, (x, y, None, rstd, "output"))
        opcheck(tempo.bias_gelu_forward, (x, x[0], False, "bit"))
        residual_arguments = (x, x, None, None, 0.5, "byte", KEY, 1e-5, "output", True)
        opcheck(tempo.residual_layer_norm_forward, residual_arguments)
        y, total, _, rstd, keep = tempo.residual_layer_norm_forward(*residual_arguments)
        for dsum in (None, total):
            backward = (x, dsum, y, None, None, rstd, keep, 0.5, "byte", KEY, "output")
            opcheck(tempo.residual_layer_norm_backward, backward)
        core = (scores, None, 0.5, False, 2, 0.5, "bit", KEY)
        probs, dropped, keep = tempo.softmax_dropout_forward(*core)
        opcheck(tempo.softmax_dropout_recompute, (probs, keep, 0.5, "bit", KEY))
        opcheck(tempo.softmax_dropout_backward_, (dropped, probs, keep, 0.5, 0.5, "bit", KEY))

    def test_opcheck_of_the_passes_of_fused_layers(self):
        x = randn(4, 16, dtype=torch.float32, grad=False)
        for masks in ("byte", "bit", "element", "philox"):
            forward = (x, x[0], x, "relu", True, 0.5, masks, KEY)
            opcheck(tempo.bias_dropout_forward, forward)
            _, biased, keep = tempo.bias_dropout_forward(*forward)
            for arguments in ((x, biased, None), (x, x, x[0])):
                backward = (*arguments, keep, "relu", 0.5, masks, KEY)
                opcheck(tempo.bias_dropout_backward, backward)
        opcheck(tempo.bias_backward, (x,))
        projected = randn(2, 5, 24, grad=False)
        opcheck(tempo.bias_heads_forward, (projected, projected[0, 0], 2))
        opcheck(tempo.bias_heads_backward, (*tempo.bias_heads_forward(projected, None, 2), 2))
        norm = (x, x[0], x, x[0], x[1], torch.empty_like(x), 0.5, "element", KEY, 1e-5)
        opcheck(tempo.bias_residual_norm_forward, norm)
        _, normalized, centered, rstd, keep = tempo.bias_residual_norm_forward(*norm)
        opcheck(tempo.residual_norm_backward, (x, centered, rstd, keep, 0.5, "element", KEY))
        for more in (None, x):
            opcheck(tempo.scale_shift_backward, (x, more, normalized, x[0], more))

    def test_autocast_runs_a_substation_layer_in_16_bits(self):
        arguments = substation_arguments(dtype=torch.float32)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            y = tempo.substation_layer(*arguments)
        self.assertEqual(y.dtype, torch.bfloat16)
        y.float().square().sum().backward()
        self.assertEqual(arguments[1][0].grad.dtype, torch.float32)
        expected = tempo.substation_layer(*arguments)
        torch.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.1)

    def test_gradients_of_a_substation_layer_equal_numerical_ones(self):
        mask = torch.tensor([[0.0, 0, 0], [0, 0, -1e4]], dtype=torch.float64)
        for activation in ("relu", "gelu", "tanh_gelu"):
            x, *groups, _, _, heads, eps, p, _, _, key = substation_arguments()
            flat = [t for group in groups for t in group]

            def run(x, *flat):
                given = iter(flat)
                lists = [[next(given) for _ in group] for group in groups]
                options = (mask, activation, heads, eps, p, p, p, key)
                return tempo.substation_layer(x, *lists, *options)

            self.assertTrue(torch.autograd.gradcheck(run, (x, *flat)))

    def test_gradients_equal_numerical_ones(self):
        # A GELU from its output is worst at x* = -0.7518: 2e-9 in fp64, far below gradcheck's 1e-6.
        for op, arguments in cases():
            with self.subTest(op=str(op)):
                tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]

                def run(*leaves, op=op, arguments=arguments):
                    given = iter(leaves)
                    return op(*(next(given) if isinstance(a, torch.Tensor) and a.requires_grad
                                else a for a in arguments))  # fmt: skip

                self.assertTrue(torch.autograd.gradcheck(run, tensors))

    def assert_as_torch(self, op, stock, leaves, rtol, atol):
        """Compares values and gradients of `op` with those of `stock` in double."""
        wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
        ours, truth = op(*leaves), stock(*wide)
        dy = randn(*truth.shape, dtype=ours.dtype, grad=False, seed=8)
        close = {"rtol": rtol, "atol": atol}
        torch.testing.assert_close(ours.double(), truth, **close)
        grads = torch.autograd.grad(ours, leaves, dy)
        for a, b in zip(grads, torch.autograd.grad(truth, wide, dy.double())):
            scale = max(1.0, float(b.abs().max()))
            torch.testing.assert_close(a.double(), b, rtol=rtol, atol=atol * scale)

    def test_values_and_gradients_equal_torchs(self):
        """Rows that vectors and warps divide, and others; every dtype. A GELU's derivative from its
        output has an error of up to `gelu` (kernels/inplace_gelu.h), the others some roundings."""
        for dtype, gelu in ((torch.float64, 1e-8), (torch.float32, 1e-4), (torch.float16, 2e-2),
                            (torch.bfloat16, 5e-2)):  # fmt: skip
            eps = 4 * torch.finfo(dtype).eps
            for shape in ((6, 64), (5, 37), (3, 2, 1000)):
                x, gamma, beta = norm_arguments(*shape, dtype=dtype)
                residual = randn(*shape, dtype=dtype, seed=2)
                keep = tempo.dropout(torch.ones(shape, dtype=torch.float64), 0.3, "byte", KEY)
                H = shape[-1:]

                def check(op, stock, leaves, atol=eps):
                    self.assert_as_torch(op, stock, leaves, eps, atol)

                def norm(rows, *affine):
                    return F.layer_norm(rows, H, *affine)

                def residual_norm(x, r, *affine):
                    return tempo.residual_layer_norm(x, r, *affine, 0.3, masks, KEY)

                with self.subTest(dtype=dtype, shape=shape):
                    for tanh, kind in ((False, "none"), (True, "tanh")):
                        check(lambda x: tempo.gelu(x, tanh),
                              lambda x: F.gelu(x, approximate=kind), [x], gelu)  # fmt: skip
                        check(lambda x, b: tempo.bias_gelu(x, b, tanh),
                              lambda x, b: F.gelu(x + b, approximate=kind),
                              [x, beta], gelu)  # fmt: skip
                    check(tempo.layer_norm, norm, [x, gamma, beta])
                    for save in ("output", "normalized"):
                        check(lambda x, g: tempo.rms_norm(x, g, 1e-5, save),
                              lambda x, g: F.rms_norm(x, H, g, 1e-5), [x, gamma])  # fmt: skip
                    for masks in ("byte", "bit", "philox"):
                        check(lambda x: tempo.dropout(x, 0.3, masks, KEY), lambda x: x * keep, [x])
                        check(residual_norm, lambda x, r, *affine: norm(r + x * keep, *affine),
                              [x, residual, gamma, beta])  # fmt: skip

    def test_attention_equals_torchs(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            eps = 4 * torch.finfo(dtype).eps
            for S in (7, 64, 129):
                leaves = [randn(4, S, S, dtype=dtype), randn(4, S, 8, dtype=dtype)]
                keep = tempo.dropout(torch.ones(4, S, S, dtype=torch.float64), 0.25, "byte", KEY)
                future = torch.full((S, S), float("-inf"), dtype=torch.float64).triu(1)
                for causal in (False, True):
                    hidden = future if causal else 0

                    def stock(scores, value):
                        return (torch.softmax(scores * 0.5 + hidden, -1) * keep) @ value

                    for masks in ("byte", "bit", "philox"):
                        with self.subTest(dtype=dtype, S=S, causal=causal, masks=masks):

                            def ours(scores, value):
                                return attention(scores, value, causal=causal, masks=masks)

                            self.assert_as_torch(ours, stock, leaves, eps, eps)

    def test_masks_are_those_of_the_cpu(self):
        for shape in ((5, 13), (70, 129)):
            ones = torch.ones(shape)
            for masks in ("byte", "bit", "philox"):
                y = tempo.dropout(ones, 0.3, masks, KEY)
                self.assertTrue(torch.equal(y.cpu(), tempo.dropout(ones.cpu(), 0.3, "byte", KEY)))

    def test_dropout_of_probability_0_and_1(self):
        x = randn(3, 40)
        torch.testing.assert_close(tempo.dropout(x, 0.0, "byte", KEY), x)
        self.assertEqual(tempo.dropout(x, 1.0, "byte", KEY).abs().max(), 0)

    def test_autocast(self):
        x, gamma, beta = norm_arguments(4, 32, dtype=torch.float32)
        weight = randn(8, 32, dtype=torch.float32)
        bias = randn(8, dtype=torch.float32)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            hidden = F.linear(x, weight, bias)
            self.assertEqual(hidden.dtype, torch.bfloat16)
            self.assertEqual(tempo.gelu(hidden).dtype, torch.bfloat16)
            for source in (x, x.bfloat16(), x.half()):
                self.assertEqual(tempo.layer_norm(source, gamma, beta).dtype, torch.bfloat16)
                self.assertEqual(tempo.rms_norm(source, gamma).dtype, torch.bfloat16)
            self.assertEqual(tempo.layer_norm(x.double(), None, None).dtype, torch.float64)
            y = tempo.gelu_linear(x, weight, bias)
            self.assertEqual(y.dtype, torch.bfloat16)
            self.assertEqual(tempo.bias_gelu(hidden, bias).dtype, torch.bfloat16)
            sums = (x.bfloat16(), x, gamma, beta, 0.1, "bit", KEY)
            normed, total = tempo.residual_layer_norm_sum(*sums)
            self.assertEqual((normed.dtype, total.dtype), (torch.bfloat16, torch.float32))
            alone = tempo.residual_layer_norm(x, x, gamma, beta, 0.1, "bit", KEY)
            self.assertTrue(torch.equal(alone, normed))
            self.assert_sums_have_the_type_of_their_residual(hidden.detach())
            scores = randn(4, 5, 5, dtype=torch.float32)
            value = randn(4, 5, 3, dtype=torch.float32)
            out, kept_bytes = saved(lambda: attention(scores.bfloat16(), value, masks="philox"))
            self.assertEqual(kept_bytes, 2 * scores.numel() + 2 * value.numel())
            self.assertEqual(out.dtype, torch.bfloat16)
        total = y.float().sum() + out.float().sum()
        total.backward()  # outside of autocast, as training loops do
        for leaf in (x, weight, bias, value):
            self.assertEqual(leaf.grad.dtype, torch.float32)
        expected = F.linear(F.gelu(x), weight, bias)
        torch.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.1)

    def assert_sums_have_the_type_of_their_residual(self, hidden):
        """As torch's own sums of a linear layer's output, under autocast to bfloat16."""
        for dtype in (torch.float32, torch.bfloat16):
            residual, bias = randn(*hidden.shape, dtype=dtype), randn(8, dtype=torch.float32)
            ours = tempo.bias_dropout_residual(hidden, bias, residual, 0.0, "bit", KEY)
            stock = hidden + bias.bfloat16() + residual
            self.assertEqual(ours.dtype, stock.dtype)
            torch.testing.assert_close(ours, stock, rtol=0.01, atol=0.02)
            gradients = torch.autograd.grad(ours.sum(), (bias, residual))
            self.assertEqual([g.dtype for g in gradients], [torch.float32, dtype])

    def test_a_mask_may_have_any_dtype(self):
        types = torch.float16, torch.bfloat16, torch.float32, torch.float64
        for dtype, mask_type in itertools.product(types, types):
            with self.subTest(scores=dtype, mask=mask_type):
                scores, value = randn(4, 5, 5, dtype=dtype), randn(4, 5, 3, dtype=dtype)
                mask = torch.zeros(2, 5, dtype=mask_type)
                mask[0, 3:] = torch.finfo(mask_type).min  # may be no number of the scores' dtype
                mask[1] = torch.finfo(mask_type).min
                out = attention(scores, value, mask=mask, p=0.0)
                seen = attention(scores[:2, :, :3], value[:2, :3], p=0.0)
                torch.testing.assert_close(out[:2], seen)
                self.assertFalse(out.isnan().any())

    def test_norms_of_float_beside_16_bits(self):
        """As torch's in float on the same numbers, rounded once; gradients have their input's
        dtype."""
        for dtype in (torch.float16, torch.bfloat16):
            eps = torch.finfo(dtype).eps
            x, gamma, beta = norm_arguments(6, 65, dtype=torch.float32)
            branch = randn(6, 65, dtype=dtype, seed=3)
            dy = randn(6, 65, dtype=dtype, grad=False, seed=4)
            for save in ("output", "normalized"):
                options = (0.0, "bit", KEY, 1e-5, save)
                for op, stock, leaves in (
                    (lambda x, g, b: tempo.layer_norm(x, g, b, 1e-5, save, dtype),
                     lambda x, g, b: F.layer_norm(x, (65,), g, b), [x, gamma, beta]),
                    (lambda x, g: tempo.rms_norm(x, g, 1e-5, save, dtype),
                     lambda x, g: F.rms_norm(x, (65,), g, 1e-5), [x, gamma]),
                    (lambda a, x, g, b: tempo.residual_layer_norm(a, x, g, b, *options),
                     lambda a, x, g, b: F.layer_norm(x + a, (65,), g, b),
                     [branch, x, gamma, beta]),
                ):  # fmt: skip
                    y = op(*leaves)
                    self.assertEqual(y.dtype, dtype)
                    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
                    expected = stock(*wide)
                    torch.testing.assert_close(y.double(), expected, rtol=eps, atol=eps)
                    ours = torch.autograd.grad(y, leaves, dy)
                    truth = torch.autograd.grad(expected, wide, dy.double())
                    for leaf, a, b in zip(leaves, ours, truth, strict=True):
                        self.assertEqual(a.dtype, leaf.dtype)
                        atol = 2 * eps * max(1.0, float(b.abs().max()))
                        torch.testing.assert_close(a.double(), b, rtol=2 * eps, atol=atol)

    def test_inference_mode_and_no_grad(self):
        x, gamma, beta = norm_arguments(2, 32)
        expected = tempo.layer_norm(tempo.gelu(x), gamma, beta)
        with torch.inference_mode():
            y = tempo.layer_norm(tempo.gelu(x.detach()), gamma, beta)
            torch.testing.assert_close(y, expected)
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

    def test_saved_bytes(self):
        """GELU saves y + n/8, LayerNorm y + 4 B per row, attention P + T/8 and value; a fused op
        saves what its steps save."""

        def assert_kept(expected, op, *arguments):
            self.assertEqual(saved(lambda: op(*arguments))[1], expected, str(op))

        n = 24 * 64
        x, gamma, beta = norm_arguments(24, 64, dtype=torch.float32)
        parameters, norm = 2 * 64 * 4, 4 * n + 4 * 24
        assert_kept(4 * n + n // 8, tempo.gelu, x)
        assert_kept(norm + parameters, tempo.layer_norm, x, gamma, beta)
        assert_kept(norm + parameters // 2, tempo.rms_norm, x, gamma)
        assert_kept(n // 8, tempo.dropout, x, 0.1, "bit", KEY)
        assert_kept(0, tempo.dropout, x, 0.1, "philox", KEY)
        assert_kept(4 * n + n // 8, tempo.bias_gelu, x, beta)
        for p, masks, mask_bytes in (
            (0.1, "byte", n), (0.1, "bit", n // 8), (0.1, "philox", 0), (0, "byte", 0)
        ):  # fmt: skip
            for op in (tempo.residual_layer_norm, tempo.residual_layer_norm_sum):
                assert_kept(norm + parameters + mask_bytes, op, x, x, gamma, beta, p, masks, KEY)
        scores, value = randn(4, 32, 32, dtype=torch.float32), randn(4, 32, 8, dtype=torch.float32)
        probs, values = 4 * 4 * 32 * 32, 4 * 4 * 32 * 8
        assert_kept(probs + probs // 32 + values, attention, scores, value)
        without_mask = saved(lambda: attention(scores, value, masks="philox"))[1]
        self.assertEqual(without_mask, probs + values)


class Ops(OpsOnDevice, unittest.TestCase):
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


@unittest.skipUnless(torch.cuda.is_available(), "torch finds no GPU")
class OpsOnCuda(OpsOnDevice, unittest.TestCase):
    device = "cuda"

    @classmethod
    def setUpClass(cls):
        torch.ops.load_library(CUDA_LIBRARY)

    def test_work_is_queued_on_the_current_stream(self):
        """On another stream it would read data that the side stream has not written yet."""
        x = randn(1 << 20, dtype=torch.float32, grad=False)
        expected = tempo.gelu(3 * x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            late = torch.zeros_like(x)
            torch.cuda._sleep(100_000_000)
            late.copy_(3 * x)
            y = tempo.gelu(late)
        side.synchronize()
        self.assertTrue(torch.equal(y, expected))


if __name__ == "__main__":
    CUDA_LIBRARY = sys.argv.pop()
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
