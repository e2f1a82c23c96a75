"""torch.ops.tempo with torch's CUDA code on a virtual GPU: which kernels are launched, how large,
and what a CUDA graph may capture.

Run by ctest: `ops_on_cuda_test.py FOLDER LIBTEMPO_OPS LIBTEMPO_OPS_CUDA`, with the folder of the
virtual GPU's libraries.
"""

import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "profiler" / "virtual_gpu"))
import virtual_machine  # noqa: E402

ROWS, HIDDEN = 1200, 1024  # of the program's tensors
FORWARD_GRID = ROWS // 4, (32, 4, 1)  # four rows a block, a warp each
# Two blocks for each of the H200's multiprocessors; four rows at once, eight elements a thread.
BACKWARD_GRID = 2 * 132, (HIDDEN // 8, 4, 1)


def run_program():
    folder, *libraries = sys.argv[1:]
    machine = virtual_machine.h200()
    program = str(HERE / "ops_on_cuda_program.py")
    done = virtual_machine.run(pathlib.Path(folder), machine, program, *libraries)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout)


class OnCuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = run_program()

    def test_tensors_on_cuda_need_the_library_of_its_kernels(self):
        self.assertIn("x is on cuda:0; load libtempo_ops_cuda.so too", self.found["unloaded"])

    def launches(self, op, direction):
        """(name, blocks, threads of a block) of our own kernels, without torch's."""
        return [
            (name.partition("_kernel<")[0].rpartition("::")[2], blocks, tuple(block))
            for name, blocks, block in self.found["launches"][op][direction]
            if "kernels::" in name
        ]

    def assert_launches(self, op, forward, backward):
        with self.subTest(op):
            self.assertEqual(self.launches(op, "forward"), forward)
            self.assertEqual(self.launches(op, "backward"), backward)

    def test_flat_kernels_take_eight_elements_a_thread_and_gelu_backward_sixteen(self):
        def flat(name, elements_of_thread=8):
            return name, ROWS * HIDDEN // (elements_of_thread * 256), (256, 1, 1)

        gelu = [flat("inplace_gelu_forward")], [flat("inplace_gelu_backward", 16)]
        self.assert_launches("gelu", *gelu)
        self.assert_launches("bias_gelu", *gelu)
        self.assert_launches("dropout", [flat("dropout_forward")], [flat("dropout_backward")])

    def test_rows_of_norms_live_in_registers(self):
        for op, kernel in (
            ("layer_norm", "layer_norm"),
            ("rms_norm", "layer_norm"),
            ("residual_layer_norm", "residual_layer_norm"),
        ):
            reduction = "layer_norm_reduce", HIDDEN // 32, (32, 8, 1)
            backward = kernel + "_backward", *BACKWARD_GRID
            self.assert_launches(
                op, [(kernel + "_forward", *FORWARD_GRID)], [backward, reduction]
            )

    def test_a_warp_takes_a_row_of_scores(self):
        rows = 4 * 48
        blocks = rows // 4
        self.assert_launches(
            "attention_core",
            [("softmax_dropout_forward", blocks, (128, 1, 1))],
            [
                ("dropout_backward", rows * 512 // (8 * 256), (256, 1, 1)),
                ("softmax_dropout_backward", blocks, (128, 1, 1)),
            ],
        )

    def test_graphs_refuse_to_draw_a_mask(self):
        captures = self.found["captures"]
        self.assertFalse(captures["before"])
        draws = {"dropout", "softmax", "backward that draws"}
        for name, error in captures["refused"].items():
            with self.subTest(name):
                refused = "a CUDA graph would replay one dropout mask"
                self.assertIn(refused if name in draws else "no error", error)

    def test_graphs_replay_masks_where_the_program_allows_it(self):
        self.assertEqual(set(self.found["captures"]["allowed"].values()), {"no error"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
