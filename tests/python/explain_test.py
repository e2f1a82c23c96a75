"""`temposcope explain`: what it says of programs whose truth is known, and its remedies verified.

    explain_test.py BIN_FOLDER
"""

import pathlib
import sys
import unittest

from commands import BIN, Commands, temposcope

CASES = pathlib.Path(__file__).parent / "cases"
EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
CARD = "a100-40gb"
GIB = 1 << 30
MIB = 1 << 20

# What each remedy of train_oom.py comes to when the program runs with it: GiB allocated and
# reserved, milliseconds of a step. All fit into the 38.9 GiB of the card.
MEASURED = {
    "expandable_segments": (36.3, 37.0, 369),
    "delete_after_use": (33.5, 38.7, 369),
    "tempo": (30.3, 35.4, 315),
    "checkpoint": (20.1, 25.8, 420),
    "chunked_loss": (21.5, 22.6, 399),
}


def documented(name: str) -> set[str]:
    """The keys of a JSON object, as docs/commands.md lists them."""
    text = (EXAMPLES.parent / "commands.md").read_text()
    (line,) = (one for one in text.splitlines() if one.startswith(f"**{name}**: `"))
    return set(line.split("`")[1].split(", "))


class Explain(Commands):
    def record(self, program: pathlib.Path, *options: str) -> None:
        command = [sys.executable, str(program)]
        temposcope("run", "--gpu", CARD, "-o", self.file, *options, "--", *command)
        self.assertTrue(self.file.is_file())

    def remedies(self, explained: dict) -> dict:
        return {remedy["id"]: remedy for remedy in explained["remedies"]}


class OutOfMemory(Explain):
    def setUp(self):
        super().setUp()
        self.record(CASES / "train_oom.py")

    def test_what_happened_and_what_fills_the_memory(self):
        told = self.told("explain", self.file)
        self.assertEqual(told["verdict"]["kind"], "out_of_memory")
        sentence = "Out of memory at train_oom.py:15: 5.59 GiB asked, 3.02 GiB free, and 5.19 GiB"
        self.assertTrue(told["verdict"]["sentence"].startswith(sentence), told["verdict"])
        failure = told["failure"]
        self.assertEqual((failure["step"], failure["code"]), (2, "loss.backward()"))
        self.assertEqual(failure["op"], "aten::nll_loss_backward")
        lines = {row["line"].split(":")[1].split()[0]: row["bytes"] for row in
                 told["peak"]["by_line"] if ":" in row["line"]}  # fmt: skip
        self.assertAlmostEqual(lines["13"] / GIB, 20.8, delta=0.05)
        self.assertAlmostEqual(lines["14"] / GIB, 8.38, delta=0.05)
        categories = {row["category"]: row["bytes"] for row in told["peak"]["by_category"]}
        self.assertLess(categories.get("unknown", 0), 0.01 * told["peak"]["allocated_bytes"])
        for kind, rows in (("finding", told["findings"]), ("remedy", told["remedies"])):
            self.assertEqual(set(rows[0]), documented(f"explain {kind}"))
        self.assertEqual(set(told["remedies"][0]["change"]), documented("explain change"))
        self.assertEqual(
            {finding["id"] for finding in told["findings"]},
            {"logits_and_loss", "dropout_grows", "fragmentation", "held_past_use"},
        )

    def test_estimates_say_what_fits(self):
        told = self.told("explain", self.file)
        remedies = self.remedies(told)
        for name, (peak, *_) in MEASURED.items():
            with self.subTest(name):
                self.assertTrue(remedies[name]["fits"])
                self.assertEqual(remedies[name]["evidence"], "estimated")
                estimate = remedies[name]["peak_allocated_bytes"] / GIB
                self.assertAlmostEqual(estimate, peak, delta=0.05 * peak)
        self.assertEqual(told["target"]["largest_batch"], 91)
        self.assertEqual(remedies["smaller_batch"]["change"]["text"], "91")

    def test_another_target(self):
        told = self.told("explain", self.file, "--to-fit", "gpu=h100-sxm")
        self.assertEqual(told["verdict"]["kind"], "fits")
        half = self.told("explain", self.file, "--to-fit", "batch=48")
        self.assertEqual(half["verdict"]["kind"], "fits")
        self.assertEqual(half["target"]["batch"], 48)
        refused = temposcope("explain", self.file, "--to-fit", "batch=none")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--to-fit batch=none: give a number of 1 or more.", refused.stderr)

    def test_a_replay_does_not_fit_and_with_segments_that_grow_it_does(self):
        rows = {row["settings"]: row for row in self.told("replay", self.file)["rows"]}
        self.assertFalse(rows[""]["fits"])
        self.assertTrue(rows["expandable_segments:True"]["fits"])

    def test_remedies_are_verified_by_runs(self):
        remedies = self.remedies(self.told("explain", self.file, "--verify", "9"))
        for name, (peak, reserved, time_ms) in MEASURED.items():
            with self.subTest(name):
                remedy = remedies[name]
                self.assertEqual(remedy["evidence"], "verified", remedy["problem"])
                self.assertTrue(remedy["fits"])
                self.assertAlmostEqual(remedy["peak_allocated_bytes"] / GIB, peak, delta=0.1)
                self.assertAlmostEqual(remedy["peak_reserved_bytes"] / GIB, reserved, delta=0.1)
                self.assertAlmostEqual(remedy["step_time_ns"] / 1e6, time_ms, delta=5)
        self.assertEqual(remedies["smaller_batch"]["evidence"], "estimated")
        self.assertIn("fits", temposcope("explain", self.file).stdout)


class Growth(Explain):
    def test_a_line_that_keeps_more_after_each_step(self):
        self.record(CASES / "train_leak.py", "--steps", "7")
        told = self.told("explain", self.file)
        self.assertEqual(told["verdict"]["kind"], "grows")
        (line,) = told["growth"]
        self.assertAlmostEqual(line["bytes_per_step"] / MIB, 149, delta=1)
        self.assertIn("list `history[7]`, train_leak.py:18", line["held_by"])
        self.assertIn("keep_less", self.remedies(told))

    def test_nothing_is_unusual_about_an_ordinary_program(self):
        self.record(EXAMPLES / "train.py")
        told = self.told("explain", self.file)
        self.assertEqual(told["verdict"]["kind"], "fits")
        self.assertEqual((told["growth"], told["findings"]), ([], []))
        categories = {row["category"]: row["bytes"] for row in told["peak"]["by_category"]}
        self.assertLess(categories.get("unknown", 0), 0.01 * told["peak"]["allocated_bytes"])


class Refused(Explain):
    def test_a_trace_that_does_not_know_its_command(self):
        example = pathlib.Path(__file__).parents[2] / "assets" / "examples" / "tempo.tscope"
        ran = temposcope("explain", example, "--verify", "1")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("give its command after --", ran.stderr)


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: explain_test.py BIN_FOLDER")
    unittest.main()
