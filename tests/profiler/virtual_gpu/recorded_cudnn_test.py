"""What cuDNN requested on an H200, beside what the virtual one requests.

    recorded_cudnn_test.py FOLDER_OF_THE_LIBRARIES
"""

import collections
import json
import lzma
import pathlib
import sys
import unittest

from virtual_machine import h200, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORDINGS = ROOT / "tests" / "golden" / "cuda"
FOLDER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


def rows_by_shape(text):
    """Shape -> what forward and backward requested."""
    rows = map(json.loads, text.splitlines())
    return {
        tuple(value for key, value in row.items() if key not in ("forward", "backward")): row
        for row in rows
    }


class RecordedCudnn(unittest.TestCase):
    def pairs_of(self, part):
        """The recorded and the virtual row of each shape that was recorded."""
        script = str(ROOT / "tools" / "gpu_check" / "cudnn_memory.py")
        ran = run(FOLDER, h200(), script, part)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        virtual = rows_by_shape(ran.stdout)
        recorded = lzma.decompress((RECORDINGS / f"cudnn-{part}.jsonl.xz").read_bytes()).decode()
        return [(row, virtual[shape]) for shape, row in rows_by_shape(recorded).items()]

    def count_equal_passes(self, pairs):
        return sum(
            collections.Counter(recorded[name]) == collections.Counter(virtual[name])
            for recorded, virtual in pairs for name in ("forward", "backward")
        )

    def test_attention(self):
        pairs = self.pairs_of("attention")
        self.assertEqual(len(pairs), 30)
        self.assertEqual(self.count_equal_passes(pairs), 60)

    def test_convolutions(self):
        pairs = self.pairs_of("convolutions")
        self.assertEqual(len(pairs), 128)
        self.assertGreaterEqual(self.count_equal_passes(pairs), 99)

    def test_what_recurrent_layers_keep_for_backward(self):
        pairs = self.pairs_of("recurrent")
        self.assertEqual(len(pairs), 96)
        for recorded, virtual in pairs:
            self.assertEqual(recorded["forward"][-1], virtual["forward"][-1], recorded)


if __name__ == "__main__":
    unittest.main()
