"""kernel-report counts as many bytes for torch.compile's kernels as the code moves that
Inductor writes for the same ops.

Run by ctest: `inductor_test.py FOLDER`, with the folder of the virtual GPU's libraries. There, on
an H200, torch.compile writes its code; each Triton kernel is replaced by one that counts bytes.
"""

import json
import pathlib
import re
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools/kernel_report"), str(ROOT / "tests/profiler/virtual_gpu")]
import kernel_ops  # noqa: E402
import virtual_machine  # noqa: E402

P = 0.1
HIDDEN = kernel_ops.HIDDEN
ELEMENTS = (kernel_ops.ROWS, HIDDEN)
SCORES = (kernel_ops.SCORES // kernel_ops.KEYS**2, kernel_ops.KEYS, kernel_ops.KEYS)


# --- on the virtual GPU --------------------------------------------------------------------------


def programs():
    """{op: (function, shapes of its inputs)}."""
    import torch
    from torch.nn import functional as F

    def layer_norm(x, *weights):
        return F.layer_norm(x, (HIDDEN,), *weights)

    def summed(x, residual, *weights):
        total = residual + F.dropout(x, P)
        return layer_norm(total, *weights), total

    def attention(scores, value):
        return F.dropout((scores / 8).softmax(-1), P) @ value

    def autocast_attention(scores, value):
        probs = (scores / 8).softmax(-1, dtype=torch.float32)
        return F.dropout(probs, P).to(value.dtype) @ value

    affine = [(HIDDEN,)] * 2
    return {
        "GELU": (F.gelu, [(kernel_ops.ROWS, 4 * HIDDEN)]),
        "dropout": (lambda x: F.dropout(x, P), [ELEMENTS]),
        "LayerNorm": (layer_norm, [ELEMENTS, *affine]),
        "RMSNorm": (lambda x, weight: F.rms_norm(x, (HIDDEN,), weight), [ELEMENTS, affine[0]]),
        "residual LayerNorm": (lambda *inputs: summed(*inputs)[0], [ELEMENTS, ELEMENTS, *affine]),
        "residual LayerNorm and sum": (summed, [ELEMENTS, ELEMENTS, *affine]),
        "softmax + dropout": (attention, [SCORES, (*SCORES[:2], 64)]),
        "autocast: softmax + dropout": (autocast_attention, [SCORES, (*SCORES[:2], 64)]),
        "autocast: LayerNorm": (lambda *inputs: layer_norm(*inputs).half(), [ELEMENTS, *affine]),
    }


def count_bytes():
    """Prints {"op, dtype": bytes of forward and of backward}."""
    import torch

    moved, torch_sum = 0, torch.Tensor.sum

    class Kernel:
        """A Triton kernel that only counts the tensors that it would read and write."""

        def __init__(self, name, source, **_):
            names = re.search(rf"def {name}\((.*?)\):", source)[1].replace(" ", "").split(",")
            accessed = set(re.findall(r"tl\.(load|store)\((\w+)", source))
            self.times = [sum(pointer == one for _, pointer in accessed) for one in names]

        def run(self, *arguments, **_):
            nonlocal moved
            moved += sum(times * one.nbytes for times, one in zip(self.times, arguments)
                         if isinstance(one, torch.Tensor))

    def counted_sum(tensor, *arguments, **keywords):
        """Of partial sums: a kernel of torch's own."""
        nonlocal moved
        moved += tensor.nbytes
        return torch_sum(tensor, *arguments, **keywords)

    def bytes_of(one_pass):
        nonlocal moved
        moved = 0
        with mock.patch.object(torch.Tensor, "sum", counted_sum):
            one_pass()
        return moved

    # Autograd's own thread may still free gradients when Python ends. Their Python objects need the
    # interpreter's lock, and Python 3.11 ends a thread that asks for it then, which aborts torch.
    torch.autograd.set_multithreading_enabled(False)
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True
    found = {}
    with (mock.patch("torch._inductor.async_compile.AsyncCompile.triton",
                     lambda _, *code, **__: Kernel(*code)),
          mock.patch("torch.utils._triton.has_triton", lambda: True)):
        for name, (function, shapes) in programs().items():
            for dtype in ("fp16",) if "autocast" in name else ("fp32", "fp16"):
                wide = dtype == "fp32" or name == "autocast: LayerNorm"  # a float residual stream
                inputs = [torch.zeros(shape, dtype=torch.float if wide else torch.half,
                                      device="cuda", requires_grad=True) for shape in shapes]
                compiled = torch.compile(function)
                outputs = compiled(*inputs)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)

                def backward():
                    torch.autograd.grad(outputs, inputs, list(map(torch.zeros_like, outputs)),
                                        retain_graph=True)

                backward()  # its code is written when it runs first
                found[f"{name}, {dtype}"] = [bytes_of(lambda: compiled(*inputs)),
                                                    bytes_of(backward)]
                torch._dynamo.reset()
    print(json.dumps(found))


# --- the comparison ------------------------------------------------------------------------------


class Inductor(unittest.TestCase):
    def test_its_code_moves_the_bytes_that_the_model_counts(self):
        ran = virtual_machine.run(FOLDER, virtual_machine.h200(), __file__)
        self.assertEqual(ran.returncode, 0, ran.stderr[-4000:])
        counted = {}
        for dtype in ("fp32", "fp16"):
            for op in kernel_ops.ops(dtype, "9.0"):
                bytes_of_pass = sum(one.bytes * one.total for one in op.compiled)
                counted.setdefault(f"{op.name}, {dtype}", []).append(bytes_of_pass)
        for name, moved in json.loads(ran.stdout.splitlines()[-1]).items():
            for one_pass, model, inductor in zip(("forward", "backward"), counted[name], moved):
                with self.subTest(name, one_pass=one_pass):
                    self.assertAlmostEqual(model / inductor, 1, delta=2e-3)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        count_bytes()
    else:
        FOLDER = pathlib.Path(sys.argv.pop())
        unittest.main()
