"""The marker `gpu_memory` of pytest: marked tests run on a virtual GPU, and have a limit.

    gpu_memory_test.py BIN_FOLDER
"""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as xml

from commands import BIN

TESTS = """
    import pytest
    import torch

    GIB = 1 << 30

    def allocate(gib):
        return torch.empty(int(gib * GIB), dtype=torch.uint8, device="cuda")

    @pytest.fixture
    def two():
        return allocate(2)

    @pytest.mark.gpu_memory(limit="3 GiB")
    def test_fits(two):
        assert torch.cuda.get_device_name().startswith("NVIDIA A100")
        allocate(1)

    @pytest.mark.gpu_memory(limit="3 GiB", gpu="t4")
    @pytest.mark.parametrize("gib", [0.5, 1.5])
    def test_sizes(two, gib):
        allocate(gib)

    @pytest.mark.gpu_memory(gpu="t4")
    def test_runs_out():
        model = torch.nn.Linear(1 << 15, 1 << 14, bias=False, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for rows in (1, 1 << 20):
            model(torch.zeros(rows, 1 << 15, device="cuda")).sum().backward()
            optimizer.step()

    @pytest.mark.gpu_memory
    def test_fails():
        assert allocate(1).numel() == 7

    @pytest.mark.gpu_memory
    def test_skips():
        pytest.skip("not today")

    @pytest.mark.xfail(strict=True)
    @pytest.mark.gpu_memory(limit="1 MiB")
    def test_is_expected_to_fail(two):
        pass

    @pytest.mark.gpu_memory(limit="ten")
    def test_with_a_wrong_limit():
        pass

    def test_without_the_marker():
        assert not torch.cuda.is_available() or torch.version.cuda
"""


@unittest.skipUnless(importlib.util.find_spec("pytest"), "needs pytest")
class GpuMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        folder = pathlib.Path(place.name)
        (folder / "test_memory.py").write_text(textwrap.dedent(TESTS))
        report = folder / "report.xml"
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "temposcope_pytest", "--gpu-memory-traces",
             "traces", f"--junitxml={report}", "test_memory.py"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        cls.output = ran.stdout + ran.stderr
        cls.cases = {case.get("name"): case for case in xml.parse(report).iter("testcase")}
        cls.traces = {path.name for path in (folder / "traces").iterdir()}

    def outcome(self, name: str) -> tuple[str, str]:
        """("failure", what it says); ("passed", "")"""
        for kind in ("failure", "error", "skipped"):
            found = self.cases[name].find(kind)
            if found is not None:
                return kind, f"{found.get('message')}\n{found.text}"
        return "passed", ""

    def test_a_test_with_its_fixtures_runs_on_the_card(self):
        self.assertEqual(self.outcome("test_fits"), ("passed", ""), self.output)

    def test_the_limit_counts_for_each_parameter(self):
        self.assertEqual(self.outcome("test_sizes[0.5]"), ("passed", ""))
        kind, text = self.outcome("test_sizes[1.5]")
        self.assertEqual(kind, "failure")
        self.assertIn("allocates 3.50 GiB on t4, and its limit is 3.00 GiB", text)

    def test_memory_runs_out(self):
        kind, text = self.outcome("test_runs_out")
        self.assertEqual(kind, "failure")
        self.assertIn("Memory of t4 ran out; the most is of ", text)
        self.assertRegex(text, r"test_memory\.py:\d+ test_runs_out \(\d")

    def test_other_outcomes_are_those_of_the_test(self):
        kind, text = self.outcome("test_fails")
        self.assertEqual(kind, "failure")
        self.assertIn("== 7", text)
        kind, text = self.outcome("test_skips")
        self.assertEqual(kind, "skipped")
        self.assertIn("not today", text)
        self.assertEqual(self.outcome("test_is_expected_to_fail")[0], "skipped")
        self.assertEqual(self.outcome("test_without_the_marker"), ("passed", ""))

    def test_a_wrong_limit_is_named(self):
        kind, text = self.outcome("test_with_a_wrong_limit")
        self.assertEqual(kind, "failure")
        self.assertIn("limit is 'ten': give a size such as '10 GiB'", text)

    def test_the_report_has_the_trace(self):
        properties = self.cases["test_runs_out"].iter("property")
        paths = [one.get("value") for one in properties if one.get("name") == "gpu_memory_trace"]
        self.assertEqual(len(paths), 1)
        name = pathlib.Path(paths[0]).name
        self.assertEqual(name, "test_memory.py-test_runs_out.tscope")
        self.assertIn(name, self.traces)


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: gpu_memory_test.py BIN_FOLDER")
    unittest.main()
