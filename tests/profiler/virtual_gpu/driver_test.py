"""The driver's modules, contexts, errors and times, as a C program sees them on a virtual GPU.

Run by ctest: `driver_test.py FOLDER`, with the folder of the virtual GPU's libraries.
"""

import json
import pathlib
import sys
import unittest

import virtual_machine

HERE = pathlib.Path(__file__).resolve().parent
INVALID_VALUE, INVALID_IMAGE, INVALID_CONTEXT, NO_BINARY, FILE_NOT_FOUND = 1, 200, 201, 209, 301
INVALID_HANDLE, NOT_FOUND, OUT_OF_RESOURCES, NOT_SUPPORTED = 400, 500, 701, 801


class Driver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        machine = virtual_machine.machine_of("h100")
        machine["devices"][0] |= {
            "clock_khz": 1_590_000, "memory_clock_khz": 5_001_000, "memory_bus_bits": 256
        }  # fmt: skip
        cls.ran = virtual_machine.run(FOLDER, machine, HERE / "driver_program.py", HERE / "cubins")
        assert cls.ran.returncode == 0, cls.ran.stderr
        cls.found = json.loads(cls.ran.stdout)

    def test_kernels_have_the_resources_of_their_cubin(self):
        kernels = self.found["kernels"]
        self.assertEqual(kernels["load"], 0)
        self.assertEqual(kernels["add_neighbour"], [14, 512, 0, 128])
        self.assertEqual(kernels["with_stack"], [8, 0, 400, 1024])
        self.assertTrue(kernels["one kernel for a name"])
        self.assertEqual(kernels["blocks"], 16)  # of 2048 threads
        self.assertEqual((kernels["variable"], kernels["bytes of the variable"]), (0, 64))

    def test_launches_that_a_card_refuses_are_refused(self):
        kernels = self.found["kernels"]
        self.assertEqual(
            kernels["launches"], [0, OUT_OF_RESOURCES, INVALID_VALUE, 0, INVALID_VALUE]
        )
        self.assertEqual(kernels["shared"], [0, INVALID_VALUE])

    def test_kernels_outlive_their_module(self):
        kernels = self.found["kernels"]
        self.assertEqual(kernels["no kernel"], NOT_FOUND)
        self.assertEqual(kernels["unload"], [0, INVALID_HANDLE])
        self.assertEqual(kernels["launch after unload"], 0)

    def test_a_library_is_a_module_for_all_devices(self):
        self.assertEqual(self.found["library"], [0, [8, 0, 400, 1024], 8, 4, True, 0])

    def test_what_is_no_code_for_the_card_is_refused(self):
        self.assertEqual(self.found["bad images"], {
            "no such file": FILE_NOT_FOUND, "another generation": NO_BINARY, "cut": INVALID_IMAGE,
            "sections far behind": INVALID_IMAGE, "text": INVALID_IMAGE, "null": INVALID_VALUE,
            "ptx": [0, 0, NOT_FOUND]})  # fmt: skip

    def test_a_missing_function_is_an_error_with_a_sentence(self):
        refusals = self.found["refusals"]
        self.assertEqual(refusals["driver"][:2], [NOT_SUPPORTED] * 2)
        self.assertIn("does not have device attribute 9999", refusals["driver"][2])
        self.assertEqual(refusals["runtime"], [NOT_SUPPORTED, NOT_SUPPORTED, 0])
        self.assertIn("does not have device attribute 9999", refusals["sentence"])
        self.assertEqual(refusals["status"], 15)  # CUBLAS_STATUS_NOT_SUPPORTED
        self.assertIn("does not have cublasLtLoggerSetLevel", self.ran.stderr)

    def test_contexts_are_pushed_and_popped(self):
        self.assertEqual(
            self.found["contexts"], [0, 1 << 25, 0, 1, True, 0, INVALID_CONTEXT, 9, 0]
        )

    def test_a_card_has_its_clocks_and_bus(self):
        self.assertEqual(self.found["speeds"], [1_590_000, 5_001_000, 256])

    def test_managed_memory_takes_nothing_of_the_device(self):
        self.assertEqual(self.found["managed"], [0, True, True, 0, 0, 0, INVALID_VALUE])

    def test_events_measure_virtual_time(self):
        nothing, kernel, fill, *again, three_kernels = self.found["times"]
        self.assertAlmostEqual(nothing, 0.001, delta=1e-6)
        self.assertAlmostEqual(kernel, 0.021, delta=1e-6)
        self.assertAlmostEqual(fill, 0.003 + (1 << 30) / 320.064e6, delta=1e-3)
        self.assertEqual(again, [kernel, fill])
        self.assertAlmostEqual(three_kernels, 0.061, delta=1e-5)  # and an event


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv.pop())
    unittest.main()
