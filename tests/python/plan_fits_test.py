"""`temposcope plan --parallel`: what fits where, found by runs of torch's own code.

    plan_fits_test.py BIN_FOLDER
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
COMMANDS = pathlib.Path(__file__).parents[2] / "docs" / "commands.md"
MODEL = ("--model", "gpt2", "--head", "lm", "--layers", "1", "--seq", "1024")


def documented_keys(name: str) -> set[str]:
    """Users rely on the lists in docs/commands.md, as in tests/app/json_keys_test.cpp."""
    found = re.search(rf"^\*\*{name}\*\*: `(.*?)`", COMMANDS.read_text(), re.MULTILINE)
    return set(found[1].split(", "))


class Fits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, *options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [BIN / "temposcope", "plan", *options], capture_output=True, text=True,
            env=os.environ | {"TEMPOSCOPE_PYTHON": sys.executable},
        )  # fmt: skip

    def test_cards_numbers_and_strategies(self):
        table, chart = self.folder / "fits.csv", self.folder / "fits.svg"
        ran = self.plan(*MODEL, "--gpu", "t4", "--parallel", "ddp,fsdp2,tp:5",
                        "--world-size", "8", "-o", table, "--chart", chart, "--json")  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = json.loads(ran.stdout)
        rows = {row["values"]["parallel"]: row for row in told["rows"]}
        self.assertEqual(list(rows), ["ddp", "fsdp2", "tp:5"])
        self.assertEqual(set(told), documented_keys("plan fits"))
        self.assertEqual(set(rows["ddp"]), documented_keys("plan fits row"))
        self.assertIn("give a multiple of 5", rows.pop("tp:5")["impossible"])
        self.assertIn("2 largest batches, by runs of 2 or 3 steps on virtual cards", ran.stderr)
        for row in rows.values():
            self.assertIsNone(row["impossible"], row)
            self.assertIsNone(row["failure"], row)
            batch_size = row["max_batch_size"]
            self.assertEqual(row["failing_batch_size"], batch_size + 1)
            self.assertGreater(row["failing_requested_bytes"], row["failing_free_bytes"])
            self.assertEqual(row["sequences_per_step"], batch_size * row["world_size"])
            # The planner's formulas tell the same within a few percent.
            peak, closed = row["peak_allocated_bytes"], row["closed_terms_bytes"]
            self.assertLess(abs(peak - closed) / peak, 0.05, row["values"])
        self.assertGreater(rows["fsdp2"]["max_batch_size"], rows["ddp"]["max_batch_size"])
        self.assertEqual(told["least"], 1)  # on the same cards the larger step
        with open(table, encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual([line["parallel"] for line in lines], ["ddp", "fsdp2", "tp:5"])
        self.assertEqual(lines[0]["max_batch_size"], str(rows["ddp"]["max_batch_size"]))
        drawn = chart.read_text(encoding="utf-8")
        for part in ("What fits where", "8 x t4", "fsdp2", "impossible"):
            self.assertIn(part, drawn)

    def test_what_makes_no_row_is_refused(self):
        for options, part in (
            (("--gpu", "t4", "--parallel", "none", "--world-size", "8"), "have no row"),
            (("--gpu", "t4", "--parallel", "ddp", "--world-size", "x"), "not a number of GPUs"),
            (("--gpu", "t4", "--parallel", "ddp", "--world-size", "8", "--zero", "1"), "--zero"),
            (("--parallel", "ddp", "--world-size", "8"), "--gpu"),
            (("--gpu", "t4", "--world-size", "8"), "--parallel"),
        ):
            ran = self.plan(*MODEL, *options)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(part, ran.stderr)


if __name__ == "__main__":
    unittest.main()
