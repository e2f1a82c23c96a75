"""The shell scripts parse, shellcheck reports nothing if it is installed, and scripts/setup changes
nothing where nothing is missing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import repository


def shell_scripts() -> list[str]:
    return [
        path
        for path in repository.files()
        if path.startswith(("scripts/", ".ci/"))
        and (repository.read_text(path) or "").startswith("#!/usr/bin/env bash")
        or path.endswith(".sh")
    ]


class Scripts(unittest.TestCase):
    def test_the_scripts_are_found(self):
        found = shell_scripts()
        for path in ("setup", "build", "test", "package", "demo"):
            self.assertIn(f"scripts/{path}", found)
        self.assertIn(".ci/run", found)

    def test_they_parse(self):
        for path in shell_scripts():
            with self.subTest(path):
                result = subprocess.run(
                    ["bash", "-n", path], cwd=repository.ROOT, capture_output=True, text=True
                )
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_shellcheck(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed (apt-get install shellcheck)")
        result = subprocess.run(
            ["shellcheck", *shell_scripts()], cwd=repository.ROOT, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, "\n" + result.stdout)


# A private folder that looks complete, and a machine that has all packages.
COMPLETE_FOLDER = r"""
source scripts/lib/packages.sh
cd "$1"
site=venv/lib/python3.12/site-packages
mkdir -p tools venv/bin "imgui_bundle-$IMGUI_BUNDLE_VERSION" $site/torch/lib $site/nvidia/cu13/lib64
printf '#!/bin/sh\n' | tee venv/bin/cmake venv/bin/ninja venv/bin/python3 >/dev/null
printf '#!/bin/sh\nshift 3\nprintf "installed %%s\\n" "$@"\n' >tools/dpkg-query
touch "imgui_bundle-$IMGUI_BUNDLE_VERSION/PKG-INFO" $site/torch/lib/libtorch_cpu.so
touch $site/nvidia/cu13/lib64/libcudart.so
sha256sum <<<"${PYTHON_PACKAGES[*]} $IMGUI_BUNDLE_VERSION" | cut -d' ' -f1 >stamp
chmod -R a+rX,a-w . && chmod a+x venv/bin/* tools/*
"""


class SharedFolder(unittest.TestCase):
    """A private folder that another user owns. Root may write everywhere, so it becomes another."""

    def set_up(self, folder: str, *arguments: str) -> subprocess.CompletedProcess:
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        path = f"{folder}/tools:{os.environ['PATH']}"
        return subprocess.run(
            ["scripts/setup", *arguments],
            cwd=repository.ROOT,
            env={"PATH": path, "HOME": "/nonexistent", "TEMPOSCOPE_DEPS": folder},
            capture_output=True,
            text=True,
            **user,
        )

    def test_it_is_only_read(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["bash", "-euc", COMPLETE_FOLDER, "make", folder], cwd=repository.ROOT, check=True
            )
            ran = self.set_up(folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("everything is in place", ran.stdout)
            lacking = self.set_up(folder, "--tests")
            self.assertEqual(lacking.returncode, 1)
            self.assertIn("lacks parts and cannot be written; let its owner run", lacking.stderr)
            for path in pathlib.Path(folder).rglob("*"):
                if path.is_dir():
                    path.chmod(0o700)
            pathlib.Path(folder).chmod(0o700)


# Programs of a private folder that only say what they were asked for: CMake builds nothing, and pip
# packs one file.
FAKE_PROGRAMS = {
    "cmake": 'echo "cmake $*" >>"$LOG"; case $* in *--preset*) touch build/build.ninja ;; esac\n',
    "ninja": "",
    "ctest": 'echo "ctest $*" >>"$LOG"\n',
    "python3": r"""
echo "python3 $*" >>"$LOG"
while [ $# -gt 0 ]; do
    case $1 in
        -w) touch "$2/temposcope-$MADE_VERSION-py3-none-any.whl" ;;
        -c) touch "$3/temposcope-$MADE_VERSION.tar.gz" ;;
    esac
    shift
done
""",
}


class Steps(unittest.TestCase):
    """The scripts in a folder of their own, with programs that do nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copytree(repository.ROOT / "scripts", self.folder / "scripts")
        shutil.copy(repository.ROOT / "CMakeLists.txt", self.folder)
        (self.folder / "scripts" / "setup").write_text("#!/bin/sh\n")
        (self.folder / "build").mkdir()
        (self.folder / "venv" / "bin").mkdir(parents=True)
        for name, text in FAKE_PROGRAMS.items():
            program = self.folder / "venv" / "bin" / name
            program.write_text("#!/bin/sh\n" + text)
            program.chmod(0o755)

    def ran(self, *command: str, version: str = "") -> subprocess.CompletedProcess:
        environment = os.environ | {
            "TEMPOSCOPE_DEPS": str(self.folder),
            "LOG": str(self.folder / "log"),
            "MADE_VERSION": version or repository.version(),
        }
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )

    def asked(self) -> str:
        return (self.folder / "log").read_text()

    def test_each_step_says_how_long_the_next_one_takes(self):
        for script, next_step in (
            ("build", "Next: build of the programs, about 8 minutes on two idle cores.\n"),
            ("test", "Next: the tests that answer quickly, about 10 minutes on two idle cores.\n"),
            ("package", "Next: wheel and source package, about 1 minute on two idle cores.\n"),
        ):
            with self.subTest(script):
                ran = self.ran(f"scripts/{script}")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn(next_step, ran.stdout)

    def test_a_second_build_says_that_it_builds_what_has_changed(self):
        program = self.folder / "build" / "bin" / "temposcope"
        program.parent.mkdir()
        program.touch(mode=0o755)
        self.assertIn("Next: build of what has changed", self.ran("scripts/build").stdout)

    def test_a_build_for_all_gpus_is_configured_once(self):
        self.assertEqual(self.ran("scripts/build").returncode, 0)
        self.assertNotIn("TEMPOSCOPE_ALL_ARCHITECTURES", self.asked())
        cache = (
            f"TEMPOSCOPE_DEPS:PATH={self.folder}\nTEMPOSCOPE_TORCH_DIR:PATH={self.folder}\n"
            "TEMPOSCOPE_ALL_ARCHITECTURES:BOOL="
        )
        for before, configures in (("OFF", 1), ("ON", 0)):
            (self.folder / "build" / "CMakeCache.txt").write_text(cache + before + "\n")
            (self.folder / "log").unlink()
            self.assertEqual(self.ran("scripts/build", "--all-architectures").returncode, 0)
            found = self.asked().count("--preset release -DTEMPOSCOPE_ALL_ARCHITECTURES=ON")
            self.assertEqual(found, configures, self.asked())

    def test_a_package_is_for_all_gpus_and_has_checksums(self):
        ran = self.ran("scripts/package")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("-DTEMPOSCOPE_ALL_ARCHITECTURES=ON", self.asked())
        self.assertRegex(self.asked(), r"wheel\.tags=py3-none-manylinux_2_\d+_x86_64\b")
        dist = self.folder / "dist"
        names = sorted(path.name for path in dist.iterdir())
        name = f"temposcope-{repository.version()}"
        self.assertEqual(names, ["SHA256SUMS", f"{name}-py3-none-any.whl", f"{name}.tar.gz"])
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
        self.assertIn(f"dist/{name}.tar.gz: 0 MB\n", ran.stdout)

    def test_a_package_of_another_version_is_refused(self):
        ran = self.ran("scripts/package", version="9.9.9")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("the wheel does not have the version", ran.stderr)
        self.assertFalse((self.folder / "dist").exists())


class CopiedLibraries(unittest.TestCase):
    """cmake/copy_libraries.cmake, for one library that needs another."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "two.c").write_text("int two(void) { return 2; }\n")
        (self.folder / "one.c").write_text(
            "int two(void);\nint one(void) { return two() - 1; }\n"
        )
        make = ["gcc", "-shared", "-fPIC", "-o"]
        subprocess.run([*make, "libtwo.so", "two.c"], cwd=self.folder, check=True)
        found = [f"-L{self.folder}", "-l:libtwo.so", f"-Wl,-rpath,{self.folder}"]
        subprocess.run([*make, "libone.so", "one.c", *found], cwd=self.folder, check=True)
        (self.folder / "bin").mkdir()

    def packages(self) -> list[str]:
        """Those of this machine that have a licence."""
        found = [path.parent.name for path in pathlib.Path("/usr/share/doc").glob("*/copyright")]
        if len(found) < 2:
            self.skipTest("this machine has no licences of packages")
        return found

    def copied(self, owner: str, carried: str) -> subprocess.CompletedProcess:
        """`owner`: the package of the second library, or "" if no package has it."""
        query = self.folder / "dpkg-query"
        answer = f"echo {owner}: /usr/lib/libtwo.so" if owner else "exit 1"
        query.write_text(f"#!/bin/sh\n{answer}\n")
        query.chmod(0o755)
        options = {
            "files": self.folder / "libone.so",
            "destination": self.folder / "bin",
            "licences": self.folder / "licences",
            "carried": carried,
        }
        command = [os.environ["CMAKE"], *(f"-D{name}={value}" for name, value in options.items())]
        return subprocess.run(
            [*command, "-P", repository.ROOT / "cmake" / "copy_libraries.cmake"],
            env=os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )

    def test_each_licence_is_copied(self):
        packages = self.packages()[:2]
        ran = self.copied(*packages)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue((self.folder / "bin" / "libtwo.so").exists())
        names = sorted(path.stem for path in (self.folder / "licences").iterdir())
        self.assertEqual(names, sorted(packages))

    def test_a_missing_licence_is_an_error(self):
        for owner, carried, what in (
            ("", "", f"{self.folder}/libtwo.so"),
            ("no-such-package", "", "no-such-package"),
            (self.packages()[0], "no-such-package", "no-such-package"),
        ):
            with self.subTest((owner, carried)):
                ran = self.copied(owner, carried)
                self.assertNotEqual(ran.returncode, 0)
                said = " ".join(ran.stderr.split())
                self.assertIn(f"no licence of {what} was found: ", said)


class CheckedWheel(unittest.TestCase):
    """scripts/lib/check_wheel.py, with wheels that hold one small library."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, name: str, *options: str) -> pathlib.Path:
        """It calls getrandom, which is of glibc 2.25."""
        (self.folder / "library.c").write_text(
            "int getrandom(void*, unsigned long, int);\n"
            "int f(void* p) { return getrandom(p, 1, 0); }\n"
        )
        made = self.folder / name
        command = ["g++", "-x", "c", "-shared", "-fPIC", "-o", made, "library.c", *options]
        subprocess.run(command, cwd=self.folder, check=True)
        return made

    def said(self, tag: str, *libraries: pathlib.Path) -> str:
        wheel = self.folder / f"temposcope-1-py3-none-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr("temposcope/text", "no program")
            for library in libraries:
                packed.write(library, f"temposcope/bin/{library.name}")
        command = [sys.executable, "scripts/lib/check_wheel.py", wheel]
        ran = subprocess.run(command, cwd=repository.ROOT, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0 if ran.stdout else 1, ran.stderr)
        return ran.stdout or ran.stderr

    def test_one_that_is_as_its_name_says(self):
        said = self.said("manylinux_2_25_x86_64", self.library("libone.so"))
        self.assertIn("1 programs and libraries need glibc 2.25, ", said)

    def test_one_that_needs_a_newer_glibc(self):
        said = self.said("manylinux_2_17_x86_64", self.library("libone.so"))
        self.assertEqual(said, "libone.so needs glibc 2.25, and the wheel's name says 2.17.\n")

    def test_one_without_a_library_that_it_needs(self):
        needed = self.library("libtwo.so")
        one = self.library("libone.so", "-Wl,--no-as-needed", "-L.", "-l:libtwo.so")
        self.assertIn("2 programs", self.said("manylinux_2_36_x86_64", one, needed))
        said = self.said("manylinux_2_36_x86_64", one)
        self.assertEqual(said, "libone.so needs libtwo.so, which the wheel lacks.\n")

    def test_one_that_looks_for_libraries_elsewhere(self):
        own = self.library("libone.so", "-Wl,-rpath,$ORIGIN/../lib")
        self.assertIn("1 programs", self.said("manylinux_2_36_x86_64", own))
        other = self.library("libone.so", "-Wl,-rpath,/opt/build:$ORIGIN")
        said = self.said("manylinux_2_36_x86_64", other)
        self.assertEqual(said, "libone.so looks for libraries in /opt/build.\n")

    def test_one_without_programs_or_without_a_glibc_in_its_name(self):
        self.assertIn("holds no programs", self.said("manylinux_2_36_x86_64"))
        said = self.said("linux_x86_64", self.library("libone.so"))
        self.assertIn("does not name the glibc", said)


if __name__ == "__main__":
    unittest.main()
