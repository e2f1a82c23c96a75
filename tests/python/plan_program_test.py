"""`temposcope plan --trace A --trace B`: from two batches of a program to every batch and card.

    plan_program_test.py BIN_FOLDER
"""

import json
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest

from commands import temposcope

TRAIN = """
    import sys
    import torch
    from torch import nn

    batch_size, width = int(sys.argv[1]), 512
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 4).cuda()
    optimizer = torch.optim.AdamW(encoder.parameters())
    for _ in range(4):
        hidden = encoder(torch.randn(batch_size, 256, width, device="cuda"))
        {loss}.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
PAIRS = "(hidden.flatten(0, 1) @ hidden.flatten(0, 1).T).square().mean()"  # of all tokens


class PlanOfAProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.program = cls.write("train.py", "hidden.mean()")
        for batch_size in (8, 16, 24):
            cls.record(cls.program, batch_size)

    @classmethod
    def write(cls, name: str, loss: str) -> str:
        path = cls.folder / name
        path.write_text(textwrap.dedent(TRAIN).format(loss=loss))
        return str(path)

    @classmethod
    def record(cls, program: str, batch_size: int, python=sys.executable, **environment):
        file = cls.folder / f"{pathlib.Path(program).stem}-{batch_size}.tscope"
        temposcope("run", "--gpu", "a100-40gb", "--steps", "2", "-o", file, "--", python, program,
                   str(batch_size), env=os.environ | environment).check_returncode()  # fmt: skip
        return file

    def plan(self, *options: str, batches=(8, 16), program="train"):
        traces = [f"--trace={self.folder / program}-{size}.tscope" for size in batches]
        return temposcope("plan", *traces, *options, "--json")

    def row(self, *options: str) -> dict:
        done = self.plan(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["rows"]
        return row

    def test_a_third_batch_is_what_a_run_gives(self):
        planned = self.row("--gpu", "a100-40gb", "--batch", "24")
        compared = temposcope("compare", self.folder / "train-24.tscope", "--json")
        (ran,) = json.loads(compared.stdout)["rows"]
        # A plan counts blocks, which the allocator rounds up; a trace counts what was asked for.
        requested_bytes = planned["peak_allocated_bytes"] - planned["terms"]["rounding_bytes"]
        self.assertEqual(requested_bytes, ran["peak_allocated_bytes"])
        self.assertAlmostEqual(planned["step_time_ns"] / ran["step_time_ns"], 1, delta=0.001)
        self.assertEqual((planned["model"], planned["seq_len"]), ("TransformerEncoder", None))

    def test_the_largest_batch_is_what_runs_find(self):
        planned = self.row("--gpu", "t4")
        found = temposcope("run", "--gpu", "t4", "--max", "N", "--json", "--", sys.executable,
                           self.program, "{N}")  # fmt: skip
        (run,) = json.loads(found.stdout)["rows"]
        self.assertAlmostEqual(planned["max_batch_size"] / run["max_batch_size"], 1, delta=0.04)

    def test_a_list_of_cards(self):
        done = self.plan("--gpu", "a100-40gb,h100-sxm,t4", "-o", str(self.folder / "plan.csv"))
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([row["gpu"] for row in rows], ["a100-40gb", "h100-sxm", "t4"])
        self.assertGreater(rows[1]["max_batch_size"], rows[0]["max_batch_size"])
        self.assertGreater(rows[0]["max_batch_size"], rows[2]["max_batch_size"])
        self.assertEqual(len((self.folder / "plan.csv").read_text().splitlines()), 4)

    def test_a_card_without_flash_attention(self):
        heads = "[hidden.half().unflatten(2, (8, 64)).transpose(1, 2)] * 3"
        loss = f"nn.functional.scaled_dot_product_attention(*{heads}).mean()"
        flash = self.write("flash.py", loss)
        python = pathlib.Path(sys.executable)
        (self.folder / "first" / python.name).mkdir(parents=True)  # a folder is no program
        path = f"{self.folder / 'first'}:{python.parent}:{os.environ['PATH']}"
        for batch_size in (8, 16):
            self.record(flash, batch_size, python.name, PATH=path)
        done = self.plan("--gpu", "t4,h100-sxm", program="flash")
        refused, planned = json.loads(done.stdout)["rows"]
        self.assertIn("has no flash attention", refused["reason"])
        self.assertIn("only a run there tells. Add --run.", refused["reason"])
        self.assertGreater(planned["max_batch_size"], 16)

        done = self.plan("--gpu", "t4", "--run", "--batch", "24", program="flash")
        (planned,) = json.loads(done.stdout)["rows"]
        trace = self.folder / "flash-t4.tscope"
        temposcope("run", "--gpu", "t4", "-o", trace, "--", sys.executable, flash, "24")
        (ran,) = json.loads(temposcope("compare", trace, "--json").stdout)["rows"]
        requested_bytes = planned["peak_allocated_bytes"] - planned["terms"]["rounding_bytes"]
        self.assertAlmostEqual(requested_bytes / ran["peak_allocated_bytes"], 1, delta=0.005)

    def test_what_is_not_affine_in_the_batch(self):
        pairs = self.write("pairs.py", PAIRS)
        for batch_size in (8, 16):
            self.record(pairs, batch_size)
        done = self.plan("--gpu", "a100-40gb", program="pairs")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("does not grow in proportion to the batch", done.stderr)
        self.assertIn("let temposcope run try them", done.stderr)

    def test_bad_input(self):
        for options, batches, code, part in (
            ((), (8,), 1, "give traces of two batches"),
            ((), (8, 8), 1, "both have a batch of 8"),
            (("--model", "bert-base"), (8, 16), 2, "leave --model out"),
            (("--gpu", "h1000"), (8, 16), 2, "h1000"),
        ):
            with self.subTest(part=part):
                done = self.plan(*options, batches=batches)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
