"""The allocator's recordings of gpu-check, made on a virtual GPU: the simulator must replay each
with every address and segment.

    allocator_recordings_test.py FOLDER_OF_THE_LIBRARIES TEMPOSCOPE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from virtual_machine import machine_of, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = str(sys.argv.pop(2)) if len(sys.argv) > 2 else None
FOLDER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
RECORDER = ROOT / "scripts" / "lib" / "record_allocator.py"


class Recordings(unittest.TestCase):
    def check(self, settings, *scenarios):
        with tempfile.TemporaryDirectory() as folder:
            ran = run(
                FOLDER,
                machine_of("2080ti", 1),
                str(RECORDER),
                folder,
                *scenarios,
                PYTORCH_CUDA_ALLOC_CONF=settings,
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            files = sorted(pathlib.Path(folder).glob("*.pickle"))
            self.assertEqual(len(files), 2 * len(scenarios))
            for file in files:
                with self.subTest(file.name):
                    self.check_replay(file)

    def check_replay(self, file):
        command = [PROGRAM, "replay", str(file), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        replay = json.loads(done.stdout)
        self.assertGreater(replay["events"], 500)
        self.assertEqual(replay["address_match_rate"], 1.0, replay["first_difference"])
        self.assertEqual(replay["segment_event_matches"], replay["segment_events"])
        self.assertTrue(replay["final_state_matches"])

    def test_steps_side_streams_and_memory_that_runs_out(self):
        self.check("", "eager", "side_streams", "out_of_memory")

    def test_expandable_segments(self):
        self.check("expandable_segments:True", "expandable_segments")

    def test_blocks_too_large_to_split(self):
        self.check("max_split_size_mb:32", "max_split_size")


if __name__ == "__main__":
    unittest.main()
