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
RECORDER = ROOT / "tools" / "gpu_check" / "record_allocator.py"


def replay(file, *options):
    """What `temposcope replay` says of a snapshot."""
    command = [PROGRAM, "replay", str(file), *options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Recordings(unittest.TestCase):
    def check(self, settings, *scenarios, judge=None):
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
                    (judge or self.judge)(file)

    def judge(self, file):
        found = self.judge_addresses(file)
        self.assertEqual(found["segment_event_matches"], found["segment_events"])

    def judge_addresses(self, file):
        found = replay(file)
        self.assertGreater(found["events"], 500)
        self.assertEqual(found["address_match_rate"], 1.0, found["first_difference"])
        self.assertTrue(found["final_state_matches"])
        return found

    def judge_collection(self, file):
        """A snapshot does not say which limit made the allocator collect garbage. With it, the
        simulator collects as torch did, from an empty allocator on: the second recording of the
        process begins beside the workspaces of the first."""
        self.judge_addresses(file)
        if file.stem.endswith("gpt"):
            return
        recorded, endless, limited = replay(file, "--memory-limit", "512MiB")["rows"]
        for figure in ("peak_reserved_bytes", "segments"):
            self.assertEqual(limited[figure], recorded[figure])
            self.assertGreater(endless[figure], recorded[figure])

    def test_steps_side_streams_and_memory_that_runs_out(self):
        self.check("", "eager", "side_streams", "out_of_memory")

    def test_expandable_segments(self):
        self.check("expandable_segments:True", "expandable_segments")

    def test_blocks_too_large_to_split(self):
        self.check("max_split_size_mb:32", "max_split_size")

    def test_sizes_rounded_to_a_part_of_a_power_of_two(self):
        self.check("roundup_power2_divisions:4", "power2_divisions")

    def test_garbage_collection(self):
        self.check(
            "garbage_collection_threshold:0.5", "garbage_collection", judge=self.judge_collection
        )


if __name__ == "__main__":
    unittest.main()
