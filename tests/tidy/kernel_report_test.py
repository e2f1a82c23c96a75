"""Tests of tools/kernel_report: what it says of wrong arguments, files and private folders. Its
model has tests in machine_code_test.py."""

import argparse
import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import repository

SCRIPT = repository.ROOT / "tools" / "kernel_report" / "kernel-report"
SKIPPED = 77
kernel_report = repository.load_script("kernel-report")


def report(*arguments, **environment):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True,
                          text=True, env=os.environ | environment)


class KernelReport(unittest.TestCase):
    def assert_refused(self, ran, status, sentence):
        """With one sentence, and nothing else is printed."""
        self.assertEqual(ran.returncode, status, ran.stderr)
        self.assertIn(sentence, ran.stderr)
        self.assertNotIn("Traceback", ran.stderr)
        self.assertEqual(ran.stdout, "")

    def test_gpus_that_are_not_modelled_are_refused_before_any_work(self):
        for name, why in (
            ("foo", "'foo' is not a GPU. Choose from "),
            ("h100-sxm,foo", "'foo' is not a GPU"),
            ("", "'' is not a GPU"),
            ("mi300x", "AMD Instinct MI300X cannot be modelled: its kernels"),
            ("jetson-orin", "cannot be modelled: its kernels share memory and power"),
            ("v100-16gb", "are not built for NVIDIA Tesla V100 SXM2 16 GB (compute capability"),
        ):
            with self.subTest(name):
                ran = report("--model", name)
                self.assert_refused(ran, 2, why)
                self.assertNotIn("Reading", ran.stderr)

    def test_what_it_prints_is_one_thing(self):
        for first, second in (("--check", ["--model", "h100-sxm"]), ("--markdown", ["--model"]),
                              ("--others", ["folder", "--check"]), ("--markdown", ["--check"])):
            with self.subTest((first, *second)):
                self.assert_refused(report(first, *second), 2, "not allowed with argument")

    def test_files_without_cuda_code(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("no code\n")
            for path, why in ((text, "contains no CUDA code"), (folder, "contains no CUDA code"),
                              (f"{folder}/none", "does not exist: run scripts/build first")):
                with self.subTest(path):
                    ran = report("--check", path)
                    if ran.returncode == SKIPPED:
                        self.skipTest("there is no cuobjdump")
                    self.assert_refused(ran, 1, f"{path} {why}")

    def test_without_a_private_folder_the_model_and_others_say_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments in (["--model", "h100-sxm"], ["--others", folder]):
                with self.subTest(arguments):
                    self.assert_refused(report(*arguments, TEMPOSCOPE_DEPS=folder), 1,
                                        f"missing in {folder}/venv: run scripts/setup first.")

    def test_the_model_runs_with_the_private_folders_python(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "venv" / "bin" / "python3"
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/sh\necho "$@"\n')
            python.chmod(0o755)
            broken = report("--model", "h100-sxm", TEMPOSCOPE_DEPS=folder)
            self.assert_refused(broken, 1, f"missing in {folder}/venv: run scripts/setup first.")
            (python.parents[1] / "pyvenv.cfg").touch()
            ran = report("--model", "h100-sxm", TEMPOSCOPE_DEPS=folder)
            self.assertEqual((ran.returncode, ran.stdout), (0, f"{SCRIPT} --model h100-sxm\n"))

    def test_a_folder_without_other_libraries_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = report("--others", folder)
            if ran.returncode == SKIPPED or "run scripts/setup" in ran.stderr:
                self.skipTest("there is no cuobjdump or no private folder")
            if f"{kernel_report.LIBRARY} does not exist" in ran.stderr:
                self.skipTest("the CUDA kernels are not built")
            self.assert_refused(ran, 1, f"{folder} lacks the sources of linkedin/Liger-Kernel, "
                                "Dao-AILab/flash-attention, NVIDIA/apex: clone them there")

    def test_a_reader_that_has_read_enough_gets_no_traceback(self):
        if not kernel_report.LIBRARY.exists() or kernel_report.find_cuobjdump() is None:
            self.skipTest("the CUDA kernels are not built, or there is no cuobjdump")
        with subprocess.Popen([sys.executable, SCRIPT], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as ran:
            ran.stdout.close()
            said = ran.stderr.read()
        self.assertEqual(ran.returncode, -signal.SIGPIPE)
        self.assertRegex(said, r"^Reading the registers and stacks of .* \.\.\.\n$")


class Architectures(unittest.TestCase):
    def test_a_gpu_runs_the_newest_code_of_its_generation(self):
        for capability, wanted in (("7.5", "sm_75"), ("8.0", "sm_80"), ("8.6", "sm_80"),
                                   ("8.7", "sm_80"), ("9.0", "sm_90"), ("10.3", "sm_100"),
                                   ("12.0", "sm_120"), ("7.0", None), ("6.1", None), (None, None)):
            with self.subTest(capability):
                self.assertEqual(kernel_report.architecture_of(capability), wanted)

    def test_they_are_those_of_the_build(self):
        """Of a package; of scripts/build some of them."""
        def listed(which):
            found = re.search(rf'set\(_{which}_architectures "([^"]*)"',
                              repository.read_text("cmake/deps/Torch.cmake"))[1]
            return tuple("sm_" + one.removesuffix("-real") for one in found.split(";"))

        self.assertEqual(kernel_report.BUILT, listed("all"))
        self.assertLess(set(listed("common")), set(kernel_report.BUILT))

    def test_the_oldest_has_the_smallest_number(self):
        self.assertEqual(kernel_report.read_for_stores({"sm_100", "sm_120", "sm_86"}), "sm_86")
        self.assertEqual(kernel_report.read_for_stores({"sm_100", "sm_80", "sm_90"}), "sm_90")

    def test_a_check_without_a_budget_never_passes(self):
        self.assertEqual(kernel_report.budgeted({"sm_100", "sm_86", "sm_90"}), ["9.0", "10.0"])
        arguments = argparse.Namespace(library="x", check=True, model=None, others=None,
                                       markdown=False)
        for present, narrow, status in (
            ({"sm_86"}, [], SKIPPED),
            ({"sm_86"}, ["A sentence."], 1),
            ({"sm_86", "sm_90"}, [], 0),
        ):
            known = {
                "check_library": lambda *_: None,
                "compiled_for": lambda *_, present=present: present,
                "read_usage": lambda *_: {},
                "library_of": lambda *_: None,
                "narrow_stores": lambda *_, narrow=narrow: narrow,
            }
            with (
                self.subTest((present, narrow)),
                unittest.mock.patch.multiple(kernel_report, **known),
                unittest.mock.patch.object(kernel_report.kernel_model, "over_budget",
                                           lambda *_: []),
                contextlib.redirect_stdout(io.StringIO()) as printed,
                contextlib.redirect_stderr(io.StringIO()),
            ):
                self.assertEqual(kernel_report.report(arguments, "cuobjdump"), status)
                self.assertEqual("skipped: x has no" in printed.getvalue(), status == SKIPPED)

    def test_a_gpu_that_the_library_has_no_code_for_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            lists = pathlib.Path(folder) / "cuobjdump"
            lists.write_text("#!/bin/sh\necho ELF file 1: x.1.sm_80.cubin\n"
                             "echo ELF file 2: x.2.sm_90.cubin\n")
            lists.chmod(0o755)
            self.assertEqual(kernel_report.compiled_for(lists, "x"), {"sm_80", "sm_90"})
            with self.assertRaises(SystemExit) as ended:
                kernel_report.print_model(lists, "x", kernel_report.gpus_of("a100-80gb,b200"))
        self.assertRegex(str(ended.exception), "^x has no machine code for .*B200.*: run "
                         "scripts/build --all-architectures first.$")


if __name__ == "__main__":
    unittest.main()
