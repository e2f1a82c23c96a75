"""Tests of scripts/gpu-check: the libraries of its files, its judgements, its worker client."""

import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import repository

BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(repository.ROOT / "scripts" / "lib"))


def load_gpu_check():
    """Imports the command, whose file name is no module name."""
    path = str(repository.ROOT / "scripts" / "gpu-check")
    loader = importlib.machinery.SourceFileLoader("gpu_check", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


import goals  # noqa: E402
import gpu_bundle  # noqa: E402
import gpu_checks  # noqa: E402
import gpu_predictions  # noqa: E402
import gpu_recordings  # noqa: E402
import gpu_workloads  # noqa: E402
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

    def test_its_scripts_exist(self):
        for name in gpu_bundle.SCRIPTS:
            self.assertTrue((repository.ROOT / "scripts" / name).is_file(), name)


GOOD = {
    "notes": {"capture_memory": 1},
    "live_bytes_at_step_ends": [100, 200, 200],
    "allocations": 9,
    "kernels": 1000,
    "kernels_inside_a_step": 1000,
    "kernels_before_their_op": 3,
}


class Judgement(unittest.TestCase):
    def test_a_good_trace_has_no_problems(self):
        self.assertEqual(trace_checks.problems(GOOD, with_kernels=True), [])

    def test_each_problem_is_a_sentence(self):
        for change in (
            {"notes": {"allocator_totals_differ": 4}},
            {"live_bytes_at_step_ends": [100, 200, 201]},
            {"allocations": 0},
            {"kernels": 0, "kernels_inside_a_step": 0, "kernels_before_their_op": 0},
            {"kernels_inside_a_step": 999},
            {"kernels_before_their_op": 11},
        ):
            found = trace_checks.problems(GOOD | change, with_kernels=True)
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


PREDICTED = {
    "h200": {
        "name": "NVIDIA H200", "compute_capability": "9.0", "memory_gib": 141,
        "calibrated": False, "max_batch_size": 13,
        "steps": {
            "capture original": {"peak_allocated_bytes": 2_000_000_000,
                                 "peak_reserved_bytes": 2_500_000_000, "step_time_ns": 27_000_000},
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

    def measured(self, peak=1.0, time=1.0, batch=0):
        predicted = PREDICTED["h200"]
        step = dict(predicted["steps"]["capture original"])
        step["peak_allocated_bytes"] *= peak
        step["step_time_ns"] *= time
        steps = {"capture original": step, "overhead": step}
        return {"steps": steps, "max_batch_size": predicted["max_batch_size"] + batch}

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

    def test_the_table_has_a_line_for_each_figure_that_both_have(self):
        rows = gpu_predictions.compare(PREDICTED["h200"], self.measured(time=1.3), True)
        self.assertEqual(len(rows), 4)  # "overhead" has no prediction, because it does not fit
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
        self.assertEqual(
            set(predicted["h200"]["steps"]), {*gpu_workloads.CAPTURES, "overhead"}
        )
        for figures in predicted["h200"]["steps"].values():
            self.assertGreater(figures["peak_reserved_bytes"], figures["peak_allocated_bytes"])
            self.assertGreater(figures["step_time_ns"], 0)
        # 24 layers do not fit in 16 GB, and the T4 has no bf16.
        self.assertEqual(
            set(predicted["t4"]["steps"]),
            {"capture original", "capture tempo", "capture checkpoint"},
        )
        self.assertIn(predicted["t4"]["max_batch_size"], range(8, 20))
        self.assertIs(predicted["h200"]["calibrated"], False)


class Check(unittest.TestCase):
    """The logic of the checks, without a worker."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.check = object.__new__(gpu_checks.Check)
        self.check.device = "cuda"
        self.check.folder = self.folder
        self.check.recordings = self.folder / "recordings"
        self.check.found = {}
        self.check.gpu = {"name": "NVIDIA H200", "compute_capability": "9.0", "memory_gib": 139.8}

    def test_the_result_is_named_after_the_gpu(self):
        gpu_check = load_gpu_check()
        detail = "NVIDIA GeForce RTX 4090, 23.6 GiB, compute capability 8.9"
        self.check.gpu = gpu_check.gpu_of(detail)
        self.assertEqual(self.check.gpu, {
            "name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9", "memory_gib": 23.6,
        })
        self.assertEqual(gpu_check.file_name(self.check), "nvidia-geforce-rtx-4090.json")
        self.check.device = "cpu"
        self.assertEqual(gpu_check.file_name(self.check), "no-gpu.json")

    def test_the_ops_tests_must_have_run(self):
        log = "......\n------\nRan 6 tests in 0.1s\n\nOK (skipped=1)"
        self.assertEqual(gpu_checks.judge_unit_tests(0, log)["tests"], 6)
        for returncode, log, sentence in (
            (0, "Ran 0 tests in 0.0s\n\nOK", "no test has run"),
            (5, "Ran 0 tests in 0.0s\n\nNO TESTS RAN", "NO TESTS RAN"),
            (0, "ss\nRan 2 tests in 0.0s\n\nOK (skipped=2)", "no test has run"),
            (1, "FAIL: test_gelu (x.OpsOnCuda)\nRan 2 tests\n\nFAILED (failures=1)",
             "1 tests fail; the first: FAIL: test_gelu"),
            (1, "ModuleNotFoundError: No module named 'torch'", "No module named 'torch'"),
        ):
            with self.assertRaisesRegex(gpu_checks.Failed, sentence):
                gpu_checks.judge_unit_tests(returncode, log)

    def test_losses_of_the_captures_are_compared(self):
        with self.assertRaises(gpu_checks.Skipped):
            gpu_checks.check_losses(self.check)
        self.check.found = {
            "capture original": {"losses": [1.0, 0.9]}, "capture tempo": {"losses": [1.0, 0.9]},
        }
        gpu_checks.check_losses(self.check)
        self.check.found["capture checkpoint"] = {}  # it failed
        gpu_checks.check_losses(self.check)
        self.check.found["capture tempo"] = {"losses": [1.0, 0.95]}
        with self.assertRaisesRegex(gpu_checks.Failed, "the losses of tempo and original differ"):
            gpu_checks.check_losses(self.check)

    def test_measured_figures_come_from_the_checks_that_ran(self):
        step = {"peak_allocated_bytes": 5, "peak_reserved_bytes": 6, "step_times_ns": [7, 9, 8]}
        self.check.found = {
            "capture original": step, "capture tempo": {},
            "overhead": {"turns": 3, "step_time_ns": 4, "peak_allocated_bytes": 1},
            "memory limit": {"max_batch_size": 12, "points": []},
        }
        figures = gpu_checks.measured_figures(self.check)
        self.assertEqual(set(figures["steps"]), {"capture original", "overhead"})
        self.assertEqual(figures["steps"]["capture original"]["step_time_ns"], 8)
        self.assertEqual(figures["max_batch_size"], 12)

    def test_predictions_of_the_bundle_are_compared_with_measurements(self):
        (self.folder / gpu_predictions.FILE).write_text(json.dumps(PREDICTED))
        step = PREDICTED["h200"]["steps"]["capture original"]
        measured = {key: value for key, value in step.items() if key != "step_time_ns"}
        self.check.found["capture original"] = measured | {"step_times_ns": [30_000_000]}
        quiet = contextlib.redirect_stdout(io.StringIO())
        with mock.patch.object(gpu_checks, "BUNDLE", self.folder), quiet:
            found = gpu_checks.check_predictions(self.check)
            self.assertEqual((found["predicted_for"], found["same_card"]), ("h200", True))
            self.assertEqual([row["met"] for row in found["rows"]], [True, True, None])
            self.check.found["memory limit"] = {"max_batch_size": 9}
            with self.assertRaisesRegex(gpu_checks.Failed, "1 goals missed.*by -4"):
                gpu_checks.check_predictions(self.check)
            self.check.gpu = {"name": "X", "compute_capability": "8.7", "memory_gib": 30}
            with self.assertRaisesRegex(gpu_checks.Skipped, "no GPU of compute capability 8.7"):
                gpu_checks.check_predictions(self.check)

    def test_each_recording_is_made_with_its_settings_and_checked(self):
        self.check.environment = {"HOME": "/"}
        settings_of_steps = []

        def trace(name, kind, workload, **_):
            environment = self.check.environment
            settings_of_steps.append(environment.get("PYTORCH_CUDA_ALLOC_CONF", ""))
            path = pathlib.Path(environment["TEMPOSCOPE_CUPTI_RECORDING"])
            self.assertEqual(path.stem, name)
            path.write_bytes(bytes(1000))
            return {"kernels": 5}

        def record(folder, settings, environment):
            names = [f"{name}_{family}.pickle" for name in gpu_recordings.SCENARIOS[settings]
                     for family in ("bert", "gpt")]
            for name in names:
                (folder / name).write_bytes(bytes(1000))
            return {name: {"events": 7} for name in names}

        self.check.trace = trace
        with mock.patch.object(gpu_recordings, "record_allocator", record):
            found = gpu_checks.check_recordings(self.check)
        self.assertEqual(len(found), 15)
        self.assertEqual(settings_of_steps, ["", "", "expandable_segments:True"])
        self.assertEqual(self.check.environment, {"HOME": "/"})

        def refuse(*_):
            return {"problem": "no device"}

        # Files of the first run do not count as recordings of the second.
        with mock.patch.object(gpu_recordings, "record_allocator", refuse):
            with self.assertRaisesRegex(gpu_checks.Failed, "no device.*not recorded: eager_bert"):
                gpu_checks.check_recordings(self.check)

    def test_a_check_with_too_few_measurements_keeps_them(self):
        def few(_):
            raise gpu_checks.Skipped("not judged: 3 pairs", {"turns": 3})

        self.check.end = float("inf")
        gpu_checks.CHECKS["few"] = few
        self.addCleanup(gpu_checks.CHECKS.pop, "few")
        row = gpu_checks.run_check("few", self.check)
        self.assertEqual((row["status"], row["detail"]), ("skipped", {"turns": 3}))
        self.assertEqual(self.check.found["few"], {"turns": 3})

    def test_other_checks_do_not_use_figures_of_a_failed_one(self):
        def fail(_):
            raise gpu_checks.Failed("a goal is missed", {"losses": [1.0]})

        self.check.end = float("inf")
        gpu_checks.CHECKS["wrong"] = fail
        self.addCleanup(gpu_checks.CHECKS.pop, "wrong")
        row = gpu_checks.run_check("wrong", self.check)
        self.assertEqual(row["detail"], {"losses": [1.0]}, "the result still shows the figures")
        self.assertEqual(self.check.found["wrong"], {})


class Recordings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.assertEqual(len(gpu_recordings.names()), 15)
        for name in gpu_recordings.names():
            (self.folder / name).write_bytes(bytes(1000))

    def test_all_scenarios_of_both_models_must_be_there(self):
        self.assertEqual(gpu_recordings.problems(self.folder, {}), [])
        (self.folder / "graph_capture_gpt.pickle").unlink()
        (self.folder / "bert_eager.cupti").write_bytes(b"")
        self.assertEqual(
            gpu_recordings.problems(self.folder, {"eager": {"problem": "no room"}}),
            [
                "no room",
                "not recorded: graph_capture_gpt.pickle",
                "without a record: bert_eager.cupti",
            ],
        )

    def test_more_than_eight_mebibytes_are_too_many(self):
        (self.folder / "bert_eager.cupti").write_bytes(bytes(8 << 20))
        self.assertRegex(gpu_recordings.problems(self.folder, {})[0], "at most 8 are allowed")

    def test_the_recorder_has_every_scenario(self):
        text = (repository.ROOT / "scripts" / "lib" / "record_allocator.py").read_text()
        for scenarios in gpu_recordings.SCENARIOS.values():
            for name in scenarios:
                self.assertIn(f'    "{name}": ', text)

    def test_settings_are_passed_to_torchs_allocator(self):
        self.assertEqual(gpu_recordings.with_settings({"A": "1"}, ""), {"A": "1"})
        self.assertEqual(
            gpu_recordings.with_settings({}, "max_split_size_mb:32"),
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:32"},
        )


class Worker(unittest.TestCase):
    """The Python client and the worker understand each other in a capture on the CPU."""

    def setUp(self):
        self.worker = BUILD / "bin" / "temposcope-worker"
        if not self.worker.exists():
            self.skipTest(f"{self.worker} is not built")

    def ask(self, **fields):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return worker_link.request(str(self.worker), fields, environment, 100)

    def test_a_capture_can_be_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "original.tscope"
            workload = worker_link.bert(1, 64, batch_size=2, seq_len=16)
            self.ask(request="capture", workload=workload, output_path=str(path))
            found = trace_checks.summary(path)
        self.assertEqual(found["steps"], 3)
        self.assertEqual(len(found["losses"]), 3)
        self.assertEqual(found["workload"]["seq_len"], 16)
        self.assertGreater(found["peak_allocated_bytes"], 0)
        self.assertEqual(trace_checks.problems(found, with_kernels=False), [])
        self.assertIn("the trace has no kernel", trace_checks.problems(found, with_kernels=True))

    def test_a_gpt_can_be_captured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gpt.tscope"
            workload = worker_link.gpt(1, 64, batch_size=2, seq_len=16)
            self.ask(request="capture", workload=workload, output_path=str(path), steps=1)
            found = trace_checks.summary(path)
        self.assertEqual(found["workload"]["model"]["family"], "gpt2")
        self.assertGreater(found["allocations"], 0)

    def test_a_refused_request_raises_the_workers_sentence(self):
        with self.assertRaisesRegex(worker_link.WorkerError, "is not a device of this worker"):
            self.ask(request="capture", workload=worker_link.bert(1, 64), device="tpu")


if __name__ == "__main__":
    unittest.main()
