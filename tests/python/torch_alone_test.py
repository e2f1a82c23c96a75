"""A program whose torch has no libraries is recorded by torch alone.

    torch_alone_test.py BIN_FOLDER
"""

import os
import subprocess
import sys
import textwrap

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

    def run_program(self, *options, **variables) -> subprocess.CompletedProcess:
        alone = {"TEMPOSCOPE_LIBRARIES": str(self.bin)} | variables
        return commands.temposcope(
            "run", *options, "--overwrite", "-o", self.file, "--", sys.executable, self.program,
            env=os.environ | alone,
        )  # fmt: skip

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
            ((), "programs on the CPU"),
        ):
            if not options and torch.cuda.is_available():
                continue
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
        ((requested,),) = self.query("SELECT requested_bytes FROM failure")
        self.assertEqual(requested, 4 << 40)

    def test_a_program_that_imports_temposcope_gets_the_reason(self):
        self.program.write_text("import torch, temposcope\n")
        ran = self.run_program("--gpu", "t4")
        self.assertIn("NoLibraries: this temposcope is built for torch 2.99", ran.stderr)


if __name__ == "__main__":
    commands.main()
