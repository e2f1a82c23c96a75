"""Programs whose kernels are compiled while they run, on a simulated GPU: torch.compile in its
modes, FlexAttention, Triton by hand, and the kernels of bitsandbytes.

    compiled_test.py BIN_FOLDER

Each program of the folder compiled/ tells what torch counted; its trace has the same.
"""

import importlib.util
import json
import os
import pathlib
import sys
import unittest
from unittest import mock

from commands import Commands, main, temposcope, thorough

PROGRAMS = pathlib.Path(__file__).resolve().parent / "compiled"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples"
SKIPPED, RECORDED = 4, 2  # steps, as compiled/counted.py has them

# Of what code in a folder allocates: all bytes, those whose stack ends in a program, and those
# whose storage has the name of a module in front.
BYTES_OF_CODE = """
WITH RECURSIVE around(allocation, stack) AS (
    SELECT id, stack FROM allocation
    UNION ALL
    SELECT allocation, parent FROM around JOIN stack ON stack.id = stack WHERE parent IS NOT NULL)
SELECT sum(requested_bytes), sum(requested_bytes * (file LIKE :program)),
       sum(requested_bytes * EXISTS (
           SELECT 1 FROM v_tensor t WHERE t.storage = a.storage AND t.name LIKE :modules))
FROM allocation a JOIN stack ON stack.id = a.stack JOIN v_frame f ON f.id = stack.frame
WHERE a.id IN (
    SELECT allocation FROM around JOIN stack ON stack.id = around.stack
    JOIN v_frame f ON f.id = frame WHERE f.file LIKE :folder)
"""


@thorough
class Compiled(Commands):
    def setUp(self):
        super().setUp()
        caches = {f"{name}_CACHE_DIR": str(self.folder / name.lower())
                  for name in ("TRITON", "TORCHINDUCTOR")}  # fmt: skip
        patch = mock.patch.dict(os.environ, caches | {"TEMPOSCOPE_PYTHON": sys.executable})
        patch.start()
        self.addCleanup(patch.stop)

    def start(self, program: str, *words, returns=0):
        options = ["--skip", str(SKIPPED), "--steps", str(RECORDED), "--overwrite", "-o", self.file]
        command = [sys.executable, PROGRAMS / program, *words]
        ran = temposcope("run", "--gpu", "h100-sxm", *options, "--", *command)
        self.assertEqual(ran.returncode, returns, ran.stdout + ran.stderr)
        return ran

    def record(self, program: str, *words) -> dict:
        """What the program told. The trace has the peak that torch counted."""
        ran = self.start(program, *words)
        counted = json.loads(ran.stdout.splitlines()[-1])
        told = self.told("info", self.file)
        self.assertEqual(told["state"], "complete")
        self.assertEqual(told["peak_allocated_bytes"], counted["requested"])
        self.assertEqual(told["peak_reserved_bytes"], counted["reserved"])
        return counted | {"classes": {row["name"]: row["size_bytes"] for row in told["rows"]}}

    def kernels(self) -> dict[str, tuple]:
        """Registers and shared bytes of the kernels that Triton compiled, by name: without the
        first step, in which configurations are tried."""
        rows = self.query(
            "SELECT DISTINCT name, registers_per_thread, shared_memory_bytes FROM v_kernel "
            "WHERE (name LIKE 'triton\\_%' ESCAPE '\\' OR name = 'softmax_kernel') AND "
            "start_ns >= (SELECT min(start_ns) FROM v_step WHERE kind = 'whole')"
        )
        return {name: (registers, shared) for name, registers, shared in rows}

    def test_a_compiled_model_asks_for_the_same_in_each_run(self):
        cold = self.record("gpt.py", "default")
        kernels = self.kernels()
        self.assertGreater(len(kernels), 4)
        for name, (registers, _) in kernels.items():
            self.assertGreater(registers, 0, name)
        warm = self.record("gpt.py", "default")  # from the caches of the first run
        self.assertEqual(warm["requested"], cold["requested"])
        self.assertEqual(self.kernels(), kernels)

    def test_compiled_code_has_the_lines_and_modules_of_the_program(self):
        for cache in ("cold", "warm"):
            with self.subTest(cache):
                self.record("gpt.py", "default")
                names = {"program": "%/compiled/gpt.py", "modules": "blocks.%",
                         "folder": f"{self.folder}/torchinductor/%"}  # fmt: skip
                ((compiled, with_line, of_blocks),) = self.query(BYTES_OF_CODE, values=names)
                self.assertGreater(compiled, 0)
                self.assertEqual(with_line, compiled)
                self.assertGreater(of_blocks, 0.2 * compiled)
                layers = {row["name"] for row in self.told(
                    "info", self.file, "--peak", "--by", "layer")["rows"]}  # fmt: skip
                self.assertLessEqual({"blocks.0", "blocks.1"}, layers)

    def test_a_step_of_a_cuda_graph_asks_for_little_and_keeps_its_pool(self):
        told = self.record("gpt.py", "reduce-overhead")
        # The activations lie in the graph's pool, which stays reserved.
        self.assertLess(told["allocated"], told["reserved"] / 2)
        self.assertGreater(len(self.kernels()), 4)  # of the replayed graphs

    def test_dynamic_shapes_share_their_code(self):
        told = self.record("gpt.py", "dynamic")
        self.assertLess(told["graphs"], 4)  # for four lengths

    def test_flex_attention_keeps_no_scores(self):
        told = self.record("flex.py")
        self.assertLess(told["classes"].get("activation", 0), told["scores"])
        self.assertTrue(any("flex_attention" in name for name in self.kernels()))

    def test_autotuning_ends_and_chooses_the_same_in_each_run(self):
        first = self.record("autotuned.py")
        ((registers, _),) = self.kernels().values()
        self.assertEqual(registers, first["registers"])
        again = self.record("autotuned.py")
        self.assertEqual((again["warps"], again["times"]), (first["warps"], first["times"]))

    @unittest.skipUnless(importlib.util.find_spec("bitsandbytes"), "no bitsandbytes")
    def test_states_of_eight_bits_have_the_bytes_of_their_closed_form(self):
        width, layers = 1024, 4
        weights, biases, code = layers * width * width, layers * width, 256 * 4
        of_blocks = weights // 256 * 4
        told = self.record("eight_bit.py", "AdamW8bit")
        self.assertEqual(told["on_device"], 2 * (weights + of_blocks + 4 * biases + code))
        self.assertEqual(told["classes"]["optimizer_state"], told["on_device"])
        told = self.record("eight_bit.py", "PagedAdamW8bit")
        self.assertEqual(told["paged"], 2 * weights)
        self.assertEqual(told["on_device"], 2 * (of_blocks + 4 * biases + code))

    def look_at_example(self, program: str, gpu: str, *words: str) -> dict:
        """Of docs/examples: its trace has the peak that it prints."""
        command = [sys.executable, EXAMPLES / program, *words]
        ran = temposcope("run", "--gpu", gpu, "--overwrite", "-o", self.file, "--", *command)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = self.told("info", self.file)
        self.assertEqual(told["peak_allocated_bytes"], int(ran.stdout.splitlines()[-1]))
        return {row["name"]: row["size_bytes"] for row in told["rows"]}

    def test_the_compiled_example(self):
        compiled = self.look_at_example("compiled_gpt.py", "h100-sxm")
        eager = self.look_at_example("compiled_gpt.py", "h100-sxm", "eager")
        self.assertLess(sum(compiled.values()), 0.6 * sum(eager.values()))

    @unittest.skipUnless(importlib.util.find_spec("bitsandbytes"), "no bitsandbytes")
    @unittest.skipUnless(importlib.util.find_spec("peft"), "no peft")
    def test_the_example_of_4_bits(self):
        classes = self.look_at_example("qlora.py", "rtx3090")
        # Each weight of a layer takes half a byte, and a scale of a byte for 64 of them.
        linear = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192)
        self.assertGreater(classes["parameter"], linear * (1 / 2 + 1 / 64))
        self.assertLess(classes.get("unknown", 0) + classes.get("held", 0), 1 << 16)

    def test_a_missing_function_is_one_sentence_with_its_line(self):
        ran = self.start("missing_function.py", returns=1)
        self.assertIn("missing_function.py\", line 11", ran.stderr)
        self.assertIn("801: The simulated GPU of Temposcope does not have cuMipmappedArrayCreate",
                      ran.stderr)  # fmt: skip


if __name__ == "__main__":
    main()
