"""A program whose torch has no libraries is recorded by torch alone.

    torch_alone_test.py BIN_FOLDER
"""

import os
import subprocess
import sys
import textwrap
import unittest

import commands
import torch
from commands import BIN, Commands

TELLS_CONTENTS = hasattr(torch.cuda.memory, "_annotate_tensor")

TRAIN = """
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    layers = torch.nn.TransformerEncoder(layer, 2)
    model = torch.nn.Sequential(layers, torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        x = torch.randn(4, 32, 64, device="cuda")
        torch.nn.functional.mse_loss(model(x), torch.zeros(4, 32, 8, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(torch.cuda.memory_stats()["requested_bytes.all.peak"])
    print(sum(p.untyped_storage().nbytes() for p in model.parameters()))
"""


class TorchAlone(Commands):
    """`bin` is a folder of the programs for a torch that nobody has."""

    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for path in BIN.iterdir():
            if path.name != "torch_version" and not path.name.startswith("torch-"):
                (self.bin / path.name).symlink_to(path)
        (self.bin / "torch_version").write_text("2.99\n")
        self.program = self.folder / "train.py"
        self.program.write_text(textwrap.dedent(TRAIN))

    def run_program(self, *options, command=None, **variables) -> subprocess.CompletedProcess:
        alone = {"TEMPOSCOPE_LIBRARIES": str(self.bin)} | variables
        return commands.temposcope(
            "run", *options, "--overwrite", "-o", self.file, "--",
            *(command or (sys.executable, self.program)), env=os.environ | alone,
        )  # fmt: skip

    def record(self, text: str, *options) -> subprocess.CompletedProcess:
        """A program on a simulated GPU, which comes to its end."""
        self.program.write_text(textwrap.dedent(text))
        ran = self.run_program("--gpu", "a100-40gb", *options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def peak_is_that_of_the_program(self, ran) -> None:
        told = self.told("info", self.file, "--peak")
        self.assertEqual(told["peak_allocated_bytes"], int(ran.stdout.split()[0]))

    def test_the_trace_has_the_peak_and_says_what_it_lacks(self):
        ran = self.run_program("--gpu", "a100-40gb")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("built for torch 2.99, and torch", ran.stderr)
        self.assertIn("Until then torch alone records", ran.stderr)
        peak, weights = map(int, ran.stdout.split())
        told = self.told("info", self.file, "--peak")
        self.assertEqual(told["peak_allocated_bytes"], peak)
        phases = self.query("SELECT kind FROM v_phase WHERE step = 1")
        self.assertEqual([kind for (kind,) in phases], ["forward", "backward", "optimizer"])
        ((note,),) = self.query("SELECT explanation FROM v_health WHERE code = 'recorded_by_torch'")
        self.assertIn("Ops, kernels and memory outside the allocator are missing", note)
        if TELLS_CONTENTS:
            bytes_of = {row["name"]: row["size_bytes"] for row in told["rows"]}
            self.assertEqual(bytes_of["parameter"], weights)
            self.assertEqual(bytes_of["optimizer_state"], 2 * weights)

    def test_the_ledger_is_that_of_the_recorder(self):
        if not TELLS_CONTENTS:
            self.skipTest("torch 2.14 is the first that tells what blocks contain")
        ledgers = []
        for libraries in (self.bin, BIN):
            ran = self.run_program("--gpu", "a100-40gb", TEMPOSCOPE_LIBRARIES=str(libraries))
            self.assertEqual(ran.returncode, 0, ran.stderr)
            rows = self.told("info", self.file, "--saved")["rows"]
            ledgers.append(sorted((row["size_bytes"], row["dtype"]) for row in rows))
        self.assertEqual(*ledgers)

    def test_what_it_cannot_record_is_refused(self):
        for options, what in (
            (("--gpu", "t4", "--apply", "tempo"), "--apply"),
            (("--gpu", "t4", "--world-size", "2"), "several ranks"),
        ):
            with self.subTest(what):
                ran = self.run_program(*options)
                self.assertNotEqual(ran.returncode, 0)
                self.assertIn(f"Without these libraries {what} cannot be recorded.", ran.stderr)
                self.assertFalse(self.file.exists())

    def test_memory_that_runs_out_leaves_a_trace(self):
        request = "range(6):\n    model[1].weight.new_empty(1 << 40)"
        self.program.write_text(self.program.read_text().replace("range(6):", request))
        ran = self.run_program("--gpu", "t4")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("Out of memory at train.py:", ran.stderr)
        ((requested,),) = self.query("SELECT requested_bytes FROM failure")
        self.assertEqual(requested, 4 << 40)

    def test_an_error_that_is_caught_does_not_end_the_recording(self):
        tried = textwrap.dedent("""\
            for i in range(6):
                try:
                    model[1].weight.new_empty(1 << 40)
                except torch.OutOfMemoryError:
                    pass
            """)
        text = self.program.read_text().replace("for _ in range(6):\n", tried)
        self.peak_is_that_of_the_program(self.record(text))
        self.assertEqual(self.query("SELECT count(*) FROM v_step"), [(4,)])

    def test_exactly_the_steps_that_are_asked_for(self):
        ran = self.record(self.program.read_text().replace("range(6)", "range(4)"))
        self.assertIn("Recorded 3 steps in", ran.stderr)
        self.peak_is_that_of_the_program(ran)

    def test_the_first_process_that_trains_is_the_recorded_one(self):
        other = self.folder / "other.py"
        other.write_text("import torch\nprint(torch.ones(8, device='cuda').numel())\n")
        script = f"{sys.executable} {self.program}; {sys.executable} {other}"
        ran = self.run_program("--gpu", "a100-40gb", command=("sh", "-c", script))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.peak_is_that_of_the_program(ran)

    def test_graphs_without_a_backward_are_freed(self):
        """What autograd keeps of an op's result must not hold the op's graph."""
        self.record("""
            import torch

            model = torch.nn.Linear(64, 64).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x = torch.randn(8, 64, device="cuda")
            in_use = []
            for _ in range(8):
                torch.softmax(model(x), 1).exp().tanh()  # nobody calls backward
                in_use.append(torch.cuda.memory_allocated())
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            assert in_use[3] == in_use[7], in_use
            """)

    def test_what_a_program_asks_of_autograd_works(self):
        self.record("""
            import torch

            model = torch.nn.Linear(8, 8).cuda()
            model.weight.main_grad = "mine"
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            class KeepsItsWeight(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, weight):
                    ctx.save_for_backward(x, weight)
                    return x @ weight

                @staticmethod
                def backward(ctx, gradient):
                    x, weight = ctx.saved_tensors
                    assert weight.main_grad == "mine"
                    return gradient @ weight.T, x.T @ gradient

            for _ in range(5):
                x = torch.randn(8, 8, device="cuda", requires_grad=True)
                y = KeepsItsWeight.apply(model(x), model.weight)
                torch.func.grad(lambda v: v.square().sum())(x)
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    y = y.exp()
                (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
                (y.sum() + gradient.square().sum()).backward()
                optimizer.step()
                optimizer.zero_grad()
            try:
                y = model(x).exp()
                y.add_(1)
                y.sum().backward()
            except RuntimeError as error:
                assert "modified by an inplace operation" in str(error), error
            else:
                raise AssertionError("changed in place")
            """)

    def test_a_forked_process_of_a_program_that_has_used_no_gpu_may_use_one(self):
        self.record("""
            import os
            import torch

            child = os.fork()
            if child == 0:
                torch.ones(8, device="cuda")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            model = torch.nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.ones(8, device="cuda")).sum().backward()
                optimizer.step()
            """)
        self.assertEqual(self.query("SELECT count(*) FROM v_step"), [(4,)])

    def test_models_are_freed(self):
        self.record("""
            import gc
            import torch

            in_use = []
            for _ in range(4):
                model = torch.nn.Linear(512, 512).cuda()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                model(torch.ones(512, device="cuda")).sum().backward()
                optimizer.step()
                del model, optimizer
                gc.collect()
                in_use.append(torch.cuda.memory_allocated())
            assert in_use[1] == in_use[3], in_use
            """)

    def test_an_allocator_without_a_history_is_named(self):
        ran = self.run_program("--gpu", "t4", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        self.assertIn("the allocator is cudaMallocAsync, which has no history", ran.stderr)

    @unittest.skipIf(torch.cuda.is_available(), "it would use this GPU")
    def test_a_program_on_the_cpu_leaves_a_sentence(self):
        self.program.write_text(self.program.read_text().replace("cuda", "cpu").split("print")[0])
        ran = self.run_program()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("used no GPU, and torch alone records nothing on the CPU", ran.stderr)
        self.assertFalse(self.file.exists())

    def test_a_program_that_imports_temposcope_gets_the_reason(self):
        self.program.write_text("import torch, temposcope\n")
        ran = self.run_program("--gpu", "t4")
        self.assertIn("NoLibraries: this temposcope is built for torch 2.99", ran.stderr)


if __name__ == "__main__":
    commands.main()
