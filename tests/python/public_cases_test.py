"""Small programs that once showed a fault of Temposcope: each gets the right answer now.

    public_cases_test.py BIN_FOLDER

The programs lie beside the folder of samples, TEMPOSCOPE_SAMPLES. The first comment of each says
what was wrong.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
from unittest import mock

from commands import BIN, Commands, main, thorough

SAMPLES = os.environ.get("TEMPOSCOPE_SAMPLES", "")
CASES = pathlib.Path(SAMPLES).parent / "cases"
LARGE_CARD = "a100-40gb"
MIB = 1 << 20
PATIENCE_S = 900  # for one command: only a program that hangs takes so long on a busy machine
HANGS = 124  # what `timeout` says then
PEAK = "peak_allocated_bytes"

needs_cases = unittest.skipUnless(
    SAMPLES and CASES.is_dir(),
    "no public cases: set TEMPOSCOPE_SAMPLES to the folder of samples beside their folder",
)

# Every program says at its end what torch has counted.
COUNT = """
import atexit
import sys

def tell():
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        counted = torch.cuda.memory_stats()["requested_bytes.all.peak"]
        print("torch counted", counted, file=sys.stderr)

atexit.register(tell)
"""


class Cases(Commands):
    def setUp(self):
        super().setUp()
        self.counted = []  # by torch: the peak of each program, in the order of their runs
        count = self.folder / "count"
        count.mkdir()
        (count / "sitecustomize.py").write_text(COUNT)
        folders = os.pathsep.join((str(count), os.environ.get("PYTHONPATH", "")))
        surroundings = {"PYTHONPATH": folders, "TEMPOSCOPE_PYTHON": sys.executable}
        patch = mock.patch.dict(os.environ, surroundings)
        patch.start()
        self.addCleanup(patch.stop)

    def start(self, *command, returns: int | None = 0) -> subprocess.CompletedProcess:
        """A command in the folder of the test, which ends with all that it started. Its exit code
        is as expected; None: any but that of a command that hangs."""
        words = ["timeout", "--kill-after=30", str(PATIENCE_S), *command]
        ran = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        said = ran.stdout + ran.stderr
        self.assertNotIn(ran.returncode, (HANGS, -signal.SIGKILL), said)
        if returns is not None:
            self.assertEqual(ran.returncode, returns, said)
        return ran

    def run_case(self, program: str, *options, arguments="", gpu="t4", returns=0):
        """`arguments` are the program's own."""
        command = (sys.executable, CASES / program, *arguments.split())
        words = (BIN / "temposcope", "run", "--gpu", gpu, *options, "--", *command)
        ran = self.start(*words, returns=returns)
        for line in ran.stderr.splitlines():
            if line.startswith("torch counted "):
                self.counted.append(int(line.split()[-1]))
        return ran

    def record(self, program: str, *options, arguments="", **rest) -> pathlib.Path:
        file = self.folder / f"{pathlib.Path(program).stem}{arguments}.tscope"
        self.ran = self.run_case(program, "-o", file, *options, arguments=arguments, **rest)
        self.assertTrue(file.is_file(), self.ran.stderr)
        return file

    def torchrun(self, program: str, *options, arguments="", returns: int | None = 0):
        """Two ranks."""
        launcher = pathlib.Path(sys.executable).parent / "torchrun"
        command = (launcher, "--nproc-per-node", "2", CASES / program, *arguments.split())
        words = (BIN / "temposcope", "run", "--gpu", "t4", *options, "--", *command)
        return self.start(*words, returns=returns)

    def look_at_peak(self, file: pathlib.Path) -> dict:
        """Of the program that ran last: the trace has the peak that torch counted, and the class
        of all of it."""
        told = self.told("info", file)
        self.assertEqual(told[PEAK], self.counted[-1])
        classes = {row["name"]: row["size_bytes"] for row in told["rows"]}
        self.assertLess(classes.get("unknown", 0), 0.001 * told[PEAK], classes)
        return told | {"classes": classes}

    def sizes(self, file, *report: str) -> dict[str, int]:
        return {row["name"]: row["size_bytes"] for row in self.told("info", file, *report)["rows"]}

    def compare(self, *words) -> tuple[dict, dict, str]:
        """The two traces, and the sentence."""
        told = self.told("compare", *words)
        return (*told["rows"], told["sentence"])

    def explain(self, file) -> dict:
        """With its remedies and findings by their names; the first remedy is the best."""
        told = self.told("explain", file)
        by_id = {kind: {row["id"]: row for row in told[kind]} for kind in ("remedies", "findings")}
        best = told["remedies"][0] if told["remedies"] else None
        return told | by_id | {"best": best}

    def plan(self, program: str, of: tuple[int, int], batch: int, gpu: str) -> tuple[dict, dict]:
        """A batch as a plan from two others has it, and as it runs: both have the same peak."""
        files = [self.record(program, arguments=str(size), gpu=gpu) for size in (*of, batch)]
        ran = self.look_at_peak(files.pop())
        traces = [f"--trace={file}" for file in files]
        (planned,) = self.told("plan", *traces, "--gpu", gpu, "--batch", str(batch))["rows"]
        self.assertAlmostEqual(planned[PEAK], ran[PEAK], delta=0.005 * ran[PEAK])
        return planned, ran


@thorough
@needs_cases
class PublicCases(Cases):
    def test_a_step_that_trains_less_is_not_called_the_same(self):
        whole = self.record("A01_no_gradients.py")
        dead = self.record("A01_no_gradients.py", arguments="dead")
        self.look_at_peak(dead)
        _, row, sentence = self.compare(whole, dead)
        differs = "parameters with a gradient (6 of 6 and 2 of 6)"
        self.assertEqual(row["differs_in"], [differs])
        self.assertNotIn("the same step", sentence)
        self.assertTrue(sentence.endswith(f"They differ in {differs}."), sentence)
        finding = self.explain(dead)["findings"]["reentrant_without_gradients"]
        self.assertEqual(finding["bytes"], 2 * (1024 + 1) * 1024 * 4)

    def test_the_math_backend_of_attention_is_named_with_its_reason(self):
        file = self.record("A02_math_backend.py", gpu="a100-80gb")
        self.look_at_peak(file)
        (call,) = self.told("info", file, "--ops")["attention"]
        line = "cases/A02_math_backend.py:10 forward"
        self.assertEqual((call["backend"], call["line"]), ("math", line))
        self.assertIn("does not support non-null attn_mask", call["reasons"])
        saved = self.told("info", file, "--saved")["rows"]
        (scores,) = (row for row in saved if row["tensor"] == "softmax_output")
        self.assertEqual((scores["shape"], scores["dtype"]), ([1, 8, 2048, 2048], "float32"))
        self.assertEqual(scores["size_bytes"], 8 * 2048 * 2048 * 4)
        told = self.explain(file)
        self.assertEqual((told["best"]["id"], told["best"]["fits"]), ("repeat_heads", True))
        self.assertEqual(list(told["findings"]), ["math_attention"])

    def test_memory_that_runs_out_in_the_first_step_is_the_first_answer(self):
        file = self.record("A02_oom_first_step.py", returns=1)
        sentence = "Out of memory at A02_oom_first_step.py:7 in step 1: 625 MiB asked, "
        self.assertIn(f"temposcope: {sentence}", self.ran.stderr)
        self.assertIn(f"\n{sentence}", self.succeed("info", file).stdout)
        told = self.look_at_peak(file)
        (failure,) = told["failures"]
        activation = 40000 * 4096 * 4
        self.assertEqual(failure["requested_bytes"], activation)
        self.assertLess(failure["free_bytes"], activation)
        self.assertEqual((failure["phase"], failure["step"], told["steps"]), ("forward", 1, 1))
        self.assertEqual(told["classes"]["parameter"], 40 * (4096 + 1) * 4096 * 4)
        # The layers that the step did not reach are in the model, too: the input alone is not.
        layers = self.sizes(file, "--peak", "--by", "layer")
        self.assertEqual(layers["outside the model"], activation)

    def test_a_forward_without_training_is_a_step_with_and_without_an_optimizer(self):
        classes = {}
        for arguments in ("", "eval", "opt", "eval opt"):
            file = self.record("A03_forward_only.py", arguments=arguments)
            self.assertIn("Recorded 3 steps in ", self.ran.stderr)
            told = self.look_at_peak(file)
            self.assertEqual((told["state"], told["steps"], told["batch_size"]),
                             ("complete", 4, 64))  # fmt: skip
            classes[arguments] = told["classes"]
        for arguments, rows in classes.items():
            with self.subTest(arguments):
                self.assertEqual(rows["parameter"], 2 * (256 + 1) * 256 * 4)
                self.assertEqual(rows, classes[""])

    def test_saved_tensors_are_summed_by_the_class_and_the_name_of_their_module(self):
        file = self.record("A04_ledger_sum.py")
        self.look_at_peak(file)
        hidden = 4096 * 512 * 4
        narrow = 4096 * 4 * 4
        masks = 47 * 4096 * 512  # the first dropout saves none: its input needs no gradient
        types = self.sizes(file, "--saved", "--by", "module-type")
        expected = {"Block": 48 * hidden, "Dropout": masks, "Linear": 48 * (hidden + narrow)}
        self.assertEqual(types, expected)
        modules = self.sizes(file, "--saved", "--by", "module")
        expected = {"*": 48 * hidden, "*.down": 48 * hidden, "*.drop": masks, "*.up": 48 * narrow}
        self.assertEqual(modules, expected)

    def test_data_from_before_the_recording_has_its_class_line_and_owner(self):
        file = self.record("A05_before_the_recording.py")
        told = self.look_at_peak(file)
        batch = 1024 * 1024 * 4
        self.assertGreaterEqual(told["classes"]["held"], 251 * batch)
        line = "cases/A05_before_the_recording.py:5 <listcomp>"
        self.assertEqual(self.sizes(file, "--peak", "--by", "line")[line], 256 * batch)
        self.assertNotIn("no stack", self.sizes(file, "--peak", "--by", "line"))
        blocks = self.told("info", file, "--peak")["keepers"]
        self.assertTrue(blocks)
        for block in blocks:
            self.assertRegex(block["held_by"], r"^list `data\[\d+\]`, A05_before_the_record")

    def test_two_precisions_are_compared(self):
        full = self.record("A05_precision.py")
        self.look_at_peak(full)
        mixed = self.record("A05_precision.py", arguments="amp")
        self.look_at_peak(mixed)
        first, second, sentence = self.compare(full, mixed)
        self.assertEqual(second["differs_in"], ["precision (fp32 and amp-fp16)"])
        more = 100 * (second[PEAK] / first[PEAK] - 1)
        self.assertIn(f"{mixed.stem} takes {more:.1f} % more memory than {full.stem}", sentence)
        # Inputs in half precision, and the three inner layers' weights, which are cast.
        copies, activation = 2048 * 2048 * 2, 256 * 2048 * 2
        self.assertGreaterEqual(second["kept_bytes"] - first["kept_bytes"],
                                3 * (copies - activation))  # fmt: skip

    def test_activations_live_beside_an_optimizer_that_runs_in_backward(self):
        after = self.record("A06_optimizer_in_backward.py")
        self.look_at_peak(after)
        inside = self.record("A06_optimizer_in_backward.py", arguments="hooks")
        self.look_at_peak(inside)
        first, second, sentence = self.compare(after, inside)
        self.assertIn("both peaks lie in the optimizer's step", sentence)
        self.assertNotIn("no activation lives", sentence)
        weight, parameters = 2048 * 2048 * 4, 12 * (2048 + 1) * 2048 * 4
        for row, gradient, activation in ((first, parameters, 0), (second, weight, 10 * 2 * MIB)):
            classes = row["peak_by_class"]
            self.assertEqual(classes["gradient_bytes"], gradient)
            self.assertEqual(classes["activation_bytes"], activation)
            self.assertEqual(classes["optimizer_state_bytes"], 2 * parameters)

    def test_each_of_two_optimizers_ends_its_steps(self):
        net = ((512 + 1) * 512 + (512 + 1) * 10) * 4
        for arguments, steps, nets in (("", 15, 2), ("first", 7, 1)):
            with self.subTest(arguments):
                options = ("--steps", str(steps))
                file = self.record("A07_second_optimizer_later.py", *options, arguments=arguments)
                self.assertIn(f"Recorded {steps} steps in ", self.ran.stderr)
                told = self.look_at_peak(file)
                self.assertEqual((told["state"], told["steps"]), ("complete", steps + 1))
                self.assertEqual(told["classes"]["optimizer_state"], nets * 2 * net)
                # A model that does not train yet has parameters, not copies of another one's.
                self.assertEqual(told["classes"]["parameter"], 2 * net)
                self.assertEqual(told["idle_bytes"], (2 - nets) * net)
                idle = "The recorded steps do not use "
                self.assertEqual(idle in self.succeed("info", file).stdout, nets == 1)

    def test_memory_that_runs_out_before_the_first_step_leaves_a_trace(self):
        for options in ((), ("--skip", "0", "--overwrite")):
            with self.subTest(options):
                file = self.record("A09_oom_before_first_step.py", *options, returns=1)
                told = self.look_at_peak(file)
                (failure,) = told["failures"]
                self.assertEqual((told["steps"], told[PEAK]), (0, 14 << 30))
                self.assertEqual(failure["requested_bytes"], 1 << 30)
                self.assertEqual(failure["allocated_bytes"], 14 << 30)
                self.assertEqual(failure["line"], "A09_oom_before_first_step.py:4")
                peak = self.explain(file)["peak"]
                (line,) = peak["by_line"]
                self.assertEqual(line["line"], "cases/A09_oom_before_first_step.py:4 <listcomp>")
                # One list holds all of them.
                (category,) = peak["by_category"]
                self.assertEqual(category, {"category": "held", "bytes": 14 << 30})

    def test_a_frozen_encoder_is_inference_with_its_time(self):
        files = [self.record("A10_frozen_encoder.py", arguments=number) for number in "14"]
        self.look_at_peak(files[1])
        *rows, sentence = self.compare(*files)
        flop = 24 * 2 * 2048 * 4096 * 4096
        fastest_ns = flop / 8.1e12 * 1e9  # by the specification of the card
        for row, number, file in zip(rows, (1, 4), files, strict=True):
            self.assertEqual(row["peak_phase"], "inference")
            self.assertGreater(row["step_time_ns"], number * fastest_ns)
            ops = self.told("info", file, "--ops")["rows"]
            encoder = [(op["phase"], op["calls"]) for op in ops if op["op"] == "aten::addmm"]
            self.assertEqual(sorted(encoder), [("forward", number), ("inference", 24 * number)])
        ratio = rows[1]["step_time_ns"] / rows[0]["step_time_ns"]
        self.assertAlmostEqual(ratio, 4, delta=0.04)
        self.assertIn("micro-batches (1 and 4)", sentence)

    def test_a_plan_pairs_tensors_though_one_batch_takes_more_scratch(self):
        planned, ran = self.plan("A13_plan_other_ops.py", (2, 4), 16, LARGE_CARD)
        printed = float(self.ran.stdout.split()[-1]) * 2**30
        self.assertAlmostEqual(ran[PEAK], printed, delta=0.001 * printed)
        classes = planned["peak_by_class"]
        width = 1536
        parameters = 8 * (width + 4 * width * (width + 1) + width * (4 * width + 1)) * 4
        self.assertEqual(classes["parameter_bytes"], parameters)
        self.assertEqual(classes["optimizer_state_bytes"], 2 * parameters)

    def test_growth_has_its_bytes_line_and_list(self):
        file = self.record("A14_growth.py", "--steps", "8")
        told = self.explain(file)
        (line,) = told["growth"]
        self.assertEqual(line["bytes_by_step"], [64 * MIB] * 8)
        self.assertEqual(line["line"], "cases/A14_growth.py:6 <module>")
        self.assertIn("list `kept[", line["held_by"])
        self.assertEqual((told["verdict"]["kind"], told["best"]["id"]), ("grows", "keep_less"))
        free = told["target"]["limit_bytes"] - told["peak"]["allocated_bytes"]
        self.assertAlmostEqual(line["steps_until_full"], free / (64 * MIB), delta=10)
        self.assertEqual(self.sizes(file)["held"], 9 * 64 * MIB)

    def test_a_path_that_depends_on_values_is_taken(self):
        file = self.record("B5_path_depends_on_values.py")
        told = self.look_at_peak(file)
        self.assertEqual((told["state"], told["value_reads"]), ("complete", []))
        ops = {(op["phase"], op["op"]): op["calls"]
               for op in self.told("info", file, "--ops")["rows"]}  # fmt: skip
        self.assertEqual(ops["forward", "aten::nll_loss_forward"], 512 // 128)
        options = ("--overwrite", "--values", "zeros")
        file = self.record("B5_path_depends_on_values.py", *options, returns=1)
        line = "cases/B5_path_depends_on_values.py:8 <module>"
        said = f"read 1 value that the simulated GPU does not compute, as zeros: {line}"
        self.assertIn(said, self.ran.stderr)
        (read,) = self.told("info", file)["value_reads"]
        self.assertEqual((read["kind"], read["place"]), ("integer", line))

    def test_ops_that_torch_compiles_as_it_runs_follow_each_other(self):
        ran = self.run_case("B6_deadlock.py")
        self.assertEqual(ran.stdout, "")  # it prints what is refused

    def test_each_op_that_torch_compiles_as_it_runs_is_there(self):
        # The program's own patience of 30 seconds is too short for a busy machine.
        text = (CASES / "B6_jiterator.py").read_text()
        self.assertIn("range(300)", text)
        program = self.folder / "jiterator.py"
        program.write_text(text.replace("range(300)", "range(30000)"))
        lines = self.run_case(program).stdout.splitlines()
        # torch has no fp8 for this card, and the program does not import flex_attention.
        refused = {line.split("|")[0].split(maxsplit=1)[1].strip() for line in lines
                   if not line.startswith("ok ")}  # fmt: skip
        self.assertEqual(refused, {"flex_attention eager", "scaled_mm fp8"})
        self.assertEqual(len(lines), 15 + text.count('\nt("'))

    def test_a_process_group_takes_another_timeout(self):
        for arguments in ("", "both"):
            with self.subTest(arguments):
                options = ("--world-size", "2", "-o", self.folder / f"ranks{arguments}")
                ran = self.torchrun("B6_pg_timeout.py", *options, arguments=arguments)
                self.assertEqual(ran.stdout.split(), ["ok", "ok"])

    def test_stages_of_a_pipeline_send_objects_to_each_other(self):
        program, world = "B6_pp_objects.py", ("--world-size", "2")
        for options in (world, (*world, "--ranks", "all")):
            with self.subTest(options):
                folder = self.folder / f"ranks{len(options)}"
                self.torchrun(program, "-o", folder, *options)
                rows = self.told("info", folder)["rows"]
                ranks = [(row["rank"], row["state"], row["steps"]) for row in rows]
                self.assertEqual(ranks, [(0, "complete", 4), (1, "complete", 4)])
                for row in rows:
                    self.assertEqual(row["by_class"]["parameter_bytes"], (256 + 1) * 256 * 4)
                    self.assertEqual(row["by_class"]["unknown_bytes"], 0)

    def test_stages_in_processes_of_their_own_run_or_are_told_how(self):
        ran = self.torchrun("B6_pp_objects.py", "-o", self.folder / "ranks", returns=None)
        self.assertTrue(ran.returncode == 0 or "--world-size" in ran.stderr, ran.stderr)

    def test_what_a_selective_checkpoint_keeps_is_saved_and_not_computed_again(self):
        file = self.record("C4_selective_checkpoint.py", gpu=LARGE_CARD)
        told = self.look_at_peak(file)
        hidden = 4 * 2048 * 1024 * 2
        # Of each block: query, key and value; the context with its statistics; the projection.
        of_a_block = 3 * hidden + hidden + 4 * 16 * 2048 * 4 + 2 * 8 + 8 + hidden
        saved = self.told("info", file, "--saved")
        self.assertEqual(saved["total_bytes"], 4 * of_a_block + 3 * hidden)
        self.assertEqual(told["classes"]["activation"], saved["total_bytes"])
        ops = self.told("info", file, "--ops")["rows"]
        calls = {(op["phase"], op["op"]): op["calls"] for op in ops if op["device_time_ns"]}
        attention = {call: count for call, count in calls.items() if "attention" in call[1]}
        passes = ("forward", "backward")
        self.assertEqual(attention, {(it, f"aten::_flash_attention_{it}"): 4 for it in passes})
        self.assertEqual(calls["forward", "aten::mm"], 2 * 4)
        self.assertEqual(calls["backward", "aten::mm"], 2 * 2 * 4)

    def test_the_gpu_that_ran_out_of_memory_is_the_answer(self):
        self.start(sys.executable, CASES / "D1_oom_on_the_other_gpu.py")
        snapshot = self.folder / "d1_min.pickle"
        told = self.told("info", snapshot)
        (failure,) = told["failures"]
        self.assertEqual((told["device"], failure["device"]), ("cuda:1", "cuda:1"))
        self.assertEqual((failure["line"], failure["requested_bytes"]), ("train.py:99", 8 * MIB))
        self.assertEqual(failure["free_bytes"], 123456)
        peaks = {row["device"]: (row[PEAK], row["refused_bytes"]) for row in told["devices"]}
        self.assertEqual(peaks, {"cuda:1": (64 * MIB, 8 * MIB), "cuda:0": (8 * MIB, 0)})
        said = "Out of memory at train.py:99: 8.00 MiB asked, 121 KiB free of "
        for report in ("info", "explain"):
            self.assertIn(said, self.succeed(report, snapshot).stdout)

    def test_a_compiled_model_runs_compiled(self):
        for disabled in ("0", "1"):
            with self.subTest(disabled), mock.patch.dict(os.environ, TORCHDYNAMO_DISABLE=disabled):
                file = self.record("F14_compile.py", arguments=disabled)
                told = self.told("info", file)
                self.assertEqual((told["state"], told["steps"]), ("complete", 4))
                # Without the recorder's hooks it is compiled again: that counts, too.
                self.assertLessEqual(told[PEAK], self.counted[-1])
                classes = {row["name"]: row["size_bytes"] for row in told["rows"]}
                self.assertEqual(classes["parameter"], 2 * (256 + 1) * 256 * 4)
                self.assertNotIn("unknown", classes)
                sql = "SELECT count(*) FROM v_kernel WHERE name LIKE 'triton_%'"
                self.assertEqual(self.query(sql, file)[0][0] > 0, disabled == "0")

    def test_decoding_ends_when_its_flag_says_so(self):
        file = self.record("F17_generate_never_ends.py")
        self.assertEqual(self.ran.stdout, "steps of decoding: 16 (on a GPU: 16)\n")
        told = self.told("info", file)
        # Only the places of the largest numbers are not known.
        reads = [(read["op"], read["kind"]) for read in told["value_reads"]]
        self.assertEqual((told["state"], reads), ("complete", [("argmax", "assumed")]))
        self.assertNotIn("unknown", self.sizes(file))

    def test_lines_of_two_folders_match(self):
        folders = [str(BIN), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
        surroundings = {"PATH": os.pathsep.join(folders), "TMPDIR": str(self.folder)}
        with mock.patch.dict(os.environ, surroundings):
            ran = self.start("bash", CASES / "F1_two_folders.sh")
        rows = re.findall(r"^train[.]py:(\d+) <module> +(\S+ .iB) +(\S+ .iB) +(.*)$", ran.stdout,
                          re.MULTILINE)  # fmt: skip
        self.assertEqual([line for line, *_ in rows], ["6", "4"])
        for _, before, after, change in rows:
            self.assertEqual((before, change), (after, "0 B"))
        (folder,) = self.folder.glob("tmp.*")
        before, after, sentence = self.compare(folder / "before.tscope", folder / "after.tscope")
        self.assertEqual((before[PEAK], after["differs_in"]), (after[PEAK], []))
        self.assertIn("after trains the same step of Linear in the same memory", sentence)

    def test_a_plan_does_not_mind_ops_of_the_host(self):
        planned, ran = self.plan("F23_plan_host_ops.py", (8, 16), 32, "t4")
        self.assertEqual(planned[PEAK] - planned["terms"]["rounding_bytes"], ran[PEAK])
        self.assertAlmostEqual(planned["step_time_ns"] / ran["step_time_ns"], 1, delta=0.01)
        batch = 32 * 512 * 4
        self.assertEqual(ran["classes"]["input"], batch)
        self.assertEqual(planned["peak_by_class"]["input_bytes"], batch)

    def test_a_profiler_of_the_program_runs_beside_the_recording(self):
        file = self.record("F7_profiler.py")
        self.assertIn("ProfilerStep*", self.ran.stdout)
        told = self.look_at_peak(file)
        self.assertEqual((told["state"], told["steps"]), ("complete", 4))
        health = {row["code"] for row in self.told("info", file, "--health")["rows"]}
        self.assertIn("profiled", health)
        snapshot = self.told("info", self.folder / "f7.pickle")
        self.assertEqual(snapshot[PEAK], told[PEAK])


@thorough
@needs_cases
class ExplainedCases(Cases):
    """Of a language model: what is wrong with it, and what helps first."""

    LOGITS = 96 * 512 * 30522 * 2  # in half precision

    def look_at_failure(self, program: str, largest_batch: int) -> dict:
        """The loss asks for a gradient of the logits in full precision."""
        file = self.record(program, gpu=LARGE_CARD, returns=1)
        self.look_at_peak(file)
        told = self.explain(file)
        self.assertEqual(told["verdict"]["kind"], "out_of_memory")
        failure = told["failure"]
        self.assertEqual((failure["line"], failure["step"]), (f"{program}:15", 2))
        self.assertEqual(failure["requested_bytes"], 2 * self.LOGITS)
        self.assertLess(failure["free_bytes"], 2 * self.LOGITS)
        self.assertGreater(failure["free_bytes"] + failure["cached_bytes"], 2 * self.LOGITS)
        self.assertEqual((told["best"]["id"], told["best"]["fits"]), ("expandable_segments", True))
        delete = told["remedies"]["delete_after_use"]
        self.assertEqual((delete["change"]["text"], delete["change"]["line"]), ("del logits", 14))
        self.assertAlmostEqual(delete["saved_bytes"], self.LOGITS, delta=MIB)
        self.assertEqual(told["target"]["largest_batch"], largest_batch)
        return told

    def test_out_of_memory_in_backward(self):
        self.look_at_failure("train_oom.py", 91)

    def test_a_delete_at_the_end_of_the_step_does_not_help(self):
        """It leaves other pieces in the cache: `run --max` finds 90, too."""
        self.look_at_failure("train_oom_del.py", 90)

    def test_a_delete_before_backward_fits(self):
        file = self.record("train_oom_del2.py", gpu=LARGE_CARD)
        self.look_at_peak(file)
        told = self.explain(file)
        self.assertEqual((told["verdict"]["kind"], told["failure"]), ("fits", None))
        self.assertNotIn("delete_after_use", told["remedies"])
        self.assertNotIn("held_past_use", told["findings"])
        self.assertEqual((told["best"]["id"], told["best"]["fits"]), ("expandable_segments", True))

    def test_the_largest_batch_of_a_plan_fits_and_the_next_does_not(self):
        files = [self.record("train_arg.py", arguments=size, gpu=LARGE_CARD) for size in "48"]
        traces = [f"--trace={file}" for file in files]
        (planned,) = self.told("plan", *traces, "--gpu", LARGE_CARD)["rows"]
        largest = planned["max_batch_size"]
        self.record("train_arg.py", arguments=f"{largest}", gpu=LARGE_CARD)
        file = self.record("train_arg.py", arguments=f"{largest + 1}", gpu=LARGE_CARD, returns=1)
        failure = self.explain(file)["failure"]
        self.assertEqual(failure["requested_bytes"], (largest + 1) * 512 * 30522 * 4)

    def test_a_head_in_chunks_is_not_cut_again(self):
        file = self.record("train_chunk.py", gpu=LARGE_CARD)
        self.look_at_peak(file)
        told = self.explain(file)
        self.assertEqual((told["verdict"]["kind"], told["findings"]), ("fits", {}))
        self.assertNotIn("chunked_loss", told["remedies"])
        self.assertEqual((told["best"]["id"], told["best"]["fits"]), ("tempo_packed", True))

    def test_a_plan_of_a_head_in_chunks(self):
        planned, ran = self.plan("train_chunk_arg.py", (8, 16), 32, LARGE_CARD)
        self.assertEqual(planned["peak_by_class"]["parameter_bytes"], ran["classes"]["parameter"])
        self.assertAlmostEqual(planned["step_time_ns"] / ran["step_time_ns"], 1, delta=0.01)

    def test_layers_in_checkpoints_leave_the_loss(self):
        file = self.record("train_ckpt.py", gpu=LARGE_CARD)
        self.look_at_peak(file)
        told = self.explain(file)
        self.assertEqual((told["verdict"]["kind"], told["best"]["id"]),
                         ("fits", "expandable_segments"))  # fmt: skip
        self.assertFalse({"checkpoint", "tempo", "tempo_packed"} & set(told["remedies"]))
        logits = 32 * 512 * 30522 * 2
        delete = told["remedies"]["delete_after_use"]
        self.assertAlmostEqual(delete["saved_bytes"], logits, delta=MIB)
        self.assertGreater(told["remedies"]["chunked_loss"]["saved_bytes"], 3 * logits)

    def test_logits_that_a_list_keeps(self):
        file = self.record("train_leak.py", "--steps", "7", gpu=LARGE_CARD)
        told = self.explain(file)
        self.assertEqual((told["verdict"]["kind"], told["best"]["id"]), ("grows", "keep_less"))
        (line,) = told["growth"]
        logits = [8 * (256 + 37 * (step % 4)) * 30522 * 2 for step in range(1, 8)]
        self.assertEqual(line["bytes_by_step"], logits)
        self.assertIn("list `history[7]`, train_leak.py:16", line["held_by"])
        self.assertEqual(line["line"], "cases/train_leak.py:13 <module>")
        self.assertNotIn("delete_after_use", told["remedies"])


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: public_cases_test.py BIN_FOLDER")
    main()
