"""The shell scripts parse, and shellcheck, if it is installed, reports nothing."""

import shutil
import subprocess
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


if __name__ == "__main__":
    unittest.main()
