"""`temposcope.watch` in programs on a virtual GPU: what stays when memory runs out, or on a signal.

    watch_test.py BIN_FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

import temposcope
import torch
from ledger_test import BIN, virtual_gpu

from commands import Commands, main, thorough

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

# The GPU of the machine stays unused.
TRAINS_ON_CPU = """
    import sys
    import torch
    import temposcope

    temposcope.watch(sys.argv[1], steps=1)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(12):
        model(torch.zeros(8, 64)).sum().backward()
        optimizer.step()
    print("trained")
"""

# What torch tells of its memory is not what the watch knows.
FAILS_IN_A_STEP = """
    import sys
    import torch
    import temposcope

    temposcope.watch(sys.argv[1], steps=1)
    torch.cuda.memory_stats = lambda *_: {"allocation.all.allocated": "many"}
    model = torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(12):
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        optimizer.step()
    print("trained")
"""

# Says after each step whether a request of the next one gets its lines.
HAS_LINES = """
    import json
    import sys
    import time
    import torch
    import temposcope

    temposcope.watch(sys.argv[1], steps=1)
    model = torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    GIB = 1 << 30

    def has_lines():
        asked = torch.empty(256, dtype=torch.uint8, device="cuda")
        blocks = (b for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"])
        return any(b["address"] == asked.data_ptr() and b["frames"] for b in blocks)

    def train(steps):
        has = []
        for _ in range(steps):
            model(torch.zeros(8, 64, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            has.append(has_lines())
        return has

    def take(size_bytes):
        return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")

    def wait():
        # until it is seen that memory grew
        began = time.monotonic()
        while not has_lines() and time.monotonic() - began < 30:
            time.sleep(0.01)

    def tell(**what):
        print(json.dumps(what))

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

    @thorough
    def test_the_ring_has_the_size_of_the_steps(self):
        self.run_program(TRAINS)
        ((few,),) = self.query("SELECT count(*) FROM allocation")
        self.file.unlink()
        self.run_program(TRAINS.replace("steps=1", "steps=8"))
        ((many,),) = self.query("SELECT count(*) FROM allocation")
        self.assertGreater(many, 2 * few)

    def lines(self, text: str) -> dict:
        """What a program says that goes on from HAS_LINES."""
        ran = self.run_program(textwrap.dedent(HAS_LINES) + textwrap.dedent(text))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.stderr = ran.stderr
        return json.loads(ran.stdout)

    def test_lines_are_left_out_while_memory_does_not_grow(self):
        has = self.lines("tell(steps=train(200))")["steps"]
        quiet = has.index(False)
        self.assertTrue(30 <= quiet < 100, has)
        self.assertTrue(1 <= has[quiet:].count(True) <= 3, has)  # one of 64

    def test_lines_come_back_when_memory_grows(self):
        told = self.lines("""
            quiet = train(100)[-1]
            kept = take(GIB)
            wait()
            grown = train(31)
            train(5)
            half = take(20 * GIB)
            wait()
            tell(quiet=quiet, grown=grown, half=train(70))
            """)
        self.assertFalse(told["quiet"])
        self.assertTrue(all(told["grown"]), told)
        self.assertTrue(all(told["half"]), told)

    @thorough
    def test_lines_come_back_within_a_step(self):
        told = self.lines("""
            quiet = train(100)[-1]
            kept = take(GIB)
            wait()
            tell(quiet=quiet, grown=has_lines())
            """)
        self.assertEqual(told, {"quiet": False, "grown": True})

    @thorough
    def test_memory_without_lines_is_said(self):
        self.lines("""
            train(100)
            kept = [take(GIB)]  # in the step that has no lines
            try:
                take(60 * GIB)
            except torch.OutOfMemoryError:
                tell()
            """)
        self.assertRegex(self.stderr, r"to do\. 1\.0\d GiB of 1\.0\d GiB in use have no line")
        largest = self.told("info", self.file, "--peak", "--by", "line")["rows"][0]["name"]
        self.assertTrue(largest.startswith("no stack"), largest)

    def test_a_history_of_the_program_s_own_stays(self):
        told = self.lines("""
            quiet = train(100)[-1]
            torch.cuda.memory._record_memory_history(context="all", stacks="python")
            own = train(70)
            torch.cuda.memory._record_memory_history(None)
            train(40)
            tell(quiet=quiet, own=own, none=torch._C._cuda_isHistoryEnabled())
            """)
        self.assertFalse(told["quiet"])
        self.assertTrue(all(told["own"]), told)
        self.assertFalse(told["none"])

    def test_a_history_that_the_program_begins_in_its_first_steps_stays(self):
        told = self.lines("""
            first = train(1)
            torch.cuda.memory._record_memory_history(context=None)
            tell(first=first, own=train(8))
            """)
        self.assertEqual(told, {"first": [True], "own": [False] * 8})

    def test_a_program_that_leaves_the_gpu_alone_trains_on(self):
        ran = self.run_program(TRAINS_ON_CPU)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "trained\n", ""))

    def test_a_failure_of_the_watch_is_said_once_and_leaves_the_steps_alone(self):
        ran = self.run_program(FAILS_IN_A_STEP)
        self.assertEqual((ran.returncode, ran.stdout), (0, "trained\n"), ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        self.assertIn("temposcope: Temposcope itself failed in _watch.py", ran.stderr)

    @thorough
    def test_each_rank_has_a_file(self):
        self.run_program(TRAINS, RANK="3", WORLD_SIZE="4")
        names = [path.name for path in self.folder.glob("*.tscope*")]
        self.assertEqual(names, [f"{self.file.stem}-rank-0003.tscope"])

    def test_a_trace_that_cannot_be_written_leaves_the_error_alone(self):
        self.file = pathlib.Path("/proc/out.tscope")
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

    def test_a_file_that_is_no_trace_is_not_replaced(self):
        self.file.write_text("mine")
        with self.assertRaisesRegex(temposcope.RecordingError, "is no trace"):
            temposcope.watch(self.file)
        with self.assertRaisesRegex(temposcope.RecordingError, "cannot be written .File exists"):
            temposcope.watch(self.file / "oom.tscope")
        self.assertEqual(self.file.read_text(), "mine")

    @unittest.skipIf(torch.cuda.is_available(), "needs a machine without a GPU")
    def test_without_a_gpu_nothing_is_watched(self):
        with self.assertWarnsRegex(UserWarning, "torch finds no GPU"):
            temposcope.watch(self.file)


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: watch_test.py BIN_FOLDER")
    main()
