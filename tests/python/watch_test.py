"""`temposcope.watch` in programs on a virtual GPU: what stays when memory runs out, or on a signal.

    watch_test.py BIN_FOLDER
"""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

import temposcope
import torch
from ledger_test import BIN, virtual_gpu

from commands import Commands

GIB = 1 << 30

RUNS_OUT = """
    import sys
    import torch
    import temposcope

    temposcope.watch(sys.argv[1], steps=1)
    GIB = 1 << 30
    kept = []
    try:
        while True:
            kept.append(torch.empty(3 * GIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        print(type(error).__name__)
"""

TRAINS = """
    import os
    import signal
    import sys
    import torch
    import temposcope

    signal.signal(signal.SIGUSR1, lambda *_: print("asked"))
    temposcope.watch(sys.argv[1], steps=1)
    model = torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(20):
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    os.kill(os.getpid(), signal.SIGUSR1)
    print("went on")
"""


class Watch(Commands):
    def run_program(self, text: str, **variables):
        program = self.folder / "program.py"
        program.write_text(textwrap.dedent(text))
        return subprocess.run(
            [sys.executable, program, self.file], cwd=self.folder, capture_output=True, text=True,
            env=os.environ | virtual_gpu() | variables,
        )  # fmt: skip

    def test_memory_runs_out(self):
        ran = self.run_program(RUNS_OUT)
        self.assertEqual((ran.returncode, ran.stdout), (0, "OutOfMemoryError\n"), ran.stderr)
        self.assertIn("temposcope: memory of cuda:0 ran out: the last steps are in ", ran.stderr)
        self.assertEqual([path.name for path in self.folder.glob("*.tscope*")], [self.file.name])
        ((command, folder),) = self.query("SELECT command, folder FROM v_run")
        self.assertIn("program.py", command)
        self.assertTrue(pathlib.Path(folder).samefile(self.folder))
        oom = self.query("SELECT size_bytes FROM v_allocator_event WHERE action = 'oom'")
        self.assertEqual(oom, [(3 * GIB,)])
        keepers = self.query("SELECT kind, text, line FROM v_keeper")
        self.assertEqual({kind for kind, _, _ in keepers}, {"container"})
        self.assertTrue(all("`kept[" in text for _, text, _ in keepers), keepers)
        self.assertEqual({line for _, _, line in keepers}, {11})
        told = self.told("info", self.file, "--peak", "--by", "line")
        self.assertTrue(told["rows"][0]["name"].endswith("program.py:11 <module>"), told["rows"])

    def test_a_signal_writes_the_last_steps(self):
        ran = self.run_program(TRAINS)
        self.assertEqual((ran.returncode, ran.stdout), (0, "asked\nwent on\n"), ran.stderr)
        self.assertIn("temposcope: SIGUSR1 came: the last steps are in ", ran.stderr)
        ((blocks,),) = self.query("SELECT count(*) FROM allocation WHERE alloc_event > 0")
        ((states,),) = self.query("SELECT count(*) FROM v_keeper WHERE kind = 'optimizer'")
        self.assertGreater(blocks, 0)
        self.assertGreater(states, 0)

    def test_the_ring_has_the_size_of_the_steps(self):
        self.run_program(TRAINS)
        ((few,),) = self.query("SELECT count(*) FROM allocation")
        self.file.unlink()
        self.run_program(TRAINS.replace("steps=1", "steps=8"))
        ((many,),) = self.query("SELECT count(*) FROM allocation")
        self.assertGreater(many, 2 * few)

    def test_each_rank_has_a_file(self):
        self.run_program(TRAINS, RANK="3", WORLD_SIZE="4")
        names = [path.name for path in self.folder.glob("*.tscope*")]
        self.assertEqual(names, [f"{self.file.stem}-rank-0003.tscope"])

    def test_a_trace_that_cannot_be_written_leaves_the_error_alone(self):
        self.file = self.folder / "missing" / "out.tscope"
        ran = self.run_program(RUNS_OUT)
        self.assertEqual((ran.returncode, ran.stdout), (0, "OutOfMemoryError\n"), ran.stderr)
        self.assertIn("ran out: no trace was written, because of FileNotFoundError", ran.stderr)

    def test_an_allocator_without_a_history_is_refused(self):
        ran = self.run_program(RUNS_OUT, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("needs torch's own allocator, and this is cudaMallocAsync", ran.stderr)

    def test_wrong_arguments_are_refused(self):
        for arguments in ({"file": "oom.pickle"}, {"file": "oom.tscope", "steps": 0}):
            with self.assertRaises(ValueError):
                temposcope.watch(**arguments)

    @unittest.skipIf(torch.cuda.is_available(), "needs a machine without a GPU")
    def test_without_a_gpu_nothing_is_watched(self):
        with self.assertWarnsRegex(UserWarning, "torch finds no GPU"):
            temposcope.watch(self.file)


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: watch_test.py BIN_FOLDER")
    unittest.main()
