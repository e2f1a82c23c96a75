"""Programs that were recorded on an H200 ask the allocator for the same on a virtual one.

    recorded_programs_test.py FOLDER_OF_THE_LIBRARIES
"""

import lzma
import pathlib
import subprocess
import sys
import tempfile
import unittest

from virtual_machine import h200, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORDINGS = ROOT / "tests" / "golden" / "cuda" / "programs"
FOLDER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


class RecordedPrograms(unittest.TestCase):
    def test_each_event_and_the_peak_are_equal(self):
        files = sorted(RECORDINGS.glob("*.pickle.xz"))
        self.assertEqual(len(files), 3)
        for file in files:
            program = file.name.removesuffix(".pickle.xz")
            with self.subTest(program), tempfile.TemporaryDirectory() as folder:
                self.compare(file, program, pathlib.Path(folder))

    def compare(self, file, program, folder):
        script = str(ROOT / "tools" / "gpu_check" / "program_steps.py")
        packages = str(FOLDER.parent / "python")
        ran = run(FOLDER, h200(), script, packages, str(folder), program)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        recorded = folder / "recorded.pickle"
        recorded.write_bytes(lzma.decompress(file.read_bytes()))
        command = [str(ROOT / "tools" / "snapshots" / "compare-snapshots"), str(recorded)]
        found = subprocess.run(
            [sys.executable, *command, str(folder / f"{program}.pickle")],
            capture_output=True, text=True, check=False,
        )
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertIn("the same sizes", found.stdout)  # of the segments


if __name__ == "__main__":
    unittest.main()
