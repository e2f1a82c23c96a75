"""Which of the compiled libraries a program gets: those for its torch, or a sentence.

    library_test.py BIN_FOLDER
"""

import pathlib
import tempfile
import unittest

import commands  # noqa: F401  takes the folder out of the arguments

from temposcope import _library


class Library(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = pathlib.Path(folder.name)

    def make(self, *names):
        for name in names:
            (self.base / name).mkdir()
            (self.base / name / "libtempo_ops.so").touch()

    def refusal(self, installed, simulated=False):
        with self.assertRaises(ImportError) as raised:
            _library._folder_for(installed, _library._folders(self.base), simulated)
        return str(raised.exception)

    def chosen(self, installed, simulated=False):
        folders = _library._folders(self.base)
        return _library._folder_for(installed, folders, simulated).relative_to(self.base)

    def test_the_libraries_are_those_of_the_torch_that_is_imported(self):
        self.make("torch-2.8", "torch-2.15")
        self.assertEqual(self.chosen("2.11.0"), pathlib.Path("."))
        self.assertEqual(self.chosen("2.8.0"), pathlib.Path("torch-2.8"))
        self.assertEqual(self.chosen("2.15.1"), pathlib.Path("torch-2.15"))

    def test_a_build_may_be_for_another_torch(self):
        (self.base / "torch_version").write_text("2.13\n")
        self.assertEqual(self.chosen("2.13.0"), pathlib.Path("."))
        self.assertIn("built for torch 2.13, and torch 2.11.0 is installed", self.refusal("2.11.0"))

    def test_a_torch_without_libraries_is_refused_with_the_versions_that_there_are(self):
        self.make("torch-2.15", "torch-2.8")
        (self.base / "torch-2.9").mkdir()  # left by a build that was interrupted
        self.assertEqual(
            self.refusal("2.9.1"),
            "this temposcope is built for torch 2.8 and 2.11 and 2.15, and torch 2.9.1 is "
            "installed: run pip install 'torch==2.11.*', or build Temposcope with your torch",
        )

    def test_a_simulated_gpu_is_for_the_torch_of_the_build(self):
        self.make("torch-2.15")
        self.assertEqual(self.chosen("2.11.0", simulated=True), pathlib.Path("."))
        self.assertEqual(
            self.refusal("2.15.0", simulated=True),
            "a simulated GPU needs torch 2.11, and torch 2.15.0 is installed: leave out --gpu, or "
            "run pip install 'torch==2.11.*'",
        )


if __name__ == "__main__":
    unittest.main()
