"""The package as a wheel, in a fresh environment that has torch: its command, its recorder, its
ops, its virtual GPU. The wheel holds what is built already.

    wheel_test.py BIN_FOLDER
"""

import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import unittest
import zipfile

from commands import BIN, query

SOURCE = pathlib.Path(__file__).resolve().parents[2]

TRAIN = """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(4, 8, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(device)
"""


def clean_environment() -> dict:
    """Of a user who has nothing of ours in it, not even a build beside the wheel."""
    ours = ("PYTHONPATH", "TEMPOSCOPE", "LD_LIBRARY_PATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def checked(*command, **options) -> str:
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{command} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


@unittest.skipUnless(importlib.util.find_spec("scikit_build_core"), "needs scikit-build-core")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.wheel = cls.build()
        cls.python = cls.install()
        cls.temposcope = cls.python.parent / "temposcope"

    @classmethod
    def build(cls) -> pathlib.Path:
        glibc = platform.libc_ver()[1].replace(".", "_")
        settings = (
            f"cmake.define.TEMPOSCOPE_BUILT={BIN.parent}",
            f"build-dir={cls.folder}/build",
            f"wheel.tags=py3-none-manylinux_{glibc}_{platform.machine()}",  # as scripts/package
        )
        checked(
            sys.executable, "-m", "pip", "wheel", SOURCE, "--no-build-isolation", "--no-deps",
            "--no-index", "-w", cls.folder, *(f"-C{setting}" for setting in settings),
        )  # fmt: skip
        (wheel,) = cls.folder.glob("temposcope-*.whl")
        return wheel

    @classmethod
    def install(cls) -> pathlib.Path:
        """Into an environment that sees the packages of this one, so that nothing is downloaded:
        pip takes its torch for the one that the wheel requires."""
        environment = cls.folder / "environment"
        checked(sys.executable, "-m", "venv", "--without-pip", environment)
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        python = environment / "bin" / "python"
        checked(python, "-m", "pip", "install", "--no-index", cls.wheel, env=clean_environment())
        return python

    def run_command(self, *words, **environment):
        return subprocess.run(
            [self.temposcope, *words],
            capture_output=True, text=True, cwd=self.folder, env=clean_environment() | environment,
        )  # fmt: skip

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def assert_steps(self, name: str, steps: int):
        self.assertEqual(query(self.folder / name, "SELECT state FROM v_run"), [("complete",)])
        self.assertEqual(query(self.folder / name, "SELECT count(*) FROM step"), [(steps,)])

    def test_the_doctor_finds_the_worker_and_the_virtual_gpu(self):
        ran = self.run_command("doctor", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        report = json.loads(ran.stdout)
        self.assertTrue(report["can_capture"], report)
        found = {row["name"]: row["status"] for row in report["rows"]}
        self.assertEqual((found["worker"], found["simulated GPU"]), ("ok", "ok"), report)
        self.assertIn("window", found)

    def test_a_program_records_itself(self):
        program = self.write("itself.py", """
            import temposcope
            import torch

            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
            temposcope.swap(model, "tempo")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with temposcope.record("itself.tscope", model, optimizer):
                model(torch.randn(2, 8)).sum().backward()
                optimizer.step()
            print(temposcope.__file__)
            """)  # fmt: skip
        printed = checked(self.python, program, cwd=self.folder, env=clean_environment())
        self.assertTrue(printed.startswith(str(self.folder / "environment")), printed)
        self.assert_steps("itself.tscope", 1)

    def test_a_program_is_recorded(self):
        program = self.write("train.py", TRAIN)
        ran = self.run_command("run", "-o", "cpu.tscope", "--", self.python, program)
        self.assertEqual((ran.returncode, ran.stdout), (0, "cpu\n"), ran.stderr)
        self.assert_steps("cpu.tscope", 4)  # the first one, and three

    def test_a_program_runs_on_a_virtual_gpu(self):
        program = self.write("train.py", TRAIN)
        ran = self.run_command(
            "run", "--gpu", "h100-sxm", "-o", "gpu.tscope", "--", self.python, program
        )
        self.assertEqual((ran.returncode, ran.stdout), (0, "cuda\n"), ran.stderr)
        self.assert_steps("gpu.tscope", 4)

    def test_pytest_finds_its_plugin(self):
        ask = "import importlib.metadata as m; print(*m.entry_points(group='pytest11').names)"
        printed = checked(self.python, "-c", ask, env=clean_environment())
        self.assertIn("temposcope_pytest", printed.split())

    def test_another_torch_has_no_worker(self):
        self.write("other/torch/__init__.py", "")
        self.write("other/torch/version.py", "__version__ = '2.7.1+cu126'\ncuda = '12.6'\n")
        other = {"PYTHONPATH": str(self.folder / "other")}
        ran = self.run_command("doctor", "--json", **other)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        report = json.loads(ran.stdout)
        (worker,) = (row for row in report["rows"] if row["name"] == "worker")
        self.assertEqual(worker["status"], "missing")
        self.assertRegex(worker["remedy"], r"^this temposcope is built for .*, and torch 2\.7")
        self.assertFalse(report["can_capture"])
        ran = self.run_command("plan", "--model", "bert-base", "--gpu", "t4", **other)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("torch 2.7.1+cu126 is installed: run pip install", ran.stderr)

    def test_it_requires_a_torch_that_it_serves(self):
        """One with libraries for several versions says the oldest in TEMPOSCOPE_OLDEST_TORCH."""
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
            self.assertIn("Requires-Dist: torch==2.11.*\n", wheel.read(name).decode())
            places = [one for one in wheel.namelist() if one.endswith("/libtempo_kernels_cuda.so")]
        self.assertEqual(places, ["temposcope/bin/libtempo_kernels_cuda.so"])  # once


    def test_the_wheel_runs_where_its_name_says(self):
        """Its libraries and symbols; and it leaves the window's OpenGL to the machine, whose driver
        fits no other."""
        print(checked(sys.executable, SOURCE / "scripts" / "lib" / "check_wheel.py", self.wheel))
        names = [pathlib.Path(name).name for name in zipfile.ZipFile(self.wheel).namelist()]
        self.assertIn("temposcope-worker", names)
        self.assertLessEqual({"imgui.txt", "implot.txt", "glfw.txt"}, set(names))  # licences
        self.assertFalse([name for name in names if name.startswith(("libGL", "libOpenGL"))])

    def test_what_is_installed_is_stripped(self):
        """Without the tables of symbols, which only a debugger reads."""
        folder = next(self.python.parent.parent.glob("lib/python*/site-packages/temposcope/bin"))
        for name in ("temposcope", "libtempo_ops.so"):
            self.assertLess((folder / name).stat().st_size, (BIN / name).stat().st_size, name)

    def test_the_wheel_needs_no_library_of_debian(self):
        folder = next(self.python.parent.parent.glob("lib/python*/site-packages/temposcope/bin"))
        environment = clean_environment() | {"LD_TRACE_LOADED_OBJECTS": "1"}
        needed = checked(folder / "temposcope", env=environment).splitlines()
        elsewhere = {
            line.split()[0].split(".so")[0]
            for line in needed
            if "=>" in line and str(folder) not in line
        }
        self.assertLessEqual(elsewhere, {"libc", "libm", "libstdc++", "libgcc_s"})


if __name__ == "__main__":
    unittest.main()
