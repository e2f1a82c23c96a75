"""`temposcope run` and `temposcope explain` over small programs whose truth is known: verdict, the
line that has most of the memory, what is unusual, what to do, and nothing that nobody knows.
"""

import contextlib
import pathlib
import sqlite3
import subprocess
import sys
import typing
import unittest

from commands import BIN, Commands, main, temposcope, thorough

CASES = pathlib.Path(__file__).parent / "cases"
CARD = "a100-40gb"
MIB = 1 << 20
MOST_UNKNOWN = 0.01  # of the peak


class Case(typing.NamedTuple):
    program: str
    argument: str = ""
    verdict: str = "fits"
    options: tuple[str, ...] = ()
    line: bool = True  # the line marked `# here` has most of the peak
    findings: frozenset[str] = frozenset()  # all of them
    remedies: frozenset[str] = frozenset()  # at least these
    no_remedies: frozenset[str] = frozenset()


QUICK = (
    Case("growth", verdict="grows", options=("--steps", "8"),
         findings=frozenset({"growth", "held_past_use"}), remedies=frozenset({"keep_less"}),
         no_remedies=frozenset({"delete_after_use"})),
    Case("math_attention", findings=frozenset({"math_attention"}),
         remedies=frozenset({"repeat_heads"})),
    Case("reentrant_checkpoint", findings=frozenset({"reentrant_without_gradients"})),
    Case("optimizer_peak", remedies=frozenset({"fused_optimizer", "one_parameter_at_a_time"})),
    Case("optimizer_in_backward", no_remedies=frozenset({"one_parameter_at_a_time"})),
    Case("data_on_gpu", line=False, findings=frozenset({"held_past_use"})),
)  # fmt: skip
THOROUGH = (
    Case("precision", no_remedies=frozenset({"tempo", "checkpoint"})),
    Case("adapters", remedies=frozenset({"checkpoint"})),
    Case("selective_checkpoint", no_remedies=frozenset({"checkpoint"})),
    Case("checkpointed_layers", remedies=frozenset({"chunked_loss", "delete_after_use"}),
         no_remedies=frozenset({"checkpoint", "tempo"})),
    Case("chunked_head", remedies=frozenset({"tempo", "checkpoint"}),
         no_remedies=frozenset({"chunked_loss"})),
    Case("validation", remedies=frozenset({"checkpoint", "tempo"})),
    Case("own_norm", line=False, no_remedies=frozenset({"tempo", "tempo_packed"})),
    Case("own_optimizer", line=False,
         no_remedies=frozenset({"fused_optimizer", "one_parameter_at_a_time"})),
    Case("capped_logits", remedies=frozenset({"chunked_loss"})),
    Case("capped_logits", "accuracy", no_remedies=frozenset({"chunked_loss"})),
    Case("deleted_logits", remedies=frozenset({"chunked_loss", "tempo"}),
         no_remedies=frozenset({"delete_after_use"})),
)  # fmt: skip


def marked_line(program: pathlib.Path) -> int:
    lines = program.read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.endswith("# here"))


class Explained(Commands):
    known: typing.ClassVar[dict[str, dict]] = {}  # a program is run once

    def explain(self, case: Case) -> dict:
        name = case.program + case.argument
        if name not in self.known:
            file = self.folder / f"{name}.tscope"
            command = [sys.executable, str(CASES / f"{case.program}.py"), case.argument]
            self.succeed("run", "--gpu", CARD, "-o", file, *case.options, "--", *command)
            self.known[name] = self.told("explain", file)
        return self.known[name]

    def look_at(self, case: Case) -> None:
        told = self.explain(case)
        self.assertEqual(told["verdict"]["kind"], case.verdict, told["verdict"])
        peak = told["peak"]
        categories = {row["category"]: row["bytes"] for row in peak["by_category"]}
        unknown = categories.get("unknown", 0)
        self.assertLessEqual(unknown, MOST_UNKNOWN * peak["allocated_bytes"], categories)
        if case.line:
            line = marked_line(CASES / f"{case.program}.py")
            most = peak["by_line"][0]["line"]
            self.assertTrue(most.startswith(f"cases/{case.program}.py:{line} "), peak["by_line"])
        self.assertEqual({finding["id"] for finding in told["findings"]}, case.findings)
        remedies = {remedy["id"] for remedy in told["remedies"]}
        self.assertLessEqual(case.remedies, remedies)
        self.assertFalse(case.no_remedies & remedies)
        # No remedy for memory makes room that parameters and the optimizer's state take.
        stays = categories["parameter"] + categories.get("optimizer_state", 0)
        for remedy in told["remedies"]:
            self.assertGreaterEqual(remedy["peak_allocated_bytes"], stays, remedy)

    def look_at_all(self, cases: tuple[Case, ...]) -> None:
        for case in cases:
            with self.subTest(case.program):
                self.look_at(case)


class Quick(Explained):
    def test_programs(self):
        self.look_at_all(QUICK)

    def test_what_ends_the_growth_comes_first(self):
        told = self.explain(QUICK[0])
        self.assertEqual(told["remedies"][0]["id"], "keep_less")
        (line,) = told["growth"]
        self.assertEqual(line["bytes_per_step"], 64 * MIB)
        self.assertIn("list `kept[", line["held_by"])
        (held,) = (one for one in told["findings"] if one["id"] == "held_past_use")
        self.assertTrue(held["sentence"].startswith("List `kept["), held)

    def test_one_kernel_saves_the_temporaries_and_nothing_else(self):
        told = self.explain(Case("optimizer_peak"))
        categories = {row["category"]: row["bytes"] for row in told["peak"]["by_category"]}
        remedies = {remedy["id"]: remedy for remedy in told["remedies"]}
        saved = remedies["fused_optimizer"]["saved_bytes"]
        some_activations = 8 * MIB  # of the end of backward, which is then the peak
        self.assertAlmostEqual(saved, categories["temporary"], delta=some_activations)
        of_one_weight = 2048 * 2048 * 4
        saved = remedies["one_parameter_at_a_time"]["saved_bytes"]
        self.assertAlmostEqual(saved, categories["temporary"] - of_one_weight, delta=MIB)

    def test_the_gpu_that_ran_out_is_explained(self):
        snapshot = self.folder / "snapshot.pickle"
        command = [sys.executable, CASES / "other_gpu_ran_out.py", snapshot]
        subprocess.run(command, check=True)
        told = self.told("explain", snapshot)
        self.assertEqual(told["verdict"]["kind"], "out_of_memory")
        failure = told["failure"]
        self.assertEqual((failure["device"], failure["line"]), ("cuda:1", "train.py:99"))
        self.assertEqual(told["peak"]["by_line"][0]["bytes"], 64 * MIB)
        self.assertEqual(told["remedies"], [], "72 MiB do not fit into 64.1 by any setting")


@thorough
class Thorough(Explained):
    def test_programs(self):
        self.look_at_all(THOROUGH)

    def test_repeated_heads_save_what_was_estimated(self):
        told = self.explain(Case("math_attention"))
        (remedy,) = (one for one in told["remedies"] if one["id"] == "repeat_heads")
        peak = self.explain(Case("math_attention", "repeat"))["peak"]["allocated_bytes"]
        self.assertLess(peak, 0.2 * told["peak"]["allocated_bytes"])
        self.assertAlmostEqual(remedy["peak_allocated_bytes"], peak, delta=0.3 * peak)

    def test_what_a_selective_checkpoint_keeps_is_an_activation(self):
        told = self.explain(Case("selective_checkpoint"))
        categories = {row["category"]: row["bytes"] for row in told["peak"]["by_category"]}
        of_a_block = 4 * 2048 * (3072 + 1024) * 2  # query, key and value, and the context
        self.assertGreaterEqual(categories["activation"], 3 * of_a_block)


@thorough
class BesideTraining(Commands):
    """Memory runs out after the steps, or before them."""

    def run_out(self, what: str, *options: str) -> pathlib.Path:
        file = self.folder / f"{what}.tscope"
        command = [sys.executable, str(CASES / "beside_training.py"), what]
        words = ("run", "--gpu", CARD, "--overwrite", "-o", file, *options, "--", *command)
        ran = temposcope(*words)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("temposcope: Out of memory", ran.stderr)
        return file

    def remedies(self, file, *options: str) -> dict[str, dict]:
        told = self.told("explain", file, *options)
        self.assertEqual(told["verdict"]["kind"], "out_of_memory")
        return {remedy["id"]: remedy for remedy in told["remedies"]}

    def test_outputs_that_a_list_keeps_go_to_the_host(self):
        self.look_at_outputs(self.run_out("outputs").with_suffix(".oom.tscope"))
        self.look_at_outputs(self.run_out("outputs", "--skip", "4", "--steps", "1"))

    def look_at_outputs(self, trace: pathlib.Path) -> None:
        remedies = self.remedies(trace)
        self.assertIn("`outputs`", remedies["move_to_host"]["sentence"])
        self.assertNotIn("chunked_loss", remedies)
        # The program with enough memory comes to its validation, and to its end.
        remedies = self.remedies(trace, "--verify", "1")
        self.assertIn("`outputs`", remedies["move_to_host"]["sentence"])
        self.assertGreater(remedies["larger_gpu"]["peak_allocated_bytes"], 60 * 1024 * MIB)

    def test_a_validation_with_gradients_is_named(self):
        remedies = self.remedies(self.run_out("gradients", "--skip", "4", "--steps", "1"))
        self.assertIn("above `def evaluate` in beside_training.py", remedies["no_grad"]["sentence"])

    def test_a_checkpoint_goes_to_the_host(self):
        remedies = self.remedies(self.run_out("checkpoint"))
        self.assertEqual(set(remedies), {"load_on_host"})
        self.assertLess(remedies["load_on_host"]["peak_allocated_bytes"], 1 << 30)

    def test_a_trace_that_was_edited_is_run_as_usual(self):
        file = self.run_out("outputs", "--skip", "4", "--steps", "1")
        with contextlib.closing(sqlite3.connect(file)) as trace, trace:
            trace.execute(
                "UPDATE string SET text = json_set(text, '$.TEMPOSCOPE_RUN', 5) "
                "WHERE text LIKE '%TEMPOSCOPE_RUN%'"
            )
        self.assertTrue(self.remedies(file, "--verify", "1"))


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: explain_cases_test.py BIN_FOLDER")
    main()
