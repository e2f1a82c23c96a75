"""`temposcope run --stacks`: the lines of a program that hold its memory.

    run_stacks_test.py BIN_FOLDER
"""

import subprocess
import textwrap
import unittest

from commands import main, temposcope, thorough
from run_test import PYTHON, Run

PROGRAM = """
    import sys
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x  # squares

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return 2 * x * dy  # its backward

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(64, 256)  # layer

        def forward(self, x):
            hidden = self.linear(x)  # hidden
            return Square.apply(torch.nn.functional.gelu(hidden))  # gelu

    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = []
    for i in range(4):
        data.append(torch.randn(1 << 18, device=device))  # data
    model = Block().to(device)  # model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(512, 64, device=device)  # input
        scratch = torch.empty(1 << 18, device=device)  # scratch
        model(x).sum().backward()  # backward
        optimizer.step()
        optimizer.zero_grad()
"""
HIDDEN_BYTES = 512 * 256 * 4
WEIGHT_BYTES, BIAS_BYTES = 4 * 64 * 256, 4 * 256
BLOCK_BYTES = 4 << 18  # of data, and of scratch


class Stacks(Run):
    def record(self, *options: str) -> str:
        program = self.write("train.py", PROGRAM)
        self.run_well(PYTHON, program, options=["--steps", "2", *options])
        return program

    def line_of(self, mark: str) -> int:
        lines = textwrap.dedent(PROGRAM).splitlines()
        return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"# {mark}"))

    def site(self, mark: str, function: str) -> str:
        return f"{self.folder.name}/train.py:{self.line_of(mark)} {function}"

    def peak_by_site(self) -> dict:
        told = self.told("info", self.file, "--peak", "--by", "line")
        return {row["name"]: row["size_bytes"] for row in told["rows"]}

    def test_the_lines_that_hold_the_peak(self):
        self.record("--stacks")
        peak = self.peak_by_site()
        self.assertEqual(peak[self.site("hidden", "forward")], HIDDEN_BYTES)
        self.assertEqual(peak[self.site("gelu", "forward")], HIDDEN_BYTES)

    def test_what_is_older_than_the_first_step(self):
        """On the CPU a block of less than a page has no stack."""
        self.record("--stacks")
        peak = self.peak_by_site()
        self.assertEqual(peak[self.site("data", "<module>")], 4 * BLOCK_BYTES)
        self.assertEqual(peak[self.site("layer", "__init__")], WEIGHT_BYTES)
        self.assertEqual(peak["no stack, parameter"], BIAS_BYTES)
        self.record("--stacks", "--overwrite", "--gpu", "rtx3090")
        peak = self.peak_by_site()
        self.assertEqual(peak[self.site("data", "<module>")], 4 * BLOCK_BYTES)
        self.assertEqual(peak[self.site("model", "<module>")], WEIGHT_BYTES + BIAS_BYTES)
        self.assertFalse([name for name in peak if name.startswith("no stack")], peak)

    def test_an_allocation_without_an_op_in_a_step(self):
        for gpu in ((), ("--gpu", "rtx3090")):
            self.record("--stacks", "--overwrite", *gpu)
            scratch = self.peak_by_site()[self.site("scratch", "<module>")]
            self.assertEqual(scratch, BLOCK_BYTES)

    @thorough
    def test_the_skipped_part_has_stacks_of_what_stays(self):
        """Those of freed blocks may be forgotten: here of the many scalars."""
        program = self.write("train.py", """
            import torch
            scalar = torch.zeros(1, device="cuda")
            for i in range(50_000):
                scalar = scalar + 1
            kept = [torch.ones(1 << 18, device="cuda")]
            net = torch.nn.Linear(8, 8).cuda()
            for step in range(6):
                net(torch.randn(8, 8, device="cuda")).sum().backward()
                kept.append(torch.ones(1 << 18, device="cuda"))  # of the steps
            """)  # fmt: skip
        options = ["--gpu", "rtx3090", "--skip", "4", "--steps", "1"]
        self.run_well(PYTHON, program, options=options)
        peak = self.peak_by_site()
        place = f"{self.folder.name}/train.py"
        self.assertEqual(peak[f"{place}:6 <module>"], BLOCK_BYTES)
        self.assertEqual(peak[f"{place}:10 <module>"], 5 * BLOCK_BYTES)

    @thorough
    def test_a_history_of_the_program_s_own_costs_stacks_and_stays(self):
        program = self.write("train.py", """
            import torch
            torch.cuda.memory._record_memory_history("all", context=None, max_entries=9)
            net = torch.nn.Linear(64, 64).cuda()
            for step in range(6):
                net(torch.randn(8, 64, device="cuda")).sum().backward()
            print(torch._C._cuda_isHistoryEnabled())
            """)  # fmt: skip
        ran = self.run_well(PYTHON, program, options=["--gpu", "rtx3090", "--steps", "2"])
        self.assertEqual(ran.stdout, "True\n")
        self.assertEqual(self.peak_by_site()["no stack, parameter"], 4 * (64 * 64 + 64))

    @thorough
    def test_stacks_of_cpp_keep_the_lines_and_the_classes(self):
        self.record("--stacks")
        of_python = self.peak_by_site()
        self.record("--cpp-stacks", "--overwrite")
        self.assertEqual(self.peak_by_site(), of_python)

    def test_every_allocation_of_an_op_in_a_step_has_a_stack(self):
        self.record("--stacks")
        missing = self.query(
            "SELECT count(*) FROM allocation JOIN step ON step.id = 0 WHERE stack IS NULL "
            "AND op IS NOT NULL AND alloc_event >= first_event"
        )
        self.assertEqual(missing, [(0,)])

    def test_what_backward_makes_has_the_line_of_its_forward_op(self):
        for gpu in ((), ("--gpu", "rtx3090")):
            self.record("--stacks", "--overwrite", *gpu)
            self.assertEqual(self.line_of_gradient("linear.weight.grad"), self.line_of("hidden"))

    def line_of_gradient(self, name: str) -> int:
        """The innermost line of the program in the stack that a gradient of the last step has."""
        ((stack,),) = self.query(
            "SELECT allocation.stack FROM allocation JOIN v_tensor ON v_tensor.storage = "
            f"allocation.storage WHERE v_tensor.name = '{name}' ORDER BY allocation.id DESC LIMIT 1"
        )
        while stack is not None:
            ((line, file, stack),) = self.query(
                "SELECT v_frame.line, v_frame.file, stack.parent FROM stack JOIN v_frame ON "
                f"v_frame.id = stack.frame WHERE stack.id = {stack}"
            )
            if file.endswith("train.py"):
                return line
        self.fail("no line of the program")

    def test_the_text_of_a_line(self):
        self.record("--stacks")
        ran = temposcope("info", self.file, "--peak", "--by", "line")
        self.assertIn("hidden = self.linear(x)  # hidden", ran.stdout)

    def test_a_backward_in_python_has_its_own_lines(self):
        self.record("--stacks")
        lines = self.query(
            "SELECT DISTINCT frame.line FROM allocation JOIN stack ON stack.id = allocation.stack "
            "JOIN frame ON frame.id = stack.frame"
        )
        for mark in ("its backward", "squares", "gelu"):
            self.assertIn((self.line_of(mark),), lines, mark)

    def test_frames_and_stacks_are_folded_and_none_is_the_recorder_s(self):
        program = self.record("--stacks")
        files = {file for (file,) in self.query("SELECT DISTINCT file FROM v_frame")}
        self.assertIn(program, files)
        self.assertFalse([file for file in files if "/temposcope/_" in file], files)
        for what in ("function, file, line FROM frame", "frame, parent FROM stack"):
            rows = self.query(f"SELECT {what}")
            self.assertEqual(len(rows), len(set(rows)), what)
        # The outermost frame of all is the program's.
        roots = self.query(
            "SELECT DISTINCT v_frame.function FROM stack JOIN v_frame ON v_frame.id = stack.frame "
            "WHERE stack.parent IS NULL"
        )
        self.assertIn(("<module>",), roots)

    def test_the_functions_of_cpp_stand_below_the_lines_of_python(self):
        for gpu in ((), ("--gpu", "rtx3090")):
            self.record("--cpp-stacks", "--overwrite", *gpu)
            ((stack,),) = self.query(
                "SELECT stack FROM allocation WHERE requested_bytes = "
                f"{HIDDEN_BYTES} AND stack IS NOT NULL ORDER BY id LIMIT 1"
            )
            frames = self.frames_of(stack)
            files = [file for file, _ in frames]
            python = next(i for i, file in enumerate(files) if file.endswith(".py"))
            self.assertGreater(python, 3, frames)
            self.assertTrue(all(".so" in file for file in files[:python]), frames)
            self.assertTrue(all(file.endswith(".py") for file in files[python:]), frames)
            self.assertIn("linear.py", files[python], frames)
            self.assertTrue(any("at::_ops::addmm" in function for _, function in frames), frames)
            self.assertFalse([name for file, name in frames if "unwind" in name], frames)
            # The lines of the program are the sites all the same.
            self.assert_hidden_is_at_its_line(self.peak_by_site())

    def frames_of(self, stack: int | None) -> list:
        """File and function, the innermost first."""
        frames = []
        while stack is not None:
            ((file, function, stack),) = self.query(
                "SELECT v_frame.file, v_frame.function, stack.parent FROM stack JOIN v_frame ON "
                f"v_frame.id = stack.frame WHERE stack.id = {stack}"
            )
            frames.append((file, function))
        return frames

    def test_they_are_recorded_unless_they_are_left_out(self):
        self.record()
        self.assertGreater(self.query("SELECT count(*) FROM frame")[0][0], 0)
        self.record("--no-stacks", "--overwrite")
        self.assertEqual(self.query("SELECT count(*) FROM frame"), [(0,)])

    def test_on_a_gpu_that_is_not_here(self):
        self.record("--stacks", "--gpu", "rtx3090")
        self.assert_hidden_is_at_its_line(self.peak_by_site())

    def assert_hidden_is_at_its_line(self, peak: dict) -> None:
        """On a GPU the first product also makes the workspaces of cuBLAS."""
        ((workspaces,),) = self.query(
            "SELECT ifnull(sum(requested_bytes), 0) FROM v_allocation WHERE role = 'workspace'"
        )
        self.assertEqual(peak[self.site("hidden", "forward")], HIDDEN_BYTES + workspaces)

    @thorough
    def test_compare_shows_both_by_line(self):
        self.record("--stacks")
        other = self.folder / "other.tscope"
        self.file.rename(other)
        self.record("--stacks", "--apply", "tempo")
        ran = temposcope("compare", other, self.file, "--by", "line")
        self.assertIn(self.site("hidden", "forward"), ran.stdout)

    @thorough
    def test_a_part_of_a_program(self):
        text = textwrap.dedent(PROGRAM).replace("import sys", "import temposcope")
        loop = text.index("for step")
        head, tail = text[:loop], textwrap.indent(text[loop:], "    ")
        record = f"with temposcope.record({str(self.file)!r}, model, optimizer, stacks=True):\n"
        program = self.write("train.py", head + record + tail)
        subprocess.run([PYTHON, program], check=True, cwd=self.folder)
        self.assertIn(self.site("hidden", "forward"), self.peak_by_site())


if __name__ == "__main__":
    main()
