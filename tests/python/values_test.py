"""What programs read from a simulated GPU: true where it can be, counted where it is not."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

from commands import Commands, main, temposcope, thorough

PROGRAMS = pathlib.Path(__file__).parent / "values"
CARD = "a100-40gb"


class Values(Commands):
    def run_on_gpu(self, program: str, *arguments: str, options=(), returns=0):
        words = ("run", "--gpu", CARD, "--overwrite", "-o", self.file, *options)
        command = (sys.executable, PROGRAMS / f"{program}.py", *arguments)
        ran = temposcope(*words, "--", *command)
        self.assertEqual(ran.returncode, returns, ran.stderr)
        return ran

    def peak(self) -> int:
        return self.told("info", self.file)["peak_allocated_bytes"]

    def reads(self) -> list[tuple]:
        """(kind, op, count, answer) of each line."""
        return self.query(
            "SELECT kind, o.text, count, a.text FROM value_read "
            "JOIN string o ON o.id = op JOIN string a ON a.id = answer"
        )


class Programs(Values):
    """Each of reads.py's cases."""

    #: What a step sees comes from the host, so it is the same as on the CPU.
    EXACT = ("labels_where_masked", "unique_rows", "lengths_of_padding", "checked_inputs",
             "mask_after_many_numbers", "mask_of_a_compiled_graph")  # fmt: skip
    OTHERS = {
        "scaled_loss": [65536.0] * 3,
        "rejection_sampling": [2, 2, 2],
        "hard_negatives": [[True, True]] * 3,
        "switch_layer": [True] * 3,
        "until_small": [1] * 3,  # the loss reads as zero
        "masked_autoencoder": [[32, True]] * 3,
        "mask_that_a_graph_changes": [0, 0, 0],
    }

    def saw(self, case: str) -> list:
        return json.loads(self.run_on_gpu("reads", case, "cuda").stdout.splitlines()[-1])

    def test_sizes_from_the_host_are_those_of_the_cpu(self):
        for case in self.EXACT:
            with self.subTest(case):
                command = (sys.executable, PROGRAMS / "reads.py", case, "cpu")
                on_cpu = subprocess.run(command, capture_output=True, text=True, check=True)
                self.assertEqual(self.saw(case), json.loads(on_cpu.stdout))
                self.assertEqual([row for row in self.reads() if row[0] < 3], [])

    def test_small_ops_give_what_the_cpu_gives(self):
        self.assertEqual(json.loads(self.run_on_gpu("same_as_cpu").stdout.splitlines()[-1]), {})
        self.assertEqual([row for row in self.reads() if row[3] == "zeros"], [])

    @thorough
    def test_the_others_come_to_their_end(self):
        for case, expected in self.OTHERS.items():
            with self.subTest(case):
                self.assertEqual(self.saw(case), expected)

    @thorough
    def test_with_zeros_the_first_fails_and_says_why(self):
        ran = self.run_on_gpu("reads", "labels_where_masked", "cuda", options=("--values", "zeros"))
        self.assertEqual(json.loads(ran.stdout.splitlines()[-1]), [0, 0, 0])
        self.assertIn("Sizes that depend on them are wrong", ran.stderr)


class Experts(Values):
    ZEROS = ("--routing", "zeros")

    def test_balanced_experts_have_the_memory_of_constant_splits(self):
        self.run_on_gpu("experts", "constant")
        expected = self.peak()
        for way in ("bincount", "histc", "one_hot"):
            with self.subTest(way):
                ran = self.run_on_gpu("experts", way)
                self.assertEqual(json.loads(ran.stdout.splitlines()[-1]), [128] * 8)
                self.assertEqual(self.peak(), expected)
                self.assertIn("balanced routing was assumed at values/experts.py:", ran.stderr)

    @thorough
    @unittest.skipUnless(importlib.util.find_spec("transformers"), "needs transformers")
    def test_families_have_the_memory_of_splits_from_the_host(self):
        for family in ("mixtral", "qwen3", "deepseek"):
            with self.subTest(family):
                ran = self.run_on_gpu("mixtures", family, "router")
                of_host = self.run_on_gpu("mixtures", family, "host", options=self.ZEROS)
                peaks = {int(one.stdout.splitlines()[-1]) for one in (ran, of_host)}
                self.assertEqual(len(peaks), 1, peaks)

    def test_another_routing_is_another_step(self):
        peaks = {}
        for routing in ("balanced", "worst:2", "zipf:1.2", "seed:3", "zeros"):
            ran = self.run_on_gpu("experts", "bincount", options=("--routing", routing))
            counts = json.loads(ran.stdout.splitlines()[-1])
            self.assertEqual(sum(counts), 0 if routing == "zeros" else 1024, counts)
            peaks[routing] = self.peak()
            if routing == "worst:2":
                self.assertEqual(counts[0], 256)
                self.assertLess(max(counts[1:]), 128)
            if routing == "zipf:1.2":
                self.assertEqual(sorted(counts, reverse=True), counts)
        self.assertLess(peaks["zeros"], peaks["balanced"])
        self.assertLess(peaks["balanced"], peaks["worst:2"])

    def test_a_further_step_has_the_peak_of_uneven_experts(self):
        self.run_on_gpu("experts", "bincount", options=("--routing", "worst:1.5"))
        uneven = self.peak()
        ran = self.run_on_gpu("experts", "bincount", options=("--steps", "2", "--stop"))
        even = self.peak()
        expected = {
            "routing": "balanced", "num_tokens": 512, "num_experts": 8, "experts_per_token": 2,
            "tokens_per_expert": 128, "imbalance": 1.5, "most_tokens": 192,
            "imbalanced_peak_bytes": uneven,
        }  # fmt: skip
        self.assertEqual(self.told("info", self.file)["experts"], expected)
        self.assertLessEqual(even, uneven)
        self.assertIn("8 experts got 128 tokens each. If the first one gets 1.5 times", ran.stderr)
        steps = self.query("SELECT count(*), sum(kind = 1) FROM step")
        self.assertEqual(steps, [(3, 1)], "the further step is none of the trace")

    def test_a_program_without_a_further_step_has_no_range(self):
        for options in (("--steps", "3", "--stop"), ("--steps", "2")):
            with self.subTest(options):
                self.run_on_gpu("experts", "bincount", options=options)
                told = self.told("info", self.file)
                self.assertEqual(told["state"], "complete")
                self.assertIsNone(told["experts"]["imbalanced_peak_bytes"])
                self.assertEqual(told["experts"]["tokens_per_expert"], 128)

    def test_the_further_step_ends_where_the_program_would_save_or_fail(self):
        for end in ("save", "fail"):
            with self.subTest(end):
                options = ("--steps", "2", "--stop")
                ran = self.run_on_gpu("experts", "bincount", end, options=options)
                self.assertNotIn("saved", ran.stdout)
                self.assertNotIn("Error", ran.stderr)
                self.assertEqual(self.told("info", self.file)["state"], "complete")

    def test_a_classifier_has_no_experts(self):
        ran = self.run_on_gpu("classifier", options=("--steps", "2", "--stop"))
        self.assertNotIn("experts", ran.stderr)
        self.assertIsNone(self.told("info", self.file)["experts"])

    def test_a_bad_routing_is_refused(self):
        for routing in ("fair", "worst:0.5", "zipf:", "zipf:nan", "seed:-1", "worst:1.5x"):
            with self.subTest(routing):
                ran = temposcope("run", "--gpu", CARD, "--routing", routing, "--", "python", "x.py")
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertIn("is no routing", ran.stderr)


class Unknown(Values):
    def test_values_that_are_read_later_are_computed_again(self):
        """A program that has read nothing until the last recorded step is followed no longer."""
        ran = self.run_on_gpu("reads_later")
        self.assertEqual(json.loads(ran.stdout.splitlines()[-1]), [0, 24, 24])

    def test_loops_begin_anew_in_each_step_after_the_recorded_ones(self):
        for what in ("train", "infer"):
            with self.subTest(what):
                self.assertIn("done", self.run_on_gpu("reads_often", what).stdout)

    def test_a_refusal_names_the_op(self):
        ran = self.run_on_gpu("refused", returns=1)
        self.assertRegex(ran.stderr, r"have cusparseLt\w+, which aten::_cslt_compress calls")

    def test_a_program_that_reads_none_gets_no_word(self):
        ran = self.run_on_gpu("reads_none")
        self.assertNotIn("value", ran.stderr)
        self.assertEqual([row for row in self.reads() if row[0] != 6], [])

    def test_a_size_that_nobody_knows_is_counted_with_its_line(self):
        ran = self.run_on_gpu("unknown_size")
        text = (PROGRAMS / "unknown_size.py").read_text().splitlines()
        line = 1 + next(i for i, code in enumerate(text) if code.endswith("# here"))
        self.assertIn("The program read 6 values that the simulated GPU does not compute, as "
                      f"zeros: values/unknown_size.py:{line} <module> (nonzero, 3 times)",
                      ran.stderr)  # fmt: skip
        self.assertIn("Sizes that depend on them are wrong.", ran.stderr)
        self.assertEqual({row[:1] + row[2:] for row in self.reads()},
                         {(0, 3, "zeros"), (4, 3, "zeros")})  # fmt: skip
        items = self.told("info", "--health", self.file)["rows"]
        found = [item for item in items if item["code"] == "values_read"]
        self.assertEqual([(item["severity"], item["count"]) for item in found], [("warning", 6)])

    @thorough
    @unittest.skipUnless(importlib.util.find_spec("transformers"), "needs transformers")
    def test_a_model_writes_as_many_tokens_as_it_was_asked_for(self):
        ran = self.run_on_gpu("generates")
        self.assertEqual(ran.stdout.splitlines()[-2:], ["2 80 True"] * 2)

    @thorough
    def test_a_loop_that_never_ends_is_stopped(self):
        ran = self.run_on_gpu("endless", options=("--steps", "5", "--values", "zeros"), returns=1)
        self.assertIn("Temposcope ends a loop", ran.stderr)
        self.assertIn("endless.py:11", ran.stderr)


class Ranks(Values):
    """Messages between ranks that run are real; a rank that does not run is stood for."""

    def run_ranks(self, case: str, world_size: int, options=()) -> dict[int, int]:
        """The rows that each rank saw that ran."""
        folder = self.folder / "ranks"
        words = ("run", "--gpu", CARD, "--world-size", str(world_size), "--overwrite", *options)
        launcher = (sys.executable, "-m", "torch.distributed.run")
        program = ("--nproc-per-node", str(world_size), PROGRAMS / "ranks.py", case)
        ran = temposcope(*words, "-o", folder, "--", *launcher, *program)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.stderr = ran.stderr
        lines = (line.split() for line in ran.stdout.splitlines() if line.startswith("rank "))
        return {int(line[1]): int(line[3]) for line in lines}

    def peaks(self) -> set[int]:
        files = (self.folder / "ranks").glob("*.tscope")
        return {self.told("info", file)["peak_allocated_bytes"] for file in files}

    def test_a_size_that_is_broadcast_is_that_of_rank_0(self):
        self.assertEqual(self.run_ranks("broadcast", 4), {0: 512, 3: 512})
        self.assertEqual(len(self.peaks()), 1)

    @thorough
    def test_the_message_of_another_pair_stands_for_that_of_ones_own(self):
        self.assertEqual(self.run_ranks("pairs", 8), {0: 512, 7: 512})

    @thorough
    def test_a_pipeline_sends_shapes_and_objects(self):
        for case in ("send", "objects"):
            with self.subTest(case):
                self.assertEqual(self.run_ranks(case, 3), {0: 512, 1: 512, 2: 512})

    @thorough
    def test_one_rank_of_each_stage_of_one_pipeline_runs(self):
        self.assertEqual(sorted(self.run_ranks("stages", 8)), [0, 2, 4, 6])
        self.assertEqual(len(self.peaks()), 3)  # two stages are equal

    @thorough
    def test_a_message_that_never_comes_is_zeros_and_named(self):
        self.assertEqual(self.run_ranks("deadlock", 2), {0: 1, 1: 1})
        self.assertIn("rank 0 waits for a message of rank 1", self.stderr)


if __name__ == "__main__":
    main()
