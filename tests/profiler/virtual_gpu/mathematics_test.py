"""Ops of cuSOLVER, cuFFT, cuSPARSE and cuBLAS, and those that torch compiles, on a virtual GPU."""

import json
import pathlib
import sys
import unittest

from virtual_machine import machine_of, run

PROGRAM = pathlib.Path(__file__).parent / "mathematics_program.py"
FOLDER = pathlib.Path(sys.argv.pop(1))


class Mathematics(unittest.TestCase):
    def test_every_op_runs_and_asks_for_its_workspace(self):
        ran = run(FOLDER, machine_of("a100", 1), str(PROGRAM))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = json.loads(ran.stdout)
        self.assertEqual(told["failed"], {})
        self.assertEqual(told["workspace_of_fft"], 64 * 4096 * 8)


if __name__ == "__main__":
    unittest.main()
