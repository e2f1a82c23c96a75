"""`temposcope explain`: what it says of programs whose truth is known, and its remedies verified.

    explain_test.py BIN_FOLDER
"""

import pathlib
import re
import sys
import textwrap
import unittest

from commands import BIN, Commands, main, temposcope, thorough

CASES = pathlib.Path(__file__).parent / "cases"
EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
CARD = "a100-40gb"
LARGE_CARD = "h100-sxm"
GIB = 1 << 30
MIB = 1 << 20

# What each remedy of train_oom.py comes to when the program runs with it: GiB allocated and
# reserved, milliseconds of a step. All fit into the 38.9 GiB of the card.
MEASURED = {
    "expandable_segments": (36.3, 37.0, 390),
    "delete_after_use": (33.5, 38.7, 390),
    "tempo": (30.3, 35.4, 322),
    "checkpoint": (20.1, 25.8, 443),
    "chunked_loss": (21.5, 22.6, 420),
}


def documented(name: str) -> set[str]:
    """The keys of a JSON object, as docs/commands.md lists them."""
    text = (EXAMPLES.parent / "commands.md").read_text()
    (line,) = (one for one in text.splitlines() if one.startswith(f"**{name}**: `"))
    return set(line.split("`")[1].split(", "))


class Explain(Commands):
    def record(self, program: pathlib.Path, *options: str, card: str = CARD) -> None:
        command = [sys.executable, str(program)]
        temposcope("run", "--gpu", card, "-o", self.file, *options, "--", *command)
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

    @thorough
    def test_another_target(self):
        told = self.told("explain", self.file, "--to-fit", "gpu=h100-sxm")
        self.assertEqual(told["verdict"]["kind"], "fits")
        half = self.told("explain", self.file, "--to-fit", "batch=48")
        self.assertEqual(half["verdict"]["kind"], "fits")
        self.assertEqual(half["target"]["batch"], 48)
        refused = temposcope("explain", self.file, "--to-fit", "batch=none")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--to-fit batch=none: give a number of 1 or more.", refused.stderr)
        unknown = temposcope("explain", self.file, "--to-fit", "gpu=nope")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("'nope' is not a known GPU", unknown.stderr)

    def test_a_replay_does_not_fit_and_with_segments_that_grow_it_does(self):
        rows = {row["settings"]: row for row in self.told("replay", self.file)["rows"]}
        self.assertFalse(rows[""]["fits"])
        self.assertTrue(rows["expandable_segments:True"]["fits"])

    @thorough
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


# Forward alone keeps 40 outputs of 313 MiB: more than a T4 has left beside weights of 2.5 GiB.
FIRST_STEP = """
    import torch
    from torch import nn

    net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(40))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.randn(20000, 4096, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
# The weights and what is held beside them need 20 GiB.
WHILE_THE_MODEL_IS_MADE = """
    import torch

    held = [torch.empty(1 << 30, device="cuda", dtype=torch.uint8) for _ in range(20)]
    net = torch.nn.Linear(4096, 4096).cuda()
    {train}
"""
TRAIN = "[net(torch.randn(64, 4096, device='cuda')).sum().backward() for _ in range(3)]"
NEEDED = r"With enough memory the step peaks at ([\d.]+) GiB: ([\d.]+) GiB more than the GPU has\."


class BeforeTheFirstStepEnds(Explain):
    def record_text(self, text: str, gpu: str) -> None:
        program = self.folder / "train.py"
        program.write_text(textwrap.dedent(text))
        options = ["--gpu", gpu, "-o", self.file, "--overwrite"]
        temposcope("run", *options, "--", sys.executable, str(program))
        self.assertTrue(self.file.is_file())

    def assert_it_needs(self, told: dict, peak_bytes: int) -> None:
        """What the whole step needs is said in words, and a remedy serves it."""
        said = re.fullmatch(NEEDED, told["notes"][0])
        self.assertTrue(said, told["notes"])
        needed, too_much = (float(number) * GIB for number in said.groups())
        off = 0.02 * peak_bytes  # libraries take other workspaces on another card
        self.assertAlmostEqual(needed, peak_bytes, delta=off)
        limit_bytes = told["target"]["limit_bytes"]
        self.assertAlmostEqual(needed - too_much, limit_bytes, delta=off)
        self.assertEqual(told["verdict"]["kind"], "out_of_memory")
        (larger,) = (one for one in told["remedies"] if one["id"] == "larger_gpu")
        self.assertTrue(larger["fits"])

    def test_a_run_with_enough_memory_tells_the_rest_of_the_step(self):
        self.record_text(FIRST_STEP, "h100-sxm")
        peak_bytes = self.told("info", self.file)["peak_allocated_bytes"]
        self.record_text(FIRST_STEP, "t4")
        unknown = self.told("explain", self.file)
        self.assertFalse([one for one in unknown["remedies"] if one["fits"]])
        self.assertIn(f"temposcope explain {self.file} --verify.", unknown["notes"][-1])
        told = self.told("explain", self.file, "--verify", "1")
        self.assert_it_needs(told, peak_bytes)
        self.assertEqual(told["verdict"], unknown["verdict"])
        self.assertEqual(told["failure"], unknown["failure"])
        self.assertEqual(told["peak"], unknown["peak"])
        self.assertEqual(told["target"]["limit_bytes"], unknown["target"]["limit_bytes"])
        (verified,) = (one for one in told["remedies"] if one["evidence"] == "verified")
        self.assertTrue(verified["fits"], verified)
        self.assertGreater(told["target"]["largest_batch"], 0)

    def test_a_program_that_fails_while_its_model_is_made(self):
        self.record_text(WHILE_THE_MODEL_IS_MADE.format(train=TRAIN), "h100-sxm")
        peak_bytes = self.told("info", self.file)["peak_allocated_bytes"]
        self.record_text(WHILE_THE_MODEL_IS_MADE.format(train=TRAIN), "t4")
        self.assert_it_needs(self.told("explain", self.file, "--verify", "1"), peak_bytes)

    def test_a_program_without_a_step(self):
        self.record_text(WHILE_THE_MODEL_IS_MADE.format(train=""), "t4")
        unknown = self.told("explain", self.file)
        (line, *_) = unknown["peak"]["by_line"]
        self.assertRegex(line["line"], "train.py:4 ")
        self.assertEqual(line["bytes"], unknown["peak"]["allocated_bytes"])
        told = self.told("explain", self.file, "--verify")
        self.assertIn("A run with enough memory does not tell the rest", told["notes"][-1])
        self.assertEqual(told["verdict"], unknown["verdict"])


@thorough
class Together(Explain):
    """Programs that are too large for a card, and no single remedy is enough."""

    def combination(self, gpu: str) -> dict:
        """The best one, verified. All that changes neither batch nor card is not enough alone."""
        target = ("--to-fit", f"gpu={gpu}")
        estimated = self.told("explain", self.file, *target)
        self.assertEqual(estimated["verdict"]["kind"], "out_of_memory")
        for remedy in estimated["remedies"]:
            is_single = not remedy["members"] and remedy["change"]["kind"] not in ("batch", "gpu")
            self.assertFalse(is_single and remedy["fits"], remedy)
        best = estimated["remedies"][0]
        self.assertEqual((best["fits"], best["evidence"]), (True, "estimated"))
        told = self.told("explain", self.file, *target, "--verify", "1")
        verified = self.remedies(told)[best["id"]]
        self.assertEqual(verified["evidence"], "verified", verified["problem"])
        self.assertTrue(verified["fits"])
        peak = verified["peak_allocated_bytes"]
        self.assertAlmostEqual(best["peak_allocated_bytes"], peak, delta=0.1 * peak)
        return verified

    def test_two_edits_of_one_file(self):
        self.record(CASES / "train_two_results.py", card=LARGE_CARD)
        both = self.combination("rtx4090")
        self.assertEqual(both["id"], "delete_after_use+delete_after_use")
        self.assertEqual(both["members"], ["delete_after_use", "delete_after_use"])
        self.assertEqual(both["change"]["kind"], "several")
        self.assertEqual(both["change"]["text"], "del left\ndel right")
        self.assertEqual(both["code_lines"], 2)
        self.assertEqual([part["text"] for part in both["parts"]], ["del left", "del right"])
        shown = temposcope("explain", self.file, "--to-fit", "gpu=rtx4090").stdout
        for part in both["parts"]:
            self.assertEqual(set(part), documented("explain change"))
            self.assertEqual(pathlib.Path(part["file"]).name, "train_two_results.py")
            self.assertIn(f"below train_two_results.py:{part['line']}:", shown)
        self.assertAlmostEqual(both["peak_allocated_bytes"] / GIB, 12.5, delta=0.1)

    def test_two_techniques_are_one_recipe(self):
        self.record(CASES / "train_oom.py", card=LARGE_CARD)
        both = self.combination("t4")
        self.assertEqual(both["id"], "chunked_loss+checkpoint")
        swap = 'temposcope.swap(model, "checkpoint,loss=chunked")'
        self.assertEqual((both["change"]["text"], both["code_lines"]), (swap, 1))

    def test_a_setting_and_a_technique_take_less_time_than_what_is_enough_alone(self):
        self.record(CASES / "train_oom.py", card=LARGE_CARD)
        told = self.told("explain", self.file, "--to-fit", "limit=34GiB", "--verify", "1")
        best = told["remedies"][0]
        self.assertEqual(best["members"], ["expandable_segments", "tempo_packed"])
        self.assertEqual(best["evidence"], "verified", best["problem"])
        # Three steps, the third beside what the program keeps of the second.
        self.assertAlmostEqual(best["peak_reserved_bytes"] / GIB, 31.4, delta=0.2)
        alone = self.remedies(told)
        self.assertFalse(alone["tempo_packed"]["fits"])
        self.assertTrue(alone["chunked_loss"]["fits"])


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
        self.assertIn("Give the command after --", ran.stderr)


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: explain_test.py BIN_FOLDER")
    main()
