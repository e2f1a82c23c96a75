"""torch.ops.tempo answers wrong arguments with a torch error that names the argument.

Run by ctest with the virtual environment's Python: `errors_test.py LIBTEMPO_OPS`.
"""

import sys
import unittest

import torch

from ops_test import KEY, attention, randn, tempo


class Errors(unittest.TestCase):
    def test_errors_name_the_argument(self):
        x = randn(4, 16, grad=False)
        y, branch = tempo.gelu_forward(x, False, "bit")
        _, keep = tempo.dropout_forward(x, 0.5, "byte", KEY)
        scores, value = randn(4, 5, 5, grad=False), randn(4, 5, 3, grad=False)

        def residual(x, r, gamma=None, beta=None, p=0.1, masks="bit", key=KEY, save="output"):
            return tempo.residual_layer_norm(x, r, gamma, beta, p, masks, key, 1e-5, save)

        def ones(*shape):
            return torch.ones(*shape).double()

        def layer(up=ones(32, 8), num_heads=2, mask=None):
            weights = [ones(24, 8), ones(8, 8), up, ones(8, 32)]
            biases = [ones(24), ones(8), ones(len(up)), ones(8)]
            norms = [ones(8)] * 2
            tokens = randn(2, 5, 8, grad=False)
            call = mask, "gelu", num_heads, 1e-5, 0.0, 0.0, 0.0, KEY
            return tempo.substation_layer(tokens, weights, biases, norms, norms, *call)

        def residual_backward(dsum=None, rstd=torch.ones(4).double(), keep=keep):
            return tempo.residual_layer_norm_backward(
                x, dsum, x, None, None, rstd, keep, 0.5, "byte", KEY, "output"
            )

        wrong = {
            "x has dtype Int": lambda: tempo.gelu(torch.ones(4, dtype=torch.int32)),
            "masks is 'nibble'": lambda: tempo.gelu(x, False, "nibble"),
            "x has 68719476736 elements": lambda: tempo.dropout(
                torch.empty(2**36, device="meta"), 0.5, "bit", KEY
            ),
            "scores has 68719476736 elements": lambda: attention(
                torch.empty(2**12, 2**12, 2**12, device="meta"),
                torch.empty(2**12, 2**12, 1, device="meta"),
            ),
            "x has 68719476736 elements; dropout draws": lambda: residual(
                *[torch.empty(2**26, 2**10, device="meta")] * 2
            ),
            "p is 1.5": lambda: tempo.dropout(x, 1.5, "byte", KEY),
            "key has 2 values": lambda: tempo.dropout(x, 0.5, "byte", [1, 2]),
            "key has rank -1; expected 0 to 4294967295": lambda: tempo.dropout(
                x, 0.5, "byte", [1, -1, 0, 0, 0]
            ),
            "key has step 4294967296": lambda: residual(x, x, key=[1, 0, 2**32, 0, 0]),
            "key has layer": lambda: tempo.dropout(x, 0.5, "byte", [1, 0, 0, 2**32, 0]),
            "key has site": lambda: tempo.dropout(x, 0.5, "byte", [1, 0, 0, 0, 2**40]),
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
            "activation is 'swish'": lambda: tempo.bias_activation(x, x[0], "swish"),
            "x has shape .*; expected .batch, tokens, 3": lambda: tempo.bias_heads(x, x[0], 2),
            "residual has shape .*": lambda: tempo.bias_dropout_residual(
                x, x[0], x[:2], 0.1, "bit", KEY
            ),
            "dkey has shape": lambda: tempo.bias_heads_backward(scores, scores[:2], scores, 2),
            "normalized has shape": lambda: tempo.scale_shift_backward(x, None, x[:2], x[0], None),
            "masks is 'element'": lambda: tempo.gelu(x, False, "element"),
            "save is 'input'": lambda: tempo.layer_norm(x, None, None, 1e-5, "input"),
            "x has shape": lambda: tempo.layer_norm(torch.ones(3, 0), None, None),
            "rstd has 1 elements": lambda: tempo.layer_norm_backward(
                x, x, None, None, torch.ones(1), "output"
            ),
            "bias has shape": lambda: tempo.bias_gelu(x, torch.ones(15).double()),
            "bias has shape .* and dtype Float": lambda: tempo.bias_gelu(x, torch.ones(16)),
            "residual has shape": lambda: residual(x, x[:2]),
            "residual has dtype": lambda: residual(x, x.float()),
            "dtype is Half; expected the same as x, Double": lambda: tempo.layer_norm(
                x, None, None, 1e-5, "output", torch.float16
            ),
            "beta has dtype Half; expected the same as gamma, Float": lambda: tempo.layer_norm(
                x.half(), torch.ones(16), torch.ones(16).half()
            ),
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
            "value has dtype Int": lambda: attention(scores, value.int()),
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
            r"bias has shape \[2\] and dtype Double; expected \[3\] of Double": lambda: (
                tempo.gelu_linear(x, ones(3, 16), ones(2))
            ),
            "weight is on meta": lambda: tempo.gelu_linear(
                x, torch.ones(3, 16, device="meta").double(), torch.ones(3).double()
            ),
            "weight has dtype Float": lambda: tempo.gelu_linear(
                x, torch.ones(3, 16), torch.ones(3)
            ),
            "bias is None": lambda: tempo.gelu_linear(x, torch.ones(3, 16).double(), None),
            "x is None; expected a tensor": lambda: tempo.layer_norm(None, None, None),
            "p is nan": lambda: tempo.dropout(x, float("nan"), "bit", KEY),
            r"weight has shape \[3, 4\]; expected \[out, 16\]": lambda: (
                tempo.bias_activation_linear(x, x[0], torch.ones(3, 4).double(), "gelu")
            ),
            "additive_mask requires a gradient": lambda: attention(
                scores, value, mask=torch.zeros(2, 5, requires_grad=True)
            ),
            r"weights\[2\] has dtype Float; expected the same as x, Double": lambda: layer(
                up=torch.ones(32, 8)
            ),
            r"weights\[3\] has shape \[8, 32\]; expected \[out, 31\]": lambda: layer(
                up=ones(31, 8)
            ),
            "num_heads is 3; expected a divisor of the last dimension of x, 8": lambda: layer(
                num_heads=3
            ),
            "additive_mask requires a gradient, which": lambda: layer(
                mask=torch.zeros(2, 5, requires_grad=True).double()
            ),
        }
        for message, call in wrong.items():
            with self.subTest(message=message), self.assertRaisesRegex(
                RuntimeError, "tempo: " + message
            ):
                call()


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop())
    unittest.main(verbosity=1)
