"""gpu-check on a virtual GPU: the packed bundle runs every check, and its results can be
collected. No check may fail there.

    gpu_check_test.py BUILD_FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from virtual_machine import h200, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
SCRIPT = ROOT / "tools" / "gpu_check" / "gpu-check"
GROUPS = ("diagnosis", "streams", "figures", "limits")
# What depends on values or times, which a virtual GPU does not have.
NOT_JUDGED = {"kernels", "ops", "launches", "products", "attention", "predicted-steps",
              "kernel-speed", "predicted-batches", "overhead"}
JUDGED = {"environment", "doctor", "first-captures", "request-streams", "allocator", "programs",
          "cudnn", "workspaces", "outside-memory", "step-times", "sweeps", "cupti-buffers",
          "leaks"}


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.bundle = cls.folder / "bundle"
        command = [sys.executable, str(SCRIPT), "pack", str(cls.bundle), "--build", str(BUILD)]
        packed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert packed.returncode == 0, packed.stderr

    def run_group(self, group, out):
        """One of the four commands of docs/dev/gpu_check.md, as a short trial."""
        arguments = ["run", "--out", str(out), "--only", group, "--few", "--minutes", "60"]
        libraries = BUILD / "bin" / "virtual_gpu"
        return run(libraries, h200(), str(self.bundle / "gpu-check"), *arguments)

    def test_every_check_runs_and_what_comes_back_can_be_collected(self):
        outs = [self.folder / f"out-{group}" for group in GROUPS]
        for group, out in zip(GROUPS, outs, strict=True):
            ran = self.run_group(group, out)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertIn("This is a virtual GPU", ran.stdout)
            files = list(out.iterdir())
            self.assertLessEqual(len(files), 5)
            self.assertLess(max(file.stat().st_size for file in files), 16 << 20)
        results = self.folder / "results"
        command = [sys.executable, str(SCRIPT), "collect", *map(str, outs), "--into", str(results)]
        subprocess.run(command, capture_output=True, text=True, check=True)
        self.check_rows(json.loads((results / "virtual-nvidia-h200.json").read_text())["rows"])
        self.check_files(results)

    def check_rows(self, rows):
        for row in rows:
            self.assertIs(row["trusted"], False, f"{row['name']} was not measured")
        named = {status: {row["name"] for row in rows if row["status"] == status}
                 for status in ("ok", "not judged", "skipped")}
        self.assertEqual(sum(map(len, named.values())), len(rows))
        self.assertEqual(named["ok"], JUDGED)
        self.assertEqual(named["not judged"], NOT_JUDGED)
        found = {row["name"]: row["detail"] for row in rows}
        self.assertNotIn("cupti_refused", found["first-captures"]["first-step"]["software"])
        self.assertGreater(found["allocator"]["out_of_memory_bert.pickle"]["refusals"], 0)
        handles = found["outside-memory"]["without_cupti"]["fp32"]["handles"]
        self.assertEqual(len(set(handles.values())), 2)
        self.assertTrue(found["predicted-steps"]["same_card"])

    def check_files(self, results):
        for name in (
            "diagnosis/first-step.tscope", "streams/bert-original-fp32.tscope",
            "streams/recordings/graph_capture_gpt.pickle", "streams/background/allocator.csv",
            "figures/products.json", "limits/sweep-3GiB.tscope",
            "limits/out-of-memory-3GiB.pickle",
            "limits/recordings/bert_flash.cupti", "limits/recordings/bert_flash.tscope",
        ):
            path = results / f"virtual-nvidia-h200-{name}"
            self.assertTrue(path.is_file(), path)
            self.assertGreater(path.stat().st_size, 100, path)

    def test_the_bundle_has_nothing_of_the_virtual_gpu(self):
        names = {path.name.removesuffix(".xz") for path in self.bundle.rglob("*")}
        self.assertIn("temposcope-worker", names)
        libraries = {name for name in names if ".so" in name}
        self.assertEqual(
            {name for name in libraries if "virtual" in name or "libcu" in name}, set()
        )

    def test_without_a_gpu_a_sentence_says_what_is_missing(self):
        command = [sys.executable, str(self.bundle / "gpu-check"), "run", "--out",
                   str(self.folder / "none"), "--only", "diagnosis"]
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertRegex(ran.stderr, "^gpu-check: .*; only the checks that need no GPU could run")
        document = json.loads((self.folder / "none" / "no-gpu-diagnosis.json").read_text())
        names = [row["name"] for row in document["rows"]]
        self.assertEqual(names, ["environment", "doctor"])


if __name__ == "__main__":
    unittest.main()
