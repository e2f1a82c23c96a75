"""Tests of the model of kernels' times: paths through machine code, and the times of a path."""

import collections
import json
import sys
import unittest

import repository

sys.dont_write_bytecode = True
sys.path.insert(0, str(repository.ROOT / "scripts" / "lib"))

import kernel_model  # noqa: E402
import machine_code  # noqa: E402


def listing(*lines):
    """Machine code as cuobjdump prints it, an instruction each 16 bytes."""
    words = "/* 0x0000000000007919 */"
    rows = [f"        /*{16 * i:04x}*/   {line} ;   {words}\n" for i, line in enumerate(lines)]
    return machine_code.instructions_of("\t.headerflags\t@\"EF_CUDA_SM90\"\n" + "".join(rows))


class Instructions(unittest.TestCase):
    def test_the_parts_of_a_line(self):
        (one,) = listing("@!P0 LDG.E.128.CONSTANT R4, desc[UR6][R4.64]")
        self.assertEqual((one.address, one.predicate, one.base), (0, "@!P0", "LDG"))
        self.assertEqual(one.access, "LDG.128")

    def test_widths_of_accesses(self):
        found = [one.access for one in listing("STG.E [R2.64], R4", "STG.E.U8 [R2.64], R4",
                                               "LDG.E.64 R2, [R4.64]", "FADD R1, R2, R3")]
        self.assertEqual(found, ["STG.32", "STG.8", "LDG.64", ""])


class HotPath(unittest.TestCase):
    TWO_WAYS = listing(
        "@P0 EXIT",
        "@P1 BRA 0x50",
        "LDG.E.128 R4, [R2.64]",
        "STG.E.128 [R2.64], R4",
        "EXIT",
        "LDG.E R4, [R2.64]",
        "STG.E [R2.64], R4",
        "EXIT",
    )

    def test_the_accesses_choose_the_way(self):
        wide = machine_code.hot_path(self.TWO_WAYS, {"LDG.128": 1, "STG.128": 1})
        self.assertEqual(wide.count, 5)
        single = machine_code.hot_path(self.TWO_WAYS, {"LDG.32": 1, "STG.32": 1})
        self.assertEqual([one.address for one in single.times], [0, 16, 0x50, 0x60, 0x70])

    def test_no_way_makes_other_accesses(self):
        self.assertIsNone(machine_code.hot_path(self.TWO_WAYS, {"LDG.128": 1, "STG.32": 1}))

    def test_a_slow_case_that_is_called_is_avoided(self):
        code = listing("@!P0 BRA 0x20", "CALL.REL.NOINC 0x50", "FADD R1, R2, R3", "FADD R1, R2, R3",
                       "EXIT", "RET.REL.NODEC R2")
        self.assertEqual(machine_code.hot_path(code, {}).count, 4)

    def test_an_access_under_a_predicate_may_be_left_out(self):
        code = listing("@P0 STG.E [R2.64], R4", "EXIT")
        self.assertEqual(machine_code.hot_path(code, {}).count, 2)
        self.assertEqual(machine_code.hot_path(code, {"STG.32": 1}).count, 2)

    LOOP = listing(
        "MOV R1, R2",
        "LDG.E.128 R4, [R2.64]",
        "STG.E.128 [R2.64], R4",
        "@P0 BRA 0x10",
        "EXIT",
    )

    def test_a_loop_runs_once_or_as_often_as_said(self):
        accesses = {"LDG.128": 1, "STG.128": 1}
        self.assertEqual(machine_code.hot_path(self.LOOP, accesses).count, 5)
        taken = machine_code.hot_path(self.LOOP, {"LDG.128": 2, "STG.128": 2}, [("STG.128", 8)])
        self.assertEqual(taken.count, 1 + 3 * 8 + 1)

    def test_the_innermost_loop_leaves_out_what_runs_once(self):
        path = machine_code.hot_path(self.LOOP, {"LDG.128": 2, "STG.128": 2})
        inside = machine_code.innermost_loop(path, "STG.128")
        self.assertEqual(inside.count, 3)


class Model(unittest.TestCase):
    def setUp(self):
        rows = json.loads((repository.ROOT / "assets" / "gpus.json").read_text())["gpus"]
        self.gpu = kernel_model.gpu_of(next(row for row in rows if row["id"] == "a100-80gb"))

    def counted(self, count, pipe="float"):
        return kernel_model.Counted(8.0, collections.Counter({pipe: count}))

    def test_the_clock_follows_from_fp32(self):
        self.assertAlmostEqual(self.gpu.clocks_per_s / 108 / 1.41e9, 1.0, delta=0.01)

    def test_few_instructions_take_the_time_of_a_copy(self):
        one = [self.counted(1)]
        copy = kernel_model.copy_seconds(one, self.gpu)
        self.assertEqual(kernel_model.seconds(one, self.gpu), copy)

    def test_many_instructions_take_the_time_of_their_pipe(self):
        seconds = kernel_model.seconds([self.counted(640)], self.gpu)
        self.assertAlmostEqual(seconds * self.gpu.clocks_per_s, 640 / 64)
        special = kernel_model.seconds([self.counted(640, "special")], self.gpu)
        self.assertAlmostEqual(special / seconds, 4)

    def test_a_kernel_over_its_budget_or_with_narrow_stores_is_named(self):
        long = listing(*["FADD R1, R2, R3"] * 1000, "EXIT")
        narrow = {f"::dropout_forward_kernel<{kind}>": long for kind in ("float",)}
        (message,) = [m for m in kernel_model.over_budget(narrow, "8.0")
                      if "::dropout_forward_kernel<float>" in m]
        self.assertIn("has no path with exactly 2 LDG.128, 2 STG.128, 2 STG.8", message)
        wide = listing(*["FADD R1, R2, R3"] * 1000, *["LDG.E.128 R4, [R2.64]"] * 2,
                       *["STG.E.128 [R2.64], R4"] * 2, *["STG.E.U8 [R2.64], R4"] * 2, "EXIT")
        kernels = {"::dropout_forward_kernel<float>": wide}
        self.assertIn("dropout forward in fp32 takes 125.9 instructions an element on 8.0; its "
                      "budget is 30.", kernel_model.over_budget(kernels, "8.0"))


if __name__ == "__main__":
    unittest.main()
