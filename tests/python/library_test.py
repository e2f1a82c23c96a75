"""Which of the compiled libraries a program gets: those for its torch, or a sentence.

    library_test.py BIN_FOLDER
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import commands  # noqa: F401  takes the folder out of the arguments

from temposcope import _torch_folders as folders


class Library(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.base = self.root / "build/bin"
        self.base.mkdir(parents=True)

    def make(self, *names):
        for name in names:
            (self.base / f"torch-{name}").mkdir()
            (self.base / f"torch-{name}/torch_version").write_text(f"{name}\n")

    def torch(self, version, cuda="13.0"):
        return folders.Torch(version, cuda, self.root / "torch")

    def refusal(self, version, cuda="13.0"):
        with self.assertRaises(ImportError) as raised:
            folders.folder_for(self.torch(version, cuda), self.base)
        return str(raised.exception)

    def chosen(self, version, cuda="13.0"):
        folder = folders.folder_for(self.torch(version, cuda), self.base)
        return str(folder.relative_to(self.base))

    def test_the_libraries_are_those_of_the_torch_that_is_imported(self):
        self.make("2.8", "2.15")
        self.assertEqual(self.chosen("2.11.0+cu130"), ".")
        self.assertEqual(self.chosen("2.8.0+cu128", "12.8"), "torch-2.8")
        self.assertEqual(self.chosen("2.15.1"), "torch-2.15")

    def test_a_nightly_gets_those_of_its_version(self):
        self.make("2.16")
        self.assertEqual(self.chosen("2.16.0.dev20261130+cu132"), "torch-2.16")

    def test_a_torch_without_cuda_gets_either(self):
        self.make("2.14", "2.15-cpu")
        self.assertEqual(self.chosen("2.14.0+cpu", None), "torch-2.14")
        self.assertEqual(self.chosen("2.15.0+cpu", None), "torch-2.15-cpu")
        self.assertIn("torch 2.15.0 is installed", self.refusal("2.15.0"))

    def test_a_build_may_be_for_another_torch(self):
        (self.base / "torch_version").write_text("2.13\n")
        self.assertEqual(self.chosen("2.13.0"), ".")
        self.assertIn("built for torch 2.13, and torch 2.11.0 is installed", self.refusal("2.11.0"))

    def test_a_torch_without_libraries_is_refused_with_the_versions_that_there_are(self):
        self.make("2.15", "2.8")
        # Left by a build that was interrupted.
        (self.base / "torch-2.9").mkdir()
        (self.base / "torch-2.9/libtempo_ops.so").touch()
        self.assertEqual(
            self.refusal("2.9.1"),
            "this temposcope is built for torch 2.8, 2.11 and 2.15, and torch 2.9.1 is "
            "installed: run pip install 'torch==2.15.*', or in a checkout "
            "scripts/build --torch 2.9",
        )
        self.assertTrue(self.refusal("2.6.0").endswith("run pip install 'torch==2.15.*'"))

    # ---- built at first use -------------------------------------------------------------------

    def make_checkout(self, script):
        (self.root / "torch/include/ATen").mkdir(parents=True)
        (self.root / "scripts").mkdir()
        (self.root / "scripts/build").write_text(f"#!/bin/sh\n{script}\n")
        (self.root / "scripts/build").chmod(0o755)

    def test_only_a_checkout_builds_for_a_torch_with_headers(self):
        torch = self.torch("2.16.0")
        self.assertFalse(folders.can_build_for(torch, self.base), "no checkout")
        self.make_checkout("true")
        self.assertTrue(folders.can_build_for(torch, self.base))
        self.assertFalse(folders.can_build_for(self.torch("2.7.1"), self.base), "too old")
        (self.root / "torch/include/ATen").rmdir()
        self.assertFalse(folders.can_build_for(torch, self.base), "no headers")

    def test_the_first_use_builds_once_and_says_so(self):
        out = self.base / "torch-2.16"
        self.make_checkout(
            f'echo "$@" >>{self.root}/calls; env | grep -c LD_PRELOAD >>{self.root}/calls; '
            f"mkdir -p {out}; echo 2.16 >{out}/torch_version"
        )
        program = (
            "import pathlib, sys; from temposcope import _torch_folders as f;"
            f"torch = f.Torch('2.16.0', '13.2', pathlib.Path('{self.root}/torch'));"
            f"[f.build_for(torch, pathlib.Path('{self.base}')) for _ in range(2)]"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        self.assertRegex(done.stderr, r"building its libraries for torch 2\.16\.0, once")
        self.assertEqual(done.stderr.count("\n"), 2, done.stderr)
        calls = (self.root / "calls").read_text().splitlines()
        self.assertEqual(calls, [f"--only-torch {self.root}/torch", "0"])
        self.assertEqual(self.chosen("2.16.0"), "torch-2.16")

    def test_a_build_that_fails_names_its_log(self):
        self.make_checkout("echo no compiler; exit 1")
        torch, sentence = self.torch("2.16.0"), r"torch-2\.16\.0\.failed says: fix that and remove"
        self.assertTrue(folders.can_build_for(torch, self.base))
        with self.assertRaisesRegex(folders.NoLibraries, sentence):
            folders.build_for(torch, self.base)
        self.assertEqual((self.base / "torch-2.16.0.failed").read_text(), "no compiler\n")
        self.assertFalse(folders.can_build_for(torch, self.base), "it is not tried again")
        self.assertRegex(self.refusal("2.16.0"), sentence)

    def test_without_a_compiler_nothing_is_built(self):
        self.make_checkout("true")
        with unittest.mock.patch.dict(os.environ, {"CXX": "no-such-compiler"}):
            self.assertFalse(folders.can_build_for(self.torch("2.16.0"), self.base))

    # ---- for doctor ---------------------------------------------------------------------------

    def test_the_torch_of_this_python_is_found_without_importing_it(self):
        found = folders.find_torch()
        self.assertRegex(found.version, r"^2\.\d+\.\d+")
        self.assertTrue((found.folder / "lib/libtorch_cpu.so").is_file())
        self.assertEqual(folders.answer()["tested_on"], folders.TESTED.get(found.minor, ""))


if __name__ == "__main__":
    unittest.main()
