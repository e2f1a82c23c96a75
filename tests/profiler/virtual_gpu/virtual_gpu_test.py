"""The installed torch on a virtual GPU.

    virtual_gpu_test.py FOLDER_OF_THE_LIBRARIES
"""

import json
import pathlib
import sys
import unittest

from virtual_machine import GIB, machine_of, run

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
PROGRAM = pathlib.Path(__file__).parent / "torch_program.py"
class Torch(unittest.TestCase):
    def result_on(self, card, **variables):
        ran = run(FOLDER, machine_of(card), str(PROGRAM), **variables)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def check(self, result):
        self.assertEqual(result["devices"], 2)
        self.assertEqual(result["memory"], [16 * GIB - GIB // 2, 16 * GIB])
        values = result["values"]
        self.assertEqual(values["copied"], [1, 2, 3])
        self.assertEqual(values["filled"], 65536)
        self.assertEqual(values["ones"], [1, 1, 1])
        self.assertEqual(values["computed"], [0, 0], "no kernel runs")
        self.assertEqual(values["all"], [True, True, False])
        self.assertTrue(values["same_block"], "the test needs a block that is used again")
        self.assertEqual(values["reused"], [0, 0, 0], "stale bytes")
        self.assertGreater(result["training_peak"], 0)
        self.assertEqual(result["attention"], ["no error", "no error"])
        self.assertFalse(result["deadlock"])
        self.assertEqual(result["graph"], [1024])
        self.assertTrue(result["streams"])
        self.assertIn("gemm f32*f32->f32 nn 16x32x48 compute f32", result["kernels"])
        self.assertEqual(len(result["kernels"]), 2, result["kernels"])
        self.assertEqual(result["second_device"], [2])
        self.assertEqual(result["sorted"], [5000])
        self.assertEqual(result["pinned"], [1, 1, 1, 1])
        self.assertIn("OutOfMemoryError: CUDA out of memory. Tried", result["out_of_memory"])
        self.assertIn("16.00 GiB", result["out_of_memory"])
        self.assertEqual(result["svd"], "no error")
        self.assertEqual(result["fft"], "no error")
        self.assertIn("does not have cusparseLt", result["semi_structured"])

    def test_trains_on_an_a100(self):
        result = self.result_on("a100")
        self.check(result)
        self.assertEqual(result["capability"], [8, 0])
        self.assertNotIn("a plan of cuDNN", result["attention_kernels"])
        self.assertEqual(result["name"], "a100")

    def test_trains_on_an_h100_with_the_attention_of_this_torch(self):
        result = self.result_on("h100")
        self.check(result)
        if result["torch"].startswith("2.11."):
            self.assertIn("a plan of cuDNN", result["attention_kernels"])
        else:  # older ones take flash, newer ones only with dropout, as here
            self.assertIn("pytorch_flash::flash_fwd_kernel", str(result["attention_kernels"]))

    def test_trains_on_a_card_without_bf16(self):
        self.check(self.result_on("2080ti"))

    def test_trains_with_expandable_segments(self):
        self.check(self.result_on("a100", PYTORCH_ALLOC_CONF="expandable_segments:True"))


class BadMachines(unittest.TestCase):
    def refusal_of(self, machine):
        ran = run(FOLDER, machine, "-c", "import ctypes; ctypes.CDLL(None).cuInit(0)")
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        return ran.stderr

    def test_are_refused_in_one_sentence(self):
        self.assertIn("TEMPOSCOPE_VIRTUAL_GPU", self.refusal_of("nonsense"))
        self.assertIn("1 to 32 GPUs", self.refusal_of({"devices": []}))


if __name__ == "__main__":
    unittest.main()
