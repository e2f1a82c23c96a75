"""Tests of tools/gpu_check: the libraries of its files, its judgements, its worker client."""

import copy
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

import repository

BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(repository.ROOT / "tools" / "gpu_check"))

import goals  # noqa: E402
import gpu_archive  # noqa: E402
import gpu_background  # noqa: E402
import gpu_bundle  # noqa: E402
import gpu_checks  # noqa: E402
import gpu_diagnosis  # noqa: E402
import gpu_figures  # noqa: E402
import gpu_limits  # noqa: E402
import gpu_predictions  # noqa: E402
import gpu_recordings  # noqa: E402
import gpu_run  # noqa: E402
import gpu_streams  # noqa: E402
import gpu_workloads  # noqa: E402
import nvml  # noqa: E402
import trace_checks  # noqa: E402
import worker_link  # noqa: E402


class Bundle(unittest.TestCase):
    def test_files_need_only_the_listed_libraries(self):
        built = [name for name in gpu_bundle.FILES if (BUILD / "bin" / name).exists()]
        if not built:
            self.skipTest("none of its files is built")
        for name in built:
            with self.subTest(name):
                self.assertEqual(gpu_bundle.unexpected_libraries(BUILD / "bin" / name), set())

    def test_another_library_is_reported(self):
        window = BUILD / "bin" / "temposcope"
        if not window.exists():
            self.skipTest(f"{window} is not built")
        self.assertNotEqual(gpu_bundle.unexpected_libraries(window), set())


GOOD = {
    "notes": {"work_without_op": {"severity": 1, "count": 7}},
    "live_bytes_at_step_ends": [100, 200, 200],
    "allocations": 9,
    "kernels": 1000,
    "kernels_inside_a_step": 1000,
    "kernels_before_their_op": 3,
}


class Judgement(unittest.TestCase):
    def test_a_good_trace_has_no_problems(self):
        self.assertEqual(trace_checks.problems(GOOD), [])

    def test_missing_kernels_have_their_reason(self):
        note = {"severity": 1, "count": 1, "explanation": "CUPTI is in use by another client."}
        none = {"kernels": 0, "kernels_inside_a_step": 0, "kernels_before_their_op": 0}
        found = trace_checks.problems(GOOD | none | {"notes": {"kernels_missing": note}})
        self.assertEqual(found, ["the trace has no kernel: CUPTI is in use by another client."])

    def test_each_problem_is_a_sentence(self):
        for change in (
            {"notes": {"allocator_totals_differ": {"severity": 2, "count": 4}}},
            {"live_bytes_at_step_ends": [100, 200, 201]},
            {"allocations": 0},
            {"kernels": 0, "kernels_inside_a_step": 0, "kernels_before_their_op": 0},
            {"kernels_inside_a_step": 999},
            {"kernels_before_their_op": 11},
        ):
            found = trace_checks.problems(GOOD | change)
            self.assertEqual(len(found), 1, change)


class Goals(unittest.TestCase):
    FAST = {"op": "gelu", "model": goals.LARGE, "dtype": "fp16", "ratio": 0.9,
            "forward_share": 0.95, "forward_bound": 1.0, "backward_share": 0.93}

    def test_only_large_shapes_have_a_bandwidth_goal(self):
        self.assertEqual(goals.slow_kernels({"rows": [self.FAST]}), [])
        slow = self.FAST | {"backward_share": 0.5}
        self.assertEqual(len(goals.slow_kernels({"rows": [slow]})), 1)
        self.assertEqual(goals.slow_kernels({"rows": [slow | {"model": "bert-base"}]}), [])
        self.assertEqual(len(goals.slow_kernels({"rows": [slow | {"op": "dropout"}]})), 1)

    def test_ops_that_draw_have_the_lower_bound_of_bytes_and_philox(self):
        gpu = goals.philox_bound((9, 0), 132, 1.98e9)  # 6.7e12 elements a second
        self.assertAlmostEqual(gpu["elements_per_s"], 132 * 1.98e9 * 64 * 8 / 20)
        for copy, bound, slowest in ((4e12, 1.0, "bytes"), (56e12, 0.5, "Philox's integer")):
            found = goals.forward_bound("dropout", 4.185, copy, gpu)
            self.assertAlmostEqual(found, bound, places=2)
            drawing = self.FAST | {"op": "dropout", "forward_bound": found}
            fast = drawing | {"forward_share": 0.91 * found}
            self.assertEqual(goals.slow_kernels({"rows": [fast]}), [])
            (wrong,) = goals.slow_kernels({"rows": [drawing | {"forward_share": 0.8 * found}]})
            self.assertIn(f"0.80 of its bound, {slowest}", wrong)
        self.assertEqual(goals.forward_bound("gelu", 4.1, 56e12, gpu), 1.0)

    def test_a_gpu_without_known_throughput_is_reported(self):
        for gpu in (goals.philox_bound((3, 5), 13, 7e8), goals.philox_bound((9, 0), 132, 0)):
            bound = goals.forward_bound("dropout", 4.1, 4e12, gpu)
            row = self.FAST | {"op": "dropout", "forward_share": 0.1, "forward_bound": bound}
            found = {"philox": gpu, "rows": [row, self.FAST]}
            self.assertEqual(goals.slow_kernels(found), [])
            (sentence,) = goals.unjudged_kernels(found)
            self.assertEqual(sentence, f"forward of dropout is not judged: {gpu['missing']}")
        self.assertEqual(goals.unjudged_kernels({"rows": [self.FAST]}), [])

    def test_no_shape_may_be_slower_than_pytorch(self):
        slow = self.FAST | {"model": "bert-base", "ratio": 1.1}
        self.assertIn("1.10 times as long as PyTorch", goals.slow_kernels({"rows": [slow]})[0])

    def test_recording_may_cost_two_percent_and_less_than_pytorchs_profiler(self):
        cheap = {"turns": 10, "ratio": 1.01, "pytorch_profiler_ratio": 1.2}
        self.assertEqual(goals.costly_recording(cheap), [])
        costly = {"turns": 10, "ratio": 1.05, "pytorch_profiler_ratio": 1.04}
        self.assertEqual(len(goals.costly_recording(costly)), 2)

    def test_fewer_than_ten_pairs_are_not_judged(self):
        for ratio in (1.01, 1.5):
            found = {"turns": 9, "ratio": ratio, "pytorch_profiler_ratio": 1.2}
            with self.assertRaisesRegex(goals.NotJudged, "the time was enough for 9 pairs"):
                goals.costly_recording(found)

    def test_losses_of_recipes_are_compared_step_by_step(self):
        losses = {"original": [-95.4976, -139.6523], "tempo": [-95.4977, -139.6523]}
        self.assertEqual(goals.differing_losses(losses), [])
        for wrong in ([-95.4976, -137.0], [-95.4976, float("nan")], [-95.4976]):
            self.assertEqual(len(goals.differing_losses(losses | {"tempo": wrong})), 1, wrong)


STEP = "original-fp32-S512-B8-L2"
PREDICTED = {
    "h200": {
        "name": "NVIDIA H200", "compute_capability": "9.0", "memory_gib": 141,
        "calibrated": False, "max_batch_sizes": {"3 GiB": 13},
        "steps": {
            STEP: {"peak_allocated_bytes": 2_000_000_000, "peak_reserved_bytes": 2_500_000_000,
                   "step_time_ns": 27_000_000},
        },
    },
    "h100-sxm": {"name": "NVIDIA H100 SXM", "compute_capability": "9.0", "memory_gib": 80},
    "h100-pcie": {"name": "NVIDIA H100 PCIe", "compute_capability": "9.0", "memory_gib": 80},
    "a100-40gb": {"name": "NVIDIA A100 40 GB", "compute_capability": "8.0", "memory_gib": 40},
    "a100-80gb": {"name": "NVIDIA A100 80 GB SXM", "compute_capability": "8.0", "memory_gib": 80},
    "t4": {"name": "NVIDIA T4", "compute_capability": "7.5", "memory_gib": 16},
}


class Predictions(unittest.TestCase):
    """Compares predicted with measured figures that are made by hand."""

    def measured(self, peak=1.0, time=1.0, batch=0, trusted=True):
        predicted = PREDICTED["h200"]
        step = dict(predicted["steps"][STEP]) | {"trusted": trusted}
        step["peak_allocated_bytes"] *= peak
        step["step_time_ns"] *= time
        limits = {"3 GiB": {"max_batch_size": 13 + batch, "trusted": trusted}}
        return {"steps": {STEP: step, "another": step}, "limits": limits}

    def misses(self, same_gpu=True, calibrated=False, **changes):
        prediction = copy.deepcopy(PREDICTED["h200"]) | {"calibrated": calibrated}
        rows = gpu_predictions.compare(prediction, self.measured(**changes), same_gpu)
        return goals.wrong_predictions(rows)

    def test_peaks_may_differ_by_one_percent_and_batches_by_one(self):
        self.assertEqual(self.misses(), [])
        self.assertEqual(self.misses(peak=1.009, batch=1), [])
        self.assertRegex(self.misses(peak=1.02)[0], r"peak_allocated_bytes .* by \+2\.0 %")
        self.assertEqual(len(self.misses(peak=0.98)), 1)
        self.assertRegex(self.misses(batch=-2)[0], "max_batch_size .* by -2")

    def test_times_are_judged_only_for_a_calibrated_gpu(self):
        self.assertEqual(self.misses(time=1.3), [])
        self.assertEqual(self.misses(time=1.3, calibrated=True, same_gpu=False), [])
        self.assertEqual(self.misses(time=1.08, calibrated=True), [])
        self.assertRegex(self.misses(time=1.3, calibrated=True)[0], "step_time_ns")

    def test_figures_that_are_not_trusted_are_compared_and_not_judged(self):
        self.assertEqual(self.misses(peak=2.0, batch=9, trusted=False), [])
        rows = gpu_predictions.compare(PREDICTED["h200"], self.measured(trusted=False), True)
        self.assertEqual([row["met"] for row in rows], [None] * 4)
        self.assertEqual(gpu_predictions.table(rows).count("not judged, not trusted"), 4)

    def test_the_table_has_a_line_for_each_figure_that_both_have(self):
        rows = gpu_predictions.compare(PREDICTED["h200"], self.measured(time=1.3), True)
        self.assertEqual(len(rows), 4)  # "another" has no prediction
        lines = gpu_predictions.table(rows).splitlines()
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[3], r"step_time_ns .*27\.00 ms .*35\.10 ms .*\+30\.00 %  not judged")
        self.assertRegex(lines[4], r"max_batch_size .*\+0  met")
        only_steps = {"steps": self.measured()["steps"]}
        self.assertEqual(len(gpu_predictions.compare(PREDICTED["h200"], only_steps, True)), 3)

    def test_gpus_are_found_by_the_names_of_their_drivers(self):
        for name, capability, memory_gib, expected in (
            ("NVIDIA H200", "9.0", 139.8, "h200"),
            ("NVIDIA H100 80GB HBM3", "9.0", 79.2, "h100-sxm"),
            ("NVIDIA H100 PCIe", "9.0", 79.2, "h100-pcie"),
            ("NVIDIA A100-SXM4-40GB", "8.0", 39.4, "a100-40gb"),
            ("NVIDIA A100-SXM4-80GB", "8.0", 79.2, "a100-80gb"),
            ("Tesla T4", "7.5", 14.6, "t4"),
        ):
            found = gpu_predictions.find_gpu(PREDICTED, name, capability, memory_gib)
            self.assertEqual(found, (expected, True), name)
        alike = gpu_predictions.find_gpu(PREDICTED, "NVIDIA GH200 480GB", "9.0", 95.6)
        self.assertEqual(alike, ("h100-sxm", False))
        self.assertEqual(gpu_predictions.find_gpu(PREDICTED, "NVIDIA L4", "8.9", 22), ("", False))

    def test_every_gpu_that_torch_supports_is_predicted(self):
        catalogue = json.loads((repository.ROOT / "assets" / "gpus.json").read_text())
        gpus = gpu_predictions.supported_gpus(catalogue)
        self.assertLessEqual({"t4", "a100-80gb", "h100-sxm", "h200", "b200", "rtx4090"}, set(gpus))
        self.assertFalse({"gtx1080ti", "v100-16gb", "mi300x", "jetson-orin"} & set(gpus))

    def test_the_program_predicts_the_steps_that_the_worker_captures(self):
        program = BUILD / "bin" / "temposcope"
        if not program.exists():
            self.skipTest(f"{program} is not built")
        catalogue = json.loads((repository.ROOT / "assets" / "gpus.json").read_text())
        catalogue["gpus"] = [gpu for gpu in catalogue["gpus"] if gpu["id"] in ("h200", "t4")]
        predicted = gpu_predictions.predict(program, catalogue)
        self.assertEqual(set(predicted["h200"]["steps"]), set(gpu_workloads.STEPS))
        for figures in predicted["h200"]["steps"].values():
            self.assertGreater(figures["peak_reserved_bytes"], figures["peak_allocated_bytes"])
            self.assertGreater(figures["step_time_ns"], 0)
        # The T4 has no bf16.
        self.assertEqual(
            set(predicted["t4"]["steps"]),
            {name for name in gpu_workloads.STEPS if "-fp32-" in name},
        )
        batches = predicted["t4"]["max_batch_sizes"]
        self.assertEqual(set(batches), set(gpu_workloads.SWEEP_LIMITS))
        self.assertLess(batches["3 GiB"], batches["6 GiB"])
        self.assertIs(predicted["h200"]["calibrated"], True)
        self.assertIs(predicted["t4"]["calibrated"], False)


class Workloads(unittest.TestCase):
    def test_streams_cover_what_the_allocator_is_asked_for(self):
        streams = gpu_workloads.request_streams()
        for part in ("bert-", "gpt-", "flash", "cudnn", "efficient", "tempo-philox", "amp-bf16",
                     "tf32", "fp16", "layers2", "seq128-batch25", "seq512-batch60"):
            self.assertTrue(any(part in name for name in streams), part)
        self.assertLess(len(streams), 100, "each takes four seconds on a machine with a GPU")

    def test_kernels_that_a_gpu_lacks_are_left_out(self):
        for recipe, precision, capability, runs in (
            ("original", "fp32", "7.5", True), ("original", "bf16", "7.5", False),
            ("original", "bf16", "8.0", True), ("flash", "fp32", "9.0", False),
            ("flash", "fp16", "7.5", False), ("attention=efficient", "fp16", "7.5", True),
            ("attention=cudnn", "bf16", "10.0", True),
        ):
            described = {"recipe": recipe, "precision": precision}
            self.assertIs(gpu_workloads.runs_on(described, capability), runs, described)

    def test_both_families_have_their_own_sizes(self):
        described = gpu_workloads.stream("gpt", "tempo", "fp32", layers=2)[1]
        model = gpu_workloads.workload(described)["model"]
        self.assertEqual((model["hidden_size"], model["num_layers"]), (768, 2))
        self.assertEqual(gpu_workloads.workload(gpu_workloads.SWEEP)["model"]["hidden_size"], 1024)


def run_in(folder: pathlib.Path) -> gpu_run.Run:
    """A run on an H200 that has not begun. It has no worker."""
    run = object.__new__(gpu_run.Run)
    run.folder = run.scratch = folder
    run.few = run.virtual = False
    run.environment, run.found, run.detail = dict(os.environ), {}, {}
    run.card = {"name": "NVIDIA H200", "compute_capability": "9.0", "memory_gib": 139.8}
    run.missing, run.end = "", float("inf")
    return run


class WithRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_ = run_in(self.folder)

    def add_check(self, check, cap_s=60.0):
        name = check.__name__
        gpu_checks.CHECKS[name] = gpu_checks.Row(check, cap_s)
        self.addCleanup(gpu_checks.CHECKS.pop, name, None)
        return gpu_checks.run_check(name, self.run_, 100.0)


class Running(WithRun):
    """What becomes of a check."""

    def test_figures_of_a_failed_check_stay_and_are_not_trusted(self):
        def fails(run):
            run.detail["losses"] = [1.0]
            run.judge(["a goal is missed", "another one"])

        row = self.add_check(fails)
        self.assertEqual(row["status"], "failed")
        self.assertEqual(row["sentence"], "a goal is missed (and 1 more)")
        self.assertEqual(self.run_.found["fails"], {"losses": [1.0], "trusted": False})

    def test_a_hang_is_a_failure_and_keeps_its_figures(self):
        def hangs(run):
            run.detail["before"] = 1
            run.program(["sh", "-c", "sleep 60 & sleep 60"])

        start = time.monotonic()
        row = self.add_check(hangs, cap_s=0.5)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual((row["status"], row["sentence"]), ("failed", "did not finish in 0 s"))
        self.assertEqual(row["detail"], {"before": 1})

    def test_a_check_has_its_own_limit_on_a_card_only(self):
        def looks(run):
            run.detail["left_s"] = run.left_s()

        for is_virtual, least, most in ((False, 0, 0.5), (True, 0.5, 100)):
            with mock.patch.object(self.run_, "virtual", is_virtual):
                left_s = self.add_check(looks, cap_s=0.5)["detail"]["left_s"]
            self.assertGreaterEqual(left_s, least)
            self.assertLessEqual(left_s, most)

    def test_a_worker_that_hangs_is_one_too(self):
        def waits(run):
            worker = run.scratch / "temposcope-worker"
            worker.write_text("#!/bin/sh\nexec sleep 60\n")
            worker.chmod(0o755)
            with mock.patch.object(gpu_run, "BUNDLE", run.scratch):
                run.ask(request="doctor")

        row = self.add_check(waits, cap_s=0.5)
        self.assertEqual(row["status"], "failed")
        self.assertIn("did not finish", row["sentence"])

    def test_without_time_a_check_is_skipped(self):
        row = gpu_checks.run_check("doctor", self.run_, 3.0)
        self.assertEqual((row["status"], row["sentence"]), ("skipped", "no time is left"))

    def test_on_a_virtual_gpu_values_are_not_judged_and_nothing_is_trusted(self):
        def compares(run):
            run.detail["figure"] = 1
            run.judge_measured(["wrong"])

        self.run_.virtual = True
        row = self.add_check(compares)
        self.assertEqual(row["status"], "not judged")
        self.assertFalse(row["trusted"])
        self.run_.virtual = False
        self.assertEqual(self.add_check(compares)["status"], "failed")

    def test_another_error_does_not_end_the_run(self):
        def breaks(run):
            return run.detail["nothing"]

        self.assertEqual(self.add_check(breaks)["sentence"], "KeyError: 'nothing'")

    def test_a_short_trial_takes_a_few_of_each_list(self):
        self.assertEqual(self.run_.some(range(10), few=3), list(range(10)))
        self.run_.few = True
        self.assertEqual(self.run_.some(range(10), few=3), [0, 4, 8])
        self.assertEqual(self.run_.some(range(2), few=5), [0, 1])
        self.assertEqual(self.run_.rounds(10), 1)

    def test_another_torch_is_refused(self):
        gpu_run.require_torch("2.11.0+cu130")
        for version in ("2.1.10", "2.12.0", ""):
            with self.assertRaisesRegex(SystemExit, r"use a python3 with torch 2\.11$"):
                gpu_run.require_torch(version)


class Selection(unittest.TestCase):
    def test_names_of_groups_and_checks(self):
        self.assertEqual(gpu_checks.selected(""), list(gpu_checks.CHECKS))
        self.assertEqual(gpu_checks.selected("overhead,doctor"), ["doctor", "overhead"])
        self.assertEqual(gpu_checks.selected("figures"), list(gpu_checks.GROUPS["figures"]))

    def test_an_unknown_name_is_answered_with_all_names(self):
        with self.assertRaisesRegex(SystemExit, "'x' is not a check.*diagnosis.*overhead"):
            gpu_checks.selected("doctor,x")

    def test_the_list_names_every_check_with_its_limit(self):
        listing = gpu_checks.listing()
        for name, row in gpu_checks.CHECKS.items():
            self.assertRegex(listing, rf"  {name} +{row.cap_s:.0f} s  \w")

    def test_the_table_is_ordered_and_capped(self):
        self.assertEqual(list(gpu_checks.GROUPS), ["diagnosis", "streams", "figures", "limits"])
        self.assertLessEqual(gpu_checks.CHECKS["kernels"].cap_s, 120)


class Judging(WithRun):
    """The logic of single checks, without a worker."""

    def test_the_ops_tests_must_have_run(self):
        found = {}
        log = "......\n------\nRan 6 tests in 0.1s\n\nOK (skipped=1)"
        gpu_diagnosis.judge_unit_tests(0, log, found)
        self.assertEqual(found["tests"], 6)
        for returncode, log, sentence in (
            (0, "Ran 0 tests in 0.0s\n\nOK", "no test has run"),
            (5, "Ran 0 tests in 0.0s\n\nNO TESTS RAN", "NO TESTS RAN"),
            (0, "ss\nRan 2 tests in 0.0s\n\nOK (skipped=2)", "no test has run"),
            (1, "FAIL: test_gelu (x.OpsOnCuda)\nRan 2 tests\n\nFAILED (failures=1)",
             "1 tests fail; the first: FAIL: test_gelu"),
            (1, "ModuleNotFoundError: No module named 'torch'", "No module named 'torch'"),
        ):
            with self.assertRaisesRegex(gpu_run.Failed, sentence):
                gpu_diagnosis.judge_unit_tests(returncode, log, {})

    def test_refusals_count_on_a_virtual_gpu(self):
        report = "=" * 70 + "\n{}: test_{} (x.OpsOnCuda)\n" + "-" * 70 + "\nTraceback ...\n{}\n\n"
        wrong = report.format("FAIL", "a", "AssertionError: tempo: values differ")
        wrong += report.format("ERROR", "b", "RuntimeError: CUDA error: out of memory")
        self.assertEqual(gpu_diagnosis.refusals(wrong), [])
        refused = ("RuntimeError: tempo: x has dtype Double", "ValueError: layer_norm on CUDA: no")
        log = wrong + "".join(report.format("ERROR", "c", said) for said in refused)
        self.assertEqual(gpu_diagnosis.refusals(log),
                         [f"ERROR: test_c (x.OpsOnCuda): {said}" for said in refused])

    def test_the_kernels_tests_must_have_run(self):
        tests = [{"name": "A", "result": "COMPLETED"}, {"name": "B", "result": "SKIPPED"}]
        report = {"time": "1.5s", "testsuites": [{"name": "S", "testsuite": tests}]}
        found = gpu_diagnosis.judge_google_tests(report)
        self.assertEqual(found, {"tests": 2, "skipped": 1, "failed": [], "seconds": 1.5})
        tests[0]["failures"] = [{}]
        self.assertEqual(gpu_diagnosis.judge_google_tests(report)["failed"], ["S.A"])
        tests[0] = tests[1]
        with self.assertRaisesRegex(gpu_run.Failed, "no test has run"):
            gpu_diagnosis.judge_google_tests(report)

    def test_losses_of_the_streams_are_compared(self):
        with self.assertRaises(gpu_run.Skipped):
            gpu_streams.losses(self.run_)
        steps = {f"bert-{recipe}-fp32": {"losses": [1.0, 0.9]} for recipe in ("original", "tempo")}
        steps["bert-checkpoint-fp32"] = {"problems": ["it failed"]}
        self.run_.found["request-streams"] = {"steps": steps, "trusted": False}
        gpu_streams.losses(self.run_)
        self.assertEqual(set(self.run_.detail), {"original", "tempo"})
        steps["bert-tempo-fp32"]["losses"] = [1.0, 0.95]
        with self.assertRaisesRegex(gpu_run.Failed, "the losses of tempo and original differ"):
            gpu_streams.losses(self.run_)

    def test_a_step_that_is_too_large_for_the_gpu_is_no_problem(self):
        row = gpu_run.refusal(worker_link.WorkerError("Out of memory: ...", 3))
        self.assertEqual(row["problems"], [])
        self.assertEqual(gpu_run.refusal(worker_link.WorkerError("x"))["problems"], ["x"])

    def test_predictions_of_the_bundle_are_compared_with_measurements(self):
        (self.folder / gpu_predictions.FILE).write_text(json.dumps(PREDICTED))
        step = PREDICTED["h200"]["steps"][STEP] | {"problems": [], "trusted": True}
        self.run_.found["step-times"] = {"steps": {STEP: step}, "trusted": True}
        limits = {"3 GiB": {"max_batch_size": 9, "trusted": True}, "6 GiB": {"points": []}}
        self.run_.found["sweeps"] = {"limits": limits, "trusted": False}
        with mock.patch.object(gpu_figures, "BUNDLE", self.folder), mock.patch("builtins.print"):
            gpu_figures.predicted_steps(self.run_)
            self.assertEqual(self.run_.detail["predicted_for"], "h200")
            self.assertEqual([row["met"] for row in self.run_.detail["rows"]], [True, True, None])
            with self.assertRaisesRegex(gpu_run.Failed, "max_batch_size of 3 GiB .* by -4"):
                gpu_limits.predicted_batches(self.run_)
            self.run_.card = {"name": "X", "compute_capability": "8.7", "memory_gib": 30}
            with self.assertRaisesRegex(gpu_run.Skipped, "no GPU of compute capability 8.7"):
                gpu_figures.predicted_steps(self.run_)

    def test_a_sanitizer_that_cannot_look_is_skipped(self):
        clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors"
        gpu_limits.judge_sanitizer(0, clean)
        gpu_limits.judge_sanitizer(0, "========= RACECHECK SUMMARY: 0 hazards displayed")
        with self.assertRaisesRegex(gpu_run.Failed, "ERROR SUMMARY: 2 errors"):
            gpu_limits.judge_sanitizer(9, "========= ERROR SUMMARY: 2 errors")
        with self.assertRaisesRegex(gpu_run.Failed, "the tests end with 1"):
            gpu_limits.judge_sanitizer(1, clean)
        for output in ("", "========= Error: Device not supported. Please refer to ...\n" + clean):
            with self.assertRaisesRegex(gpu_run.Skipped, "the sanitizer cannot open the device"):
                gpu_limits.judge_sanitizer(1, output)

    def test_each_recording_is_made_with_its_settings_and_checked(self):
        settings_of_steps = []

        def trace(name, workload, **_):
            environment = self.run_.environment
            settings_of_steps.append(environment.get("PYTORCH_CUDA_ALLOC_CONF", ""))
            path = pathlib.Path(environment["TEMPOSCOPE_CUPTI_RECORDING"])
            self.assertEqual(f"{gpu_recordings.FOLDER}/{path.stem}", name)
            path.write_bytes(bytes(1000))
            return {"kernels": 5}

        self.run_.environment = {"HOME": "/"}
        self.run_.trace = trace
        gpu_limits.cupti_buffers(self.run_)
        self.assertEqual(len(self.run_.detail), 4)
        self.assertEqual(settings_of_steps, ["", "", "expandable_segments:True", ""])
        self.assertEqual(self.run_.environment, {"HOME": "/"})

    def test_an_allocator_that_cannot_be_recorded_is_a_failure(self):
        def refuse(*_):
            raise gpu_run.Failed("no device")

        self.run_.python = refuse
        with self.assertRaisesRegex(gpu_run.Failed, "no device"):
            gpu_streams.allocator(self.run_)
        self.assertEqual(len(self.run_.detail), len(gpu_recordings.SCENARIOS))


class ComesBack(WithRun):
    """The files that come back."""

    def archive(self):
        out, files = self.folder / "out", self.folder / "files"
        for folder in (out, files):
            folder.mkdir()
        return gpu_archive.Archive(files, out, "nvidia-h200-streams", self.folder), files, out

    def test_files_are_named_after_card_and_group(self):
        for device, name, names, stem in (
            ("cuda", "NVIDIA GeForce RTX 4090", "figures", "nvidia-geforce-rtx-4090-figures"),
            ("virtual", "NVIDIA H200", "", "virtual-nvidia-h200-all"),
            ("none", "", "doctor,ops", "no-gpu-doctor-ops"),
        ):
            self.assertEqual(gpu_archive.stem_of(device, name, names), stem)

    def test_what_is_packed_after_each_check_can_be_collected(self):
        archive, files, out = self.archive()
        (files / "a.tscope").write_bytes(b"a" * 1000)
        archive.add_new_files()
        (files / "recordings").mkdir()
        noise = os.urandom(3000)
        (files / "recordings" / "b.pickle").write_bytes(noise)
        with mock.patch.object(gpu_archive, "PART_BYTES", 7000):
            archive.add_new_files()
        self.assertGreater(len(list(out.iterdir())), 1)
        rows = [{"name": "x", "status": "ok", "sentence": ""}]
        for group, started in (("streams", 2.0), ("diagnosis", 1.0)):
            gpu_archive.write_document(out / f"nvidia-h200-{group}.json", {
                "group": group, "started_unix_s": started, "device": "cuda", "card": {},
                "missing": "", "rows": rows,
            })
        (merged,) = gpu_archive.collect([out], self.folder / "results")
        self.assertEqual(merged.name, "nvidia-h200.json")
        groups = [row["group"] for row in json.loads(merged.read_text())["rows"]]
        self.assertEqual(groups, ["diagnosis", "streams"])
        unpacked = self.folder / "results" / "nvidia-h200-streams"
        self.assertEqual((unpacked / "a.tscope").read_bytes(), b"a" * 1000)
        self.assertEqual((unpacked / "recordings" / "b.pickle").read_bytes(), noise)

    def test_what_would_not_come_back_is_named(self):
        archive, files, out = self.archive()
        (files / "large").write_bytes(os.urandom(60_000))
        (files / "small").write_bytes(b"a")
        with mock.patch.object(gpu_archive, "PART_BYTES", 10_240):
            archive.add_new_files()
        self.assertEqual(archive.left_out, ["large"])
        self.assertEqual([path.name for path in out.iterdir()], ["nvidia-h200-streams.tar.0"])

    def test_readings_of_the_background_are_summed_up(self):
        found = gpu_background.summary(["power_mw", "sm_clock_mhz"], [["5", ""], ["9", ""]])
        self.assertEqual(found, {"power_mw": [5, 7, 9]})


class FakeNvml:
    """An NVML of an older driver, which lacks a function."""

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, device):
        return index

    def nvmlDeviceGetClockInfo(self, device, clock, value):
        value._obj.value = 1980 if clock == nvml.CLOCK_SM else 2619
        return 0

    def nvmlDeviceGetPowerUsage(self, device, value):
        return 3  # not supported

    def nvmlDeviceGetTemperature(self, device, sensor, value):
        value._obj.value = 41
        return 0

    def nvmlDeviceGetMemoryInfo(self, device, memory):
        memory._obj.used = 512
        return 0


class Nvml(unittest.TestCase):
    def test_what_nvml_does_not_have_is_none(self):
        self.assertEqual(nvml.Gpu(FakeNvml()).state(), {
            "sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "power_mw": None, "temperature_c": 41,
            "clock_limits": None, "used_bytes": 512,
        })


class Recordings(WithRun):
    def setUp(self):
        super().setUp()
        self.names = [*gpu_recordings.STEPS, *gpu_recordings.snapshots()]
        self.assertEqual(len(self.names), 20)
        for name in self.names:
            (self.folder / name).write_bytes(bytes(1000))

    def problems(self, found):
        return gpu_recordings.problems(self.folder, found, self.names)

    def test_all_scenarios_of_both_models_must_be_there(self):
        self.assertEqual(self.problems({}), [])
        (self.folder / "graph_capture_gpt.pickle").unlink()
        (self.folder / "bert_eager.cupti").write_bytes(b"")
        self.assertEqual(self.problems({"eager": {"problem": "no room"}}), [
            "no room", "not recorded: graph_capture_gpt.pickle",
            "without a record: bert_eager.cupti",
        ])

    def test_more_than_eight_mebibytes_are_too_many(self):
        (self.folder / "bert_eager.cupti").write_bytes(bytes(8 << 20))
        self.assertRegex(self.problems({})[0], "at most 8 are allowed")


class Worker(WithRun):
    """The Python client and the worker understand each other in a capture on the CPU."""

    def setUp(self):
        super().setUp()
        self.worker = BUILD / "bin" / "temposcope-worker"
        if not self.worker.exists():
            self.skipTest(f"{self.worker} is not built")

    def ask(self, **fields):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return worker_link.request(str(self.worker), fields, environment, 100)

    def test_a_capture_can_be_judged(self):
        path = self.folder / "step.tscope"
        workload = worker_link.bert(1, 64, batch_size=2, seq_len=16)
        self.ask(request="capture", workload=workload, output_path=str(path))
        found = trace_checks.summary(path)
        self.assertEqual(found["steps"], 3)
        self.assertEqual(len(found["losses"]), 3)
        self.assertEqual(found["workload"]["seq_len"], 16)
        self.assertGreater(found["peak_allocated_bytes"], 0)
        self.assertEqual(trace_checks.problems(found), ["the trace has no kernel"])
        self.assertIn("torch", found["software"])

    def test_a_refused_request_raises_the_workers_sentence(self):
        with self.assertRaisesRegex(worker_link.WorkerError, "is not a device of this worker"):
            self.ask(request="capture", workload=worker_link.bert(1, 64), device="tpu")


if __name__ == "__main__":
    unittest.main()
