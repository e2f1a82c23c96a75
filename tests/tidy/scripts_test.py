"""The shell scripts parse, shellcheck reports nothing if it is installed, and scripts/setup changes
nothing where nothing is missing."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

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
        for path in ("scripts/setup", "scripts/build", "scripts/test", "scripts/demo", ".ci/run"):
            self.assertIn(path, shell_scripts())

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


if __name__ == "__main__":
    unittest.main()
