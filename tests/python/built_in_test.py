"""The built-in models in Python (temposcope._built_in) are those of the worker: one step of both on
the same virtual card has the same memory, to the byte.

    built_in_test.py BIN_FOLDER
"""

import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
PROGRAM = BIN / "python/temposcope/programs/train_built_in.py" if BIN else None
SMALL = ("--layers", "2", "--hidden", "256", "--heads", "4", "--batch", "4", "--seq", "128")
GPU = "a100-80gb"


class BuiltIn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_command(self, *words) -> str:
        ran = subprocess.run([BIN / "temposcope", *words], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def memory_in(self, trace: pathlib.Path) -> dict:
        """Peak, saved bytes and the bytes of each class at the peak. A step of a program ends with
        its optimizer, and the loss lives longer: its 4 bytes are of no class there."""
        told = json.loads(self.run_command("info", trace, "--json"))
        at_peak = {row["name"]: row["size_bytes"] for row in told["rows"]}
        at_peak["temporary"] += at_peak.pop("unknown", 0)
        return {
            "peak": told["peak_allocated_bytes"],
            "saved": told["kept_bytes"],
            **at_peak,
        }

    def both(self, *options: str) -> tuple[dict, dict]:
        worker, python = self.folder / "worker.tscope", self.folder / "python.tscope"
        self.run_command("capture", *options, *SMALL, "--device", f"predict:{GPU}", "-o", worker)
        with sqlite3.connect(worker) as trace:
            (workload,) = trace.execute("SELECT workload FROM v_run").fetchone()
        recorded = ("run", "--gpu", GPU, "--skip", "1", "--steps", "1", "-o", python)
        self.run_command(*recorded, "--", sys.executable, PROGRAM, workload)
        return self.memory_in(worker), self.memory_in(python)

    def assert_same(self, *options: str):
        worker, python = self.both(*options)
        self.assertEqual(worker, python)

    def test_bert_with_its_head(self):
        self.assert_same("--model", "bert-base", "--head", "mlm")

    def test_gpt2_with_a_recipe_under_autocast(self):
        self.assert_same("--model", "gpt2", "--head", "lm", "--recipe", "tempo-packed",
                         "--precision", "amp-bf16", "--accumulate", "2")  # fmt: skip

    def test_padded_roberta_with_checkpoints(self):
        self.assert_same("--model", "roberta-base", "--head", "squad", "--padding", "random",
                         "--recipe", "checkpoint")  # fmt: skip

    def test_layers_with_fused_attention(self):
        recipe = "flash,gelu=recompute,qkv=fused,optimizer=adamw_fused"
        self.assert_same("--model", "bert-base", "--precision", "amp-bf16", "--recipe", recipe)

    def test_master_weights(self):
        """In Python they are parameters, as the optimizer's; in the worker they are its state."""
        worker, python = self.both("--model", "bert-base", "--head", "mlm", "--precision", "fp16")
        weights = [of.pop("parameter") + of.pop("optimizer_state") for of in (worker, python)]
        self.assertEqual(*weights)
        self.assertEqual(worker, python)


if __name__ == "__main__":
    unittest.main()
