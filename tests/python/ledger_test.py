"""The ledger of many model families against an independent count, to the byte, on the CPU and on a
virtual GPU.

    ledger_test.py BIN_FOLDER

Families of Hugging Face and torchvision are tested where these are installed (scripts/setup).
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import families
from commands import BIN, query, temposcope

HERE = pathlib.Path(__file__).parent
CARD = {
    "name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "total_bytes": 42409459712,
    "context_bytes": 524288000, "sm_count": 108, "l2_bytes": 41943040, "threads_per_sm": 2048,
    "blocks_per_sm": 32, "shared_bytes_per_sm": 167936, "shared_bytes_per_block": 166912,
}  # fmt: skip


def virtual_gpu() -> dict:
    libraries = sorted(str(path) for path in (BIN / "virtual_gpu").iterdir())
    return {
        "LD_PRELOAD": ":".join(libraries),
        "LD_LIBRARY_PATH": f"{BIN}/virtual_gpu:{BIN}/virtual_gpu_fallback",
        "TEMPOSCOPE_VIRTUAL_GPU": json.dumps({"devices": [CARD]}),
    }


def names() -> list[str]:
    of_vision = families.OF_TORCHVISION if importlib.util.find_spec("torchvision") else ()
    of_text = families.OF_TRANSFORMERS if importlib.util.find_spec("transformers") else ()
    return [*families.TORCH_ONLY, *of_vision, *of_text]


def record_all(device: str, folder: str) -> list[dict]:
    environment = os.environ | (virtual_gpu() if device == "cuda" else {})
    command = [sys.executable, HERE / "ledger_program.py", device, folder, *names()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def info(path: str, flag: str) -> dict:
    return json.loads(temposcope("info", path, flag, "--json").stdout)


class Recorded:
    """The families on one device. Subclasses say which."""

    device = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.results = record_all(cls.device, cls.folder.name)

    def each(self):
        folder = self.folder.name
        return [(result, f"{folder}/{result['family']}.tscope") for result in self.results]

    def test_all_families_ran(self):
        self.assertEqual([result["family"] for result in self.results], names())
        for result, _ in self.each():
            with self.subTest(family=result["family"]):
                self.assertEqual(result["steps"], 1)

    def test_the_ledger_is_what_the_hooks_count(self):
        for result, path in self.each():
            with self.subTest(family=result["family"]):
                self.assertGreater(result["saved_bytes"], 0)
                self.assertEqual(info(path, "--ledger")["total_bytes"], result["saved_bytes"])

    def test_every_save_has_an_op_and_a_module(self):
        for result, path in self.each():
            with self.subTest(family=result["family"]):
                self.assertGreater(query(path, "SELECT count(*) FROM save"), [(0,)])
                homeless = query(
                    path,
                    "SELECT count(*) FROM save LEFT JOIN op ON op.id = save.op "
                    "WHERE save.op IS NULL OR op.scope IS NULL",
                )
                self.assertEqual(homeless, [(0,)])

    def test_every_backward_node_has_its_forward_op(self):
        for result, path in self.each():
            with self.subTest(family=result["family"]):
                ((nodes, linked),) = query(
                    path,
                    "SELECT count(*), count(forward) FROM v_op WHERE name LIKE "
                    "'autograd::engine%' AND name NOT LIKE '%AccumulateGrad%'",
                )
                self.assertGreater(nodes, 0)
                self.assertEqual(linked, nodes)


class OnTheCpu(Recorded, unittest.TestCase):
    device = "cpu"

    def test_gradients_are_those_of_an_unrecorded_step(self):
        for result, _ in self.each():
            with self.subTest(family=result["family"]):
                self.assertGreater(result["gradients"], 0)
                self.assertTrue(result["gradients_equal"])


class OnAVirtualGpu(Recorded, unittest.TestCase):
    device = "cuda"

    def test_the_peak_is_what_torch_counts(self):
        for result, path in self.each():
            with self.subTest(family=result["family"]):
                self.assertEqual(
                    info(path, "--peak")["peak_allocated_bytes"], result["peak_bytes"]
                )

    def test_kernels_have_their_ops(self):
        for result, path in self.each():
            with self.subTest(family=result["family"]):
                ((kernels, with_op),) = query(path, "SELECT count(*), count(op) FROM kernel")
                self.assertGreater(kernels, 0)
                self.assertEqual(with_op, kernels)

    def flop(self, family: str) -> dict[str, list[int]]:
        """By op, in the order of its calls."""
        flop = {}
        path = f"{self.folder.name}/{family}.tscope"
        for name, number in query(path, "SELECT name, flop FROM v_op WHERE flop > 0 ORDER BY id"):
            flop.setdefault(name, []).append(number)
        return flop

    def test_convolutions_are_counted(self):
        flop = self.flop("cnn")
        # Twice: batch, channels out, places, and the window's 3 x 3 x channels in.
        first, second = 2 * 2 * 16 * 32 * 32 * 27, 2 * 2 * 32 * 16 * 16 * 9 * 16
        self.assertEqual(flop["aten::cudnn_convolution"], [first, second])
        # The input of the first one needs no gradient.
        self.assertEqual(flop["aten::convolution_backward"], [2 * second, first])

    def test_recurrent_layers_are_counted(self):
        flop = self.flop("lstm")
        # Four gates in two directions, of inputs and hidden state: 96 + 32, then 64 + 32 wide.
        weights = 2 * 4 * 32 * (96 + 32 + 64 + 32)
        steps = 2 * 32
        self.assertEqual(flop["aten::_cudnn_rnn"], [2 * steps * weights])
        self.assertEqual(flop["aten::_cudnn_rnn_backward"], [2 * 2 * steps * weights])


if __name__ == "__main__":
    unittest.main()
