"""Tests of the model of kernels' times: paths through machine code, and the times of a path."""

import collections
import dataclasses
import json
import sys
import unittest

import repository

sys.dont_write_bytecode = True
sys.path.insert(0, str(repository.ROOT / "tools" / "kernel_report"))

import kernel_model  # noqa: E402
import kernel_ops  # noqa: E402
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
        self.assertEqual(path.innermost_loop("STG.128").count, 3)

    def test_a_branch_on_data_runs_both_sides(self):
        """And one on an argument only the shorter."""
        for loaded, count in (("R4", 9), ("R8", 7)):
            code = listing(
                "LDG.E.128 R4, [R2.64]",
                f"FSETP.GT.AND P0, PT, {loaded}, RZ, PT",
                "@P0 BRA 0x60",
                "FADD R9, R4, R4",
                "FADD R9, R9, R4",
                "BRA 0x70",
                "FMUL R9, R4, R4",
                "STG.E.128 [R2.64], R9",
                "EXIT",
            )
            with self.subTest(loaded):
                path = machine_code.hot_path(code, {"LDG.128": 1, "STG.128": 1})
                self.assertEqual(path.count, count - 1 if loaded == "R8" else count)

    def test_a_call_on_a_side_is_a_rare_case_and_the_rest_of_the_side_counts(self):
        code = listing(
            "LDG.E.128 R4, [R2.64]",
            "FSETP.GT.AND P0, PT, R4, RZ, PT",
            "@P0 BRA 0x70",
            "FADD R4, R4, R4",
            "@!P1 BRA 0x60",
            "CALL.REL.NOINC 0x90",
            "FADD R4, R4, R4",
            "STG.E.128 [R2.64], R4",
            "EXIT",
            "RET.REL.NODEC R2",
        )
        path = machine_code.hot_path(code, {"LDG.128": 1, "STG.128": 1})
        self.assertEqual(path.count, 8)

    def test_a_value_that_all_lanes_load_is_no_data(self):
        code = listing(
            "LDG.E.64 R4, [R2.64]",
            "ISETP.NE.AND P0, PT, R5, RZ, PT",
            "@P0 BRA 0x40",
            "IADD3 R6, R6, R6, RZ",
            "EXIT",
        )
        both = machine_code.hot_path(code, {"LDG.64": 1})
        chosen = machine_code.hot_path(code, {"LDG.64": 1}, uniform=("LDG.64",))
        self.assertEqual((both.count, chosen.count), (5, 4))

    def test_a_warp_waits_once_for_all_loads_that_it_has_sent(self):
        code = listing(
            "LDG.E.128 R4, [R2.64]",
            "LDG.E.128 R8, [R2.64]",
            "FADD R4, R4, R8",
            "FADD R5, R5, R9",
            "LDG.E.128 R12, [R2.64]",
            "FADD R4, R4, R12",
            "STG.E.128 [R2.64], R4",
            "EXIT",
        )
        path = machine_code.hot_path(code, {"LDG.128": 3, "STG.128": 1})
        self.assertEqual(path.waits(), 2)
        self.assertEqual(path.waits(streams=2), 1)  # the third finds its data in cache


class Model(unittest.TestCase):
    def setUp(self):
        rows = json.loads((repository.ROOT / "assets" / "gpus.json").read_text())["gpus"]
        self.gpu = kernel_model.gpu_of(next(row for row in rows if row["id"] == "a100-80gb"))

    def counted(self, count, pipe="float", **changes):
        """A kernel of many blocks with eight elements a thread that waits once for its loads."""
        code = dataclasses.replace(kernel_ops.Code("", {}, 8, 8.0, 1 << 30), **changes)
        pipes = collections.Counter({pipe: count})
        return kernel_model.Counted(8.0, pipes, waits=1, code=code, registers=32)

    def test_the_clock_follows_from_fp32(self):
        self.assertAlmostEqual(self.gpu.clock_hz / 1.41e9, 1.0, delta=0.01)

    def test_limits_are_those_of_the_models(self):
        self.assertEqual(kernel_model.sm_limits("8.0"), kernel_model.SmLimits(2048, 32, 164 << 10))
        self.assertEqual(kernel_model.sm_limits("8.8"), kernel_model.sm_limits("8.7"))

    def test_few_instructions_take_the_time_of_a_copy(self):
        one = [self.counted(1, blocks=4 * 108 * 8)]
        self.assertEqual(kernel_model.seconds(one, self.gpu),
                         kernel_model.copy_seconds(one, self.gpu))

    def test_many_instructions_take_the_time_of_their_pipe(self):
        def seconds(pipe):
            return kernel_model.seconds_of_arithmetic(self.counted(640, pipe), self.gpu)

        self.assertAlmostEqual(seconds("float") * self.gpu.clocks_per_s, 640 / 64)
        self.assertAlmostEqual(seconds("special") / seconds("float"), 4)

    def test_registers_threads_and_shared_memory_bound_the_blocks_of_a_multiprocessor(self):
        def blocks(registers, shared=0, threads=256):
            code = kernel_ops.Code("", {}, 8, 8.0, 1 << 30, threads)
            one = kernel_model.Counted(8.0, code=code, registers=registers, shared_bytes=shared)
            return kernel_model.blocks_per_sm(one, self.gpu)

        self.assertEqual(blocks(32), 8)  # 2048 threads
        self.assertEqual(blocks(33), 6)  # 40 registers a thread, in portions of 256 a warp
        self.assertEqual(blocks(255), 1)
        self.assertEqual(blocks(32, shared=40 << 10), 4)
        self.assertEqual(blocks(16, threads=32), 32)

    def test_few_warps_wait_longer_than_their_bytes_take(self):
        """The same kernel in half a block for each multiprocessor, and in many."""
        few = self.counted(1, blocks=54)
        self.assertEqual(kernel_model.resident_warps(few, self.gpu), 4)
        wait = kernel_model.LATENCY_S / (32 * 8 * 4 * 108)
        self.assertAlmostEqual(kernel_model.seconds_of_warps(few, self.gpu) / wait, 1, delta=0.1)
        self.assertGreater(kernel_model.seconds([few], self.gpu),
                           kernel_model.copy_seconds([few], self.gpu))

    def test_a_last_wave_counts_as_a_full_one(self):
        full = 108 * 8
        for blocks, factor in ((full, 1), (full + 1, 2 / (1 + 1 / full)), (4 * full, 1)):
            self.assertAlmostEqual(kernel_model.waves(self.counted(1, blocks=blocks), self.gpu),
                                   factor)

    def test_blocks_that_all_run_at_once_end_with_the_fullest_multiprocessor(self):
        one, even = (kernel_model.seconds_of_arithmetic(self.counted(640, blocks=n), self.gpu)
                     for n in (109, 216))
        self.assertAlmostEqual(one / even, 216 / 109)

    def test_a_grid_of_so_many_blocks_for_each_multiprocessor_has_its_bounds(self):
        code = kernel_ops.Code("", {}, 8, 8.0, 1 << 30, blocks=216, launched_per_sm=2)
        self.assertEqual([code.grid(n) for n in (40, 108, 132, 300)], [216, 216, 264, 432])
        self.assertEqual(dataclasses.replace(code, launched_per_sm=0).grid(132), 216)

    def test_elements_that_are_stored_one_by_one_are_named(self):
        name = "void kernels::dropout_forward_kernel<kernels::Half, 8>(int)"
        wide, narrow = "STG.E.128 [R2.64], R4", "STG.E.U16 [R2.64], R4"
        self.assertIsNone(kernel_model.narrow_stores(name, listing(wide, narrow, "EXIT")))
        self.assertIn("has 10 stores of one element",
                      kernel_model.narrow_stores(name, listing(wide, *[narrow] * 10, "EXIT")))
        self.assertIn("no store of 128", kernel_model.narrow_stores(name, listing(narrow, "EXIT")))
        for other in (name.replace("dropout_forward", "layer_norm_forward_any"),
                      name.replace("8", "1")):  # for tensors at any address
            self.assertIsNone(kernel_model.narrow_stores(other, listing(narrow, "EXIT")))

    def test_a_kernel_over_its_budget_or_with_narrow_stores_is_named(self):
        long = listing(*["FADD R1, R2, R3"] * 1000, "EXIT")

        def library(body):
            name = "::dropout_forward_kernel<float, 4>"
            used = machine_code.Resources("", 32, 0, 0)
            return kernel_model.Library({name: body}, {name: used})

        (message,) = [m for m in kernel_model.over_budget(library(long), "8.0")
                      if "::dropout_forward_kernel<float, 4>" in m]
        self.assertIn("has no path with exactly 2 LDG.128, 2 STG.128, 2 STG.8", message)
        wide = listing(*["FADD R1, R2, R3"] * 1000, *["LDG.E.128 R4, [R2.64]"] * 2,
                       *["STG.E.128 [R2.64], R4"] * 2, *["STG.E.U8 [R2.64], R4"] * 2, "EXIT")
        self.assertIn("dropout forward in fp32 takes 125.9 instructions an element on 8.0; its "
                      "budget is 29.", kernel_model.over_budget(library(wide), "8.0"))


if __name__ == "__main__":
    unittest.main()
