"""`temposcope plan --parallel`: what fits where, found by runs of torch's own code.

    plan_parallel_test.py BIN_FOLDER
"""

import csv
import json
import pathlib
import re
import unittest

from commands import Commands, temposcope

COMMANDS = pathlib.Path(__file__).parents[2] / "docs" / "commands.md"
MODEL = ("--model", "gpt2", "--head", "lm", "--layers", "1", "--seq", "1024")


def documented_keys(name: str) -> set[str]:
    """Users rely on the lists in docs/commands.md, as in tests/app/json_keys_test.cpp."""
    found = re.search(rf"^\*\*{name}\*\*: `(.*?)`", COMMANDS.read_text(), re.MULTILINE)
    return set(found[1].split(", "))


class Refusing(Commands):
    def assert_refused(self, command, cases):
        for options, part in cases:
            ran = temposcope(*command, *options)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(part, ran.stderr)


class Fits(Refusing):
    def test_cards_numbers_and_strategies(self):
        table, chart = self.folder / "fits.csv", self.folder / "fits.svg"
        ran = self.succeed("plan", *MODEL, "--gpu", "t4", "--parallel", "ddp,fsdp2,tp:5",
                           "--world-size", "8", "-o", table, "--chart", chart,
                           "--json")  # fmt: skip
        told = json.loads(ran.stdout)
        rows = {row["values"]["parallel"]: row for row in told["rows"]}
        self.assertEqual(list(rows), ["ddp", "fsdp2", "tp:5"])
        self.assertEqual(set(told), documented_keys("plan fits"))
        self.assertEqual(set(rows["ddp"]), documented_keys("plan fits row"))
        self.assertIn("give a multiple of 5", rows.pop("tp:5")["impossible"])
        self.assertIn("2 largest batches, by runs of 2 or 3 steps on simulated GPUs", ran.stderr)
        for row in rows.values():
            sequences = row["throughput_sequences_per_s"] * row["step_time_ns"] / 1e9
            self.assertAlmostEqual(sequences, row["sequences_per_step"], places=6)
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
        self.assert_refused(("plan", *MODEL), (
            (("--gpu", "t4", "--parallel", "none", "--world-size", "8"), "have no row"),
            (("--gpu", "t4", "--parallel", "ddp", "--world-size", "x"), "not a number of GPUs"),
            (("--gpu", "t4", "--parallel", "ddp", "--world-size", "8", "--zero", "1"), "--zero"),
            (("--parallel", "ddp", "--world-size", "8"), "--gpu"),
            (("--gpu", "t4", "--world-size", "8"), "--parallel"),
        ))

    def test_other_models_are_pointed_to_run(self):
        many = ("--gpu", "t4", "--parallel", "ddp", "--world-size", "8")
        self.assert_refused(("plan",), (
            (("--model", "llama", *many), "A program with a model of its own runs with temposcope"),
            (("--trace", "mine.tscope", *many),
             "leave --parallel out, and run it on many GPUs by temposcope run --gpu GPU "
             "--world-size N --max."),
        ))  # fmt: skip


class SweptRanks(Refusing):
    def test_a_row_is_a_recipe_a_strategy_and_a_batch(self):
        table, chart = self.folder / "sweep.csv", self.folder / "sweep.svg"
        told = self.told("sweep", *MODEL, "--device", "predict:t4", "--recipe", "tempo",
                         "--parallel", "fsdp2,tp:5", "--world-size", "8", "-o", table, "--chart",
                         chart)  # fmt: skip
        self.assertEqual(set(told), documented_keys("sweep ranks"))
        self.assertEqual(set(told["rows"][0]), documented_keys("sweep ranks row"))
        tried = [row for row in told["rows"] if row["parallel"] == "fsdp2"]
        fitting = [row for row in tried if row["fits"]]
        self.assertEqual([row["batch_size"] for row in tried[:3]], [1, 2, 4])
        self.assertEqual(len(tried), len({row["batch_size"] for row in tried}))
        largest = max(row["batch_size"] for row in fitting)
        self.assertIn(largest + 1, [row["batch_size"] for row in tried if not row["fits"]])
        peaks = [row["peak_allocated_bytes"] for row in fitting]
        self.assertEqual(peaks, sorted(peaks))
        for row in fitting:
            rate = 8 * row["batch_size"] * 1e9 / row["step_time_ns"]
            self.assertAlmostEqual(row["throughput_sequences_per_s"], rate, places=6)
        impossible = told["rows"][-1]
        self.assertIn("give a multiple of 5", impossible["reason"])
        with open(table, encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(len(lines), len(told["rows"]))
        self.assertEqual(lines[0]["peak_allocated_bytes"], str(peaks[0]))
        self.assertIn("8 x t4", chart.read_text(encoding="utf-8"))

    def test_what_means_nothing_is_refused(self):
        spread = ("--parallel", "ddp", "--world-size", "8")
        card = ("--device", "predict:t4")
        self.assert_refused(("sweep", *MODEL), (
            (spread, "add --device predict:GPU"),
            ((*card, "--parallel", "ddp"), "add --world-size"),
            ((*card, *spread, "--batch", "4"), "leave --batch out"),
            ((*card, *spread, "-o", "folder"), "ends in .csv or .json"),
            ((*card, "--parallel", "none", "--world-size", "8"), "have no row"),
            ((*card, "--world-size", "8"), "--parallel"),
        ))


if __name__ == "__main__":
    unittest.main()
