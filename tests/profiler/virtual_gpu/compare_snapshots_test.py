"""tools/snapshots/compare-snapshots on small snapshots."""

import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools" / "snapshots" / "compare-snapshots"


def snapshot_of(sizes, segments):
    events = [{"action": "alloc", "size": size} for size in sizes]
    events += [{"action": "free_completed", "size": size} for size in sizes]
    return {
        "device_traces": [events],
        "segments": [{"total_size": size} for size in segments],
    }


class CompareSnapshots(unittest.TestCase):
    def run_on(self, *snapshots):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, snapshot in enumerate(snapshots):
                path = pathlib.Path(folder) / f"snapshot{number}.pickle"
                path.write_bytes(pickle.dumps(snapshot))
                paths.append(str(path))
            command = [sys.executable, str(SCRIPT), *paths]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_equal_snapshots(self):
        ran = self.run_on(snapshot_of([512, 1024], [2 << 20]), snapshot_of([512, 1024], [2 << 20]))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| 4 of 4 | 1, 2 MiB, the same sizes | equal |", ran.stdout)

    def test_segments_may_differ_and_peaks_may_not(self):
        same = snapshot_of([512], [2 << 20])
        ran = self.run_on(same, snapshot_of([512], [4 << 20]))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("2 / 4 MiB (+100.0%)", ran.stdout)
        ran = self.run_on(same, snapshot_of([1024], [2 << 20]))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("| 0 of 2 |", ran.stdout)
        self.assertIn("+512 B", ran.stdout)

    def test_a_pickle_that_names_a_class_is_refused(self):
        ran = self.run_on(pathlib.PurePosixPath("a"), snapshot_of([], []))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("names the class", ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
