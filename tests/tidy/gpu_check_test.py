"""scripts/gpu-check: libraries of its files, its judgements, its client of the worker."""

import os
import pathlib
import sys
import tempfile
import unittest

import repository

BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(repository.ROOT / "scripts" / "lib"))

import goals  # noqa: E402
import gpu_bundle  # noqa: E402
import trace_checks  # noqa: E402
import worker_link  # noqa: E402


class Bundle(unittest.TestCase):
    def test_files_need_only_what_the_lists_say(self):
        built = [name for name in gpu_bundle.FILES if (BUILD / "bin" / name).exists()]
        if not built:
            self.skipTest("nothing of it is built")
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

    def test_only_large_shapes_are_held_to_the_bandwidth(self):
        self.assertEqual(goals.slow_kernels({"rows": [self.FAST]}), [])
        slow = self.FAST | {"backward_share": 0.5}
        self.assertEqual(len(goals.slow_kernels({"rows": [slow]})), 1)
        self.assertEqual(goals.slow_kernels({"rows": [slow | {"model": "bert-base"}]}), [])
        self.assertEqual(len(goals.slow_kernels({"rows": [slow | {"op": "dropout"}]})), 1)

    def test_what_draws_is_held_to_the_lower_of_bytes_and_philox(self):
        card = goals.philox_bound((9, 0), 132, 1.98e9)  # 6.7e12 elements a second
        self.assertAlmostEqual(card["elements_per_s"], 132 * 1.98e9 * 64 * 8 / 20)
        for copy, bound, slowest in ((4e12, 1.0, "bytes"), (56e12, 0.5, "Philox's integer")):
            found = goals.forward_bound("dropout", 4.185, copy, card)
            self.assertAlmostEqual(found, bound, places=2)
            drawing = self.FAST | {"op": "dropout", "forward_bound": found}
            fast = drawing | {"forward_share": 0.91 * found}
            self.assertEqual(goals.slow_kernels({"rows": [fast]}), [])
            (wrong,) = goals.slow_kernels({"rows": [drawing | {"forward_share": 0.8 * found}]})
            self.assertIn(f"0.80 of its bound, {slowest}", wrong)
        self.assertEqual(goals.forward_bound("gelu", 4.1, 56e12, card), 1.0)

    def test_a_card_without_figures_is_named(self):
        for card in (goals.philox_bound((3, 5), 13, 7e8), goals.philox_bound((9, 0), 132, 0)):
            bound = goals.forward_bound("dropout", 4.1, 4e12, card)
            row = self.FAST | {"op": "dropout", "forward_share": 0.1, "forward_bound": bound}
            found = {"philox": card, "rows": [row, self.FAST]}
            self.assertEqual(goals.slow_kernels(found), [])
            (sentence,) = goals.unjudged_kernels(found)
            self.assertEqual(sentence, f"forward of dropout is not judged: {card['missing']}")
        self.assertEqual(goals.unjudged_kernels({"rows": [self.FAST]}), [])

    def test_no_shape_may_be_slower_than_pytorch(self):
        slow = self.FAST | {"model": "bert-base", "ratio": 1.1}
        self.assertIn("1.10 of PyTorch's time", goals.slow_kernels({"rows": [slow]})[0])

    def test_recording_is_held_to_two_percent_and_to_pytorchs_profiler(self):
        self.assertEqual(
            goals.costly_recording({"ratio": 1.01, "pytorch_profiler_ratio": 1.2}), []
        )
        self.assertEqual(
            len(goals.costly_recording({"ratio": 1.05, "pytorch_profiler_ratio": 1.04})), 2
        )


class Worker(unittest.TestCase):
    """The client in Python and the worker understand each other: a capture on the CPU."""

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
        self.assertGreater(found["peak_allocated_bytes"], 0)
        self.assertEqual(trace_checks.problems(found, with_kernels=False), [])
        self.assertIn("there is no kernel", trace_checks.problems(found, with_kernels=True))

    def test_a_refusal_is_the_workers_sentence(self):
        with self.assertRaisesRegex(worker_link.WorkerError, "no device of this worker"):
            self.ask(request="capture", workload=worker_link.bert(1, 64), device="tpu")


if __name__ == "__main__":
    unittest.main()
