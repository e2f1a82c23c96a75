"""temposcope.swap with torch's CUDA code, on virtual GPUs: what layers save is equal to the closed
forms there too, and training keeps less.

Run by ctest: `swap_on_cuda_test.py FOLDER`, with the folder of the virtual GPU's libraries.
"""

import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "profiler" / "virtual_gpu"))
import virtual_machine  # noqa: E402

FOLDER = pathlib.Path(sys.argv.pop())


class Cuda(unittest.TestCase):
    def run_program(self, card, program, *arguments) -> str:
        machine = virtual_machine.machine_of(card, 1)
        done = virtual_machine.run(FOLDER, machine, str(HERE / program), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return done.stdout

    def test_layers_save_what_the_closed_forms_say(self):
        for card in ("a100", "h100"):
            with self.subTest(card):
                self.run_program(card, "swap_bytes_test.py", "--device", "cuda")

    def test_training_keeps_less(self):
        rows = json.loads(self.run_program("a100", "train_on_cuda.py"))
        self.assertEqual(len(rows), 7 * 2 * 3)
        for row in rows:
            with self.subTest(row["name"]):
                self.assertLess(row["tempo"], row["original-stock"])
                self.assertLessEqual(row["tempo-packed"], row["tempo"])  # Llama has no masks
                self.assertLess(row["checkpoint"], row["original-stock"])
                self.assertEqual(row["later"], row["tempo"])  # swapped before or after .to("cuda")

    def test_a_state_dict_decides_at_once_what_norms_save(self):
        saves = json.loads(self.run_program("a100", "load_on_cuda.py"))
        self.assertEqual(saves, ["output", "output", "normalized"])

    def test_a_graph_is_captured_unless_it_draws_a_mask(self):
        found = json.loads(self.run_program("a100", "graph_on_cuda.py"))
        self.assertEqual(found["without dropout"], "captured")
        self.assertIn("a CUDA graph would replay one dropout mask", found["with dropout"])


if __name__ == "__main__":
    unittest.main()
