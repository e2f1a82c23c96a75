"""`temposcope run` on programs that run out of memory, crash or are stopped: what the trace then
says, and what the command.

    run_failures_test.py BIN_FOLDER
"""

import json
import os
import signal
import subprocess
import textwrap
import unittest

from commands import main, thorough
from run_test import PYTHON, Run

GIB = 1 << 30
CARD = "a100-40gb"

# The logits of a batch of 128 have 12.2 GiB. The loss takes as much, and backward twice as much: a
# batch of 256 fails in the loss, and one of 128 in backward.
LANGUAGE_MODEL = """
    import torch
    from torch import nn

    model = nn.Sequential(nn.Embedding(50000, 512), nn.Linear(512, 50000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def train_step(batch):
        tokens = torch.zeros(batch, 512, dtype=torch.long, device="cuda")
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())  # loss
        loss.backward()  # backward
        optimizer.step()
        optimizer.zero_grad()
"""
SPAWNED = """
    import multiprocessing

    def train():
        import torch
        model = torch.nn.Linear(1024, 1024).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept = []
        for step in range(50):
            model(torch.randn(64, 1024, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(torch.zeros(1 << 30, dtype=torch.uint8, device="cuda"))  # kept

    if __name__ == "__main__":
        process = multiprocessing.get_context("spawn").Process(target=train)
        process.start()
        process.join()
        print("the child ended with", process.exitcode)
"""
FAILURES = """
    SELECT outcome, error, requested_bytes, allocated_bytes, reserved_bytes, free_bytes,
           limit_bytes, step, phase, op, stack, message FROM v_failure ORDER BY id
"""
COLUMNS = ("outcome", "error", "requested", "allocated", "reserved", "free", "limit", "step",
           "phase", "op", "stack", "message")  # fmt: skip


class Failures(Run):
    def run_out(self, text: str, *options: str, of: str = LANGUAGE_MODEL):
        """A program that runs out of memory on a virtual GPU."""
        self.text = textwrap.dedent(of) + textwrap.dedent(text)
        script = self.write("train.py", self.text)
        return self.run_program(PYTHON, script, options=["--gpu", CARD, *options])

    def failures(self) -> list[dict]:
        return [dict(zip(COLUMNS, row, strict=True)) for row in self.query(FAILURES)]

    def keepers(self) -> list[str]:
        return [text for (text,) in self.query("SELECT text FROM v_keeper ORDER BY id")]

    def line_of(self, mark: str) -> int:
        lines = self.text.splitlines()
        return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"# {mark}"))

    def lines_of(self, failure: dict) -> list[int]:
        """Those of the program in its stack, innermost first."""
        lines, stack = [], failure["stack"]
        while stack is not None:
            ((file, line, stack),) = self.query(
                "SELECT v_frame.file, v_frame.line, stack.parent FROM stack JOIN v_frame ON "
                f"v_frame.id = stack.frame WHERE stack.id = {stack}"
            )
            if file.endswith("train.py"):
                lines.append(line)
        return lines

    def assert_verdict(self, ran, mark: str):
        """The last words of the command."""
        *_, verdict, next_command = ran.stderr.splitlines()
        where = f"temposcope: Out of memory at train.py:{self.line_of(mark)}"
        self.assertTrue(verdict.startswith(where), ran.stderr)
        self.assertEqual(next_command, f"temposcope: Next: temposcope explain {self.file}")

    def assert_memory_ran_out(self, failure: dict, mark: str):
        self.assertEqual(failure["error"], "OutOfMemoryError")
        self.assertGreater(failure["requested"], failure["free"])
        self.assertLessEqual(failure["allocated"], failure["reserved"])
        self.assertLessEqual(failure["reserved"] + failure["free"], failure["limit"])
        self.assertIn(self.line_of(mark), self.lines_of(failure))


class ThatEndTheProgram(Failures):
    def test_in_the_first_step(self):
        ran = self.run_out("train_step(256)\n")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("Recorded 0 of 3 steps in ", ran.stderr)
        self.assert_verdict(ran, "loss")
        self.assert_recorded(0, "incomplete")
        self.assertEqual(self.kinds(), ["broken"])
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "loss")
        self.assertEqual((failure["outcome"], failure["step"]), ("ended", 0))
        self.assertIn("CUDA out of memory", failure["message"])
        self.assertTrue(any("`logits`" in text for text in self.keepers()), self.keepers())

    def test_in_backward(self):
        ran = self.run_out("train_step(1)\nfor _ in range(4):\n    train_step(128)\n")
        self.assert_verdict(ran, "backward")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "backward")
        kind = f"SELECT kind FROM v_phase WHERE id = {failure['phase']}"
        self.assertEqual(self.query(kind), [("backward",)])
        self.assertEqual(self.kinds(), ["first", "broken"])
        keepers = self.keepers()
        self.assertTrue(any("`logits`" in text for text in keepers), keepers)
        # What autograd saved, and what is on its way, only the recorder knows.
        saved = "saved by LogSoftmaxBackward0, kept through `loss` of train_step()"
        self.assertTrue(any(text.startswith(saved) for text in keepers), keepers)
        self.assertIn("only C++ holds it: made by aten::nll_loss_backward in backward", keepers)

    @thorough
    def test_in_the_optimizer(self):
        """Weights and gradients take 32 GiB: one moment of the first weight fits, too."""
        ran = self.run_out("""
            import torch
            model = torch.nn.ModuleList(torch.nn.Linear(1 << 15, 1 << 15, bias=False, device="cuda")
                                        for _ in range(4))
            optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
            sum(weight.weight.sum() for weight in model).backward()
            optimizer.step()  # update
            """, of="")  # fmt: skip
        self.assert_verdict(ran, "update")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "update")
        self.assertEqual(failure["requested"], 4 * GIB)
        # What the optimizer has made so far has its names.
        names = self.query(
            "SELECT DISTINCT v_tensor.name FROM v_tensor JOIN v_storage ON v_storage.id = "
            "v_tensor.storage WHERE v_storage.role = 'optimizer_state'"
        )
        self.assertTrue(any("exp_avg" in name for (name,) in names), names)

    def test_while_the_model_is_built(self):
        ran = self.run_out("""
            import torch

            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = torch.nn.ModuleList()
                    for _ in range(60):
                        self.blocks.append(torch.nn.Linear(16384, 16384, device="cuda"))  # block

            net = Net()
            """, of="")  # fmt: skip
        self.assertEqual(ran.returncode, 1)
        self.assert_verdict(ran, "block")
        self.assert_recorded(0, "incomplete", beside=0)
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "block")
        self.assertEqual((failure["step"], failure["requested"]), (None, GIB))
        names = [name for (name,) in self.query("SELECT DISTINCT name FROM v_tensor")]
        self.assertIn("blocks.0.weight", names)

    def test_in_a_validation_between_two_steps(self):
        ran = self.run_out("""
            @torch.no_grad()
            def validate():
                outputs = []
                for _ in range(400):
                    tokens = torch.zeros(8, 512, dtype=torch.long, device="cuda")
                    outputs.append(model(tokens))  # output

            for _ in range(2):
                train_step(1)
            validate()
            """)  # fmt: skip
        self.assert_verdict(ran, "output")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "output")
        self.assertIsNone(failure["step"])
        self.assertEqual(self.kinds(), ["first", "whole"])
        self.assertTrue(any("list `outputs" in text for text in self.keepers()), self.keepers())

    @thorough
    def test_in_a_step_that_is_left_out(self):
        ran = self.run_out(
            "for _ in range(2):\n    train_step(1)\ntrain_step(256)\n", "--skip", "5"
        )
        self.assert_verdict(ran, "loss")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "loss")
        self.assertEqual(self.kinds(), ["first"])

    @thorough
    def test_a_program_that_exits_after_it(self):
        ran = self.run_out("""
            try:
                train_step(256)
            except torch.OutOfMemoryError:
                raise SystemExit("too large")
            """)  # fmt: skip
        self.assertEqual(ran.returncode, 1)
        self.assert_verdict(ran, "loss")
        (failure,) = self.failures()
        self.assertEqual((failure["outcome"], failure["error"]), ("ended", "OutOfMemoryError"))

    @thorough
    def test_another_error_that_comes_from_it(self):
        ran = self.run_out("""
            try:
                train_step(256)
            except torch.OutOfMemoryError as error:
                raise RuntimeError("training failed") from error
            """)  # fmt: skip
        self.assert_verdict(ran, "loss")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure | {"error": "OutOfMemoryError"}, "loss")
        self.assertEqual((failure["outcome"], failure["error"]), ("ended", "RuntimeError"))

    def test_in_a_spawned_process(self):
        ran = self.run_out(SPAWNED, "--steps", "60", of="")
        self.assertIn("the child ended with 1", ran.stdout)
        self.assert_verdict(ran, "kept")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "kept")
        self.assertEqual(failure["outcome"], "ended")
        self.assertTrue(any("list `kept" in text for text in self.keepers()), self.keepers())


class InALaterStep(Failures):
    def test_whole_steps_have_the_times_that_they_have_without_a_failure(self):
        phases = "SELECT kind, end_ns - start_ns FROM v_phase WHERE step = 1"
        times = []
        for largest in (2, 128):
            ran = self.run_out(f"""
                for batch in (2, 2, 2, {largest}):
                    train_step(batch)
                """, "--overwrite")  # fmt: skip
            self.assertEqual("Out of memory" in ran.stderr, largest == 128, ran.stderr)
            times.append(dict(self.query(phases)))
        self.assertEqual(times[0], times[1])


class AfterTheRecordedSteps(Failures):
    def look_at_second_trace(self, step: int, said: str, ran):
        """The first one is whole, and says nothing of the failure."""
        said = f"After them memory ran out in step {step}{said}."
        skip = f"--skip {step - 1} --steps 1 records that step."
        self.assertIn(f"Recorded 3 steps in {self.file}. {said} {skip}\n", ran.stderr)
        self.assert_recorded(3)
        self.assertEqual(self.failures(), [])
        names = sorted(path.name for path in self.folder.glob("out.*"))
        self.assertEqual(names, ["out.oom.tscope", "out.tscope"])
        self.assertIn("Memory ran out after the recorded steps: temposcope explain ",
                      self.succeed("explain", self.file).stdout)  # fmt: skip
        self.file = self.folder / "out.oom.tscope"

    def test_in_a_validation(self):
        ran = self.run_out("""
            @torch.no_grad()
            def validate(batches):
                outputs = []
                for _ in range(batches):
                    tokens = torch.zeros(8, 512, dtype=torch.long, device="cuda")
                    outputs.append(model(tokens))  # output

            for epoch in range(6):
                train_step(4)
                validate(4 if epoch < 3 else 100)
            """)  # fmt: skip
        self.assertEqual(ran.returncode, 1)
        self.look_at_second_trace(5, ", and the program ended with OutOfMemoryError", ran)
        self.assert_verdict(ran, "output")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "output")
        self.assertEqual(failure["requested"], 8 * 512 * 50000 * 4)
        self.assertGreater(failure["allocated"], 30 * GIB)
        self.assertTrue(any("list `outputs" in text for text in self.keepers()), self.keepers())
        command = json.loads(self.query("SELECT command FROM v_run")[0][0])
        self.assertEqual(command, [PYTHON, str(self.folder / "train.py")])
        self.assertEqual(self.told("explain", self.file)["verdict"]["kind"], "out_of_memory")

    def test_a_higher_peak_is_told_with_how_it_is_recorded(self):
        steps = "for batch in (1, 1, 1, 1, 4, 1):\n    train_step(batch)\n"
        ran = self.run_out(steps, "--json")
        peak = json.loads(ran.stdout)["later_peak_bytes"]
        self.assertIn(" in step 5: --skip 4 --steps 1 records it.\n", ran.stderr)
        fits = self.told("explain", self.file)
        self.assertEqual(fits["verdict"]["kind"], "fits")
        self.assertIn("; after the recorded steps ", fits["verdict"]["sentence"])
        self.run_out(steps, "--skip", "4", "--steps", "1", "--overwrite")
        self.assertEqual(self.told("info", self.file)["peak_allocated_bytes"], peak)
        ran = self.run_out(steps.replace("4", "1"), "--overwrite")
        self.assertNotIn("After the recorded steps", ran.stderr)

    @thorough
    def test_of_errors_that_the_program_catches_the_last_one_stays(self):
        ran = self.run_out("""
            for batch in (1, 1, 1, 1, 256, 1, 220, 1):
                try:
                    train_step(batch)
                except torch.OutOfMemoryError:
                    optimizer.zero_grad()
            """, "--json")  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.look_at_second_trace(6, "", ran)
        self.assert_verdict(ran, "loss")
        self.assertEqual(json.loads(ran.stdout)["failure_file"], str(self.file))
        *_, failure = self.failures()
        self.assert_memory_ran_out(failure, "loss")
        self.assertEqual(failure["requested"], 220 * 512 * 50000 * 4)

    @thorough
    def test_in_backward_the_line_is_that_of_the_thread_that_waits(self):
        ran = self.run_out("for _ in range(5):\n    train_step(1)\ntrain_step(128)\n")
        self.look_at_second_trace(6, ", and the program ended with OutOfMemoryError", ran)
        self.assert_verdict(ran, "backward")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "backward")

    @thorough
    def test_in_a_spawned_process(self):
        ran = self.run_out(SPAWNED, of="")
        self.assertIn("the child ended with 1", ran.stdout)
        self.look_at_second_trace(40, "", ran)
        self.assert_verdict(ran, "kept")
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "kept")
        self.assertTrue(any("list `kept" in text for text in self.keepers()), self.keepers())

    @thorough
    def test_of_a_rank_its_folder_opens_as_before(self):
        self.file = self.folder / "ranks"
        ran = self.run_out("for _ in range(5):\n    train_step(1)\ntrain_step(256)\n")
        *_, verdict, next_command = ran.stderr.splitlines()
        where = f"temposcope: rank 0: Out of memory at train.py:{self.line_of('loss')}"
        self.assertTrue(verdict.startswith(where), ran.stderr)
        second = self.file / "rank-0000.oom.tscope"
        self.assertEqual(next_command, f"temposcope: Next: temposcope explain {second}")
        self.succeed("info", self.file)  # it would refuse a snapshot beside a rank
        self.assertTrue(second.exists())

    @thorough
    def test_a_history_of_the_program_s_own_is_left_alone(self):
        ran = self.run_out("""
            torch.cuda.memory._record_memory_history(max_entries=7)
            for _ in range(5):
                train_step(1)
            print(len(torch.cuda.memory._snapshot()["device_traces"][0]))
            train_step(256)
            """)  # fmt: skip
        self.assertEqual(ran.stdout, "7\n")
        said = "After them the program ended with OutOfMemoryError. Record up to there with more"
        self.assert_one_sentence(ran, said)
        self.assertFalse((self.folder / "out.oom.tscope").exists())

    @thorough
    def test_the_next_run_replaces_both_traces(self):
        second = self.folder / "out.oom.tscope"
        second.touch()
        script = self.train_script()
        ran = self.run_program(PYTHON, script, "5")
        self.assertEqual(ran.returncode, 2)
        self.assertIn(f"{second} exists already: give another name, or --overwrite.", ran.stderr)
        self.run_well(PYTHON, script, "5", options=["--overwrite"])
        self.assert_recorded(3)
        self.assertFalse(second.exists())


class ThatTheProgramSurvives(Failures):
    def test_a_batch_that_is_halved(self):
        ran = self.run_out("""
            batch, done = 256, 0
            while done < 5:
                try:
                    train_step(batch)
                    done += 1
                except torch.OutOfMemoryError:
                    batch //= 4
            print("batch", batch)
            """)  # fmt: skip
        self.assertEqual((ran.returncode, ran.stdout), (0, "batch 64\n"), ran.stderr)
        self.assertIn("Recorded 3 steps in ", ran.stderr)
        self.assertEqual(self.kinds(), ["broken", "first", "whole", "whole", "whole"])
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "loss")
        self.assertEqual((failure["outcome"], failure["step"]), ("caught", 0))
        self.assertEqual(self.query("SELECT batch_size FROM v_run"), [(64,)])
        self.assertEqual(self.query("SELECT state FROM v_run"), [("complete",)])

    @thorough
    def test_a_step_is_taken_again_after_its_backward_failed(self):
        self.run_out("""
            for batch in (1, 1, 128, 1, 1):
                try:
                    train_step(batch)
                except torch.OutOfMemoryError:
                    optimizer.zero_grad()
            """)  # fmt: skip
        self.assertEqual(self.kinds(), ["first", "whole", "broken", "whole", "whole"])
        self.assertEqual([one["outcome"] for one in self.failures()], ["caught"])

    @thorough
    def test_an_update_without_the_batch_that_failed(self):
        """The optimizer runs in the step that failed, which does not count."""
        self.run_out("""
            for batch in (1, 1, 256, 1, 1):
                try:
                    train_step(batch)
                except torch.OutOfMemoryError:
                    optimizer.step()
            """)  # fmt: skip
        self.assertEqual(self.kinds(), ["first", "whole", "broken", "whole", "whole"])

    @thorough
    def test_a_forward_without_training(self):
        ran = self.run_out("""
            with torch.no_grad():
                for batch in (1, 1, 420, 1, 1):
                    try:
                        model(torch.zeros(batch, 512, dtype=torch.long, device="cuda"))  # forward
                    except torch.OutOfMemoryError:
                        pass
            """, of=LANGUAGE_MODEL.replace("optimizer =", "optimizer = None  #"))  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.kinds(), ["first", "whole", "broken", "whole", "whole"])
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "forward")
        self.assertEqual((failure["outcome"], failure["step"]), ("caught", 2))

    def test_in_a_thread(self):
        ran = self.run_out("""
            import threading

            def load():
                pinned = []
                while True:
                    pinned.append(torch.zeros(1 << 30, dtype=torch.uint8, device="cuda"))  # load

            loader = threading.Thread(target=load, name="loader")
            for step in range(5):
                if step == 2:
                    loader.start()
                    loader.join()
                train_step(1)
            """)  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.kinds(), ["first", "whole", "whole", "whole"])
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "load")
        self.assertEqual(failure["outcome"], "ended")
        keepers = self.keepers()
        self.assertTrue(any("`pinned" in text and "loader" in text for text in keepers), keepers)
        self.assert_verdict(ran, "load")

    def test_what_the_program_gets_is_torch_s_own_error(self):
        ran = self.run_out("""
            import gc
            try:
                train_step(256)
            except torch.OutOfMemoryError as error:
                print(str(error).startswith("CUDA out of memory. Tried to allocate"))
            gc.collect()
            print(torch.cuda.memory_allocated() < 1 << 30)
            """)  # fmt: skip
        self.assertEqual((ran.returncode, ran.stdout), (0, "True\nTrue\n"), ran.stderr)


class OfOtherKinds(Failures):
    def test_a_crash_is_a_failure_without_bytes(self):
        ran = self.run_out("for _ in range(2):\n    train_step(1)\nraise ValueError('no data')\n")
        self.assert_one_sentence(ran, "the program ended with ValueError.")
        (failure,) = self.failures()
        said = {"outcome": "ended", "error": "ValueError", "message": "no data"}
        self.assertEqual(failure | said, failure)
        self.assertIn(failure["requested"], (None, -1))
        self.assertEqual(self.lines_of(failure), [len(self.text.splitlines())])

    @thorough
    def test_an_error_after_one_that_was_caught(self):
        self.run_out("""
            try:
                train_step(256)
            except torch.OutOfMemoryError:
                pass
            raise ValueError("no data")
            """)  # fmt: skip
        errors = [(one["outcome"], one["error"]) for one in self.failures()]
        self.assertEqual(errors, [("caught", "OutOfMemoryError"), ("ended", "ValueError")])

    def test_keepers_that_cannot_be_found(self):
        ran = self.run_out("""
            import sys

            def fail(*_):
                raise RuntimeError("no way")

            sys.modules["temposcope._keeper_search"].Search.follow = fail
            try:
                train_step(256)
            except torch.OutOfMemoryError as error:
                print(str(error).startswith("CUDA out of memory. Tried to allocate"))
            """)  # fmt: skip
        self.assertEqual((ran.returncode, ran.stdout), (0, "True\n"), ran.stderr)
        (failure,) = self.failures()
        self.assert_memory_ran_out(failure, "loss")
        said = "SELECT explanation FROM v_health WHERE code = 'keepers_failed'"
        ((sentence,),) = self.query(said)
        self.assertTrue(sentence.startswith("keepers were not found: "), sentence)
        self.assertIn("RuntimeError (no way)", sentence)

    def test_ctrl_c(self):
        train = LANGUAGE_MODEL + textwrap.indent(
            "for _ in range(2):\n    train_step(1)\nprint('go', flush=True)\n"
            "import time; time.sleep(60)\n", "    ")  # fmt: skip
        script = self.write("train.py", train)
        process = subprocess.Popen(
            self.command(PYTHON, script, options=["--gpu", CARD]),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.assertEqual(process.stdout.readline(), "go\n")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        errors = [(one["outcome"], one["error"]) for one in self.failures()]
        self.assertEqual(errors, [("ended", "KeyboardInterrupt")])
        self.assert_recorded(1, "incomplete")

    @thorough
    def test_a_program_that_exits_well_has_no_failure(self):
        ran = self.run_out("for _ in range(2):\n    train_step(1)\nraise SystemExit(0)\n")
        self.assert_one_sentence(ran, "Recorded 1 of 3 steps in ")
        self.assertEqual(self.failures(), [])


class Keepers(Failures):
    def test_what_lives_on_after_the_steps_is_named(self):
        ran = self.run_out("""
            history = []
            for _ in range(4):
                tokens = torch.zeros(2, 512, dtype=torch.long, device="cuda")
                logits = model(tokens)
                history.append(logits)
                logits.float().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            """)  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        keepers = self.keepers()
        self.assertTrue(any("list `history[" in text for text in keepers), keepers)
        # Parameters and the optimizer's state have names already.
        self.assertFalse([text for text in keepers if "exp_avg" in text or "weight" in text])


class Launch(Failures):
    def test_the_trace_says_how_the_program_was_started(self):
        script = self.train_script()
        secret = "s3cret"
        variables = {
            "PYTORCH_ALLOC_CONF": "garbage_collection_threshold:0.9",
            "HF_TOKEN": secret,
            "TORCH_API_KEY": secret,
        }
        self.run_well(PYTHON, script, "4", "--token", secret, env=os.environ | variables)
        ((command, folder, environment),) = self.query(
            "SELECT command, folder, environment FROM v_run"
        )
        self.assertEqual(json.loads(command), [PYTHON, script, "4", "--token", "…"])
        self.assertEqual(os.path.realpath(folder), os.path.realpath(self.folder))
        environment = json.loads(environment)
        self.assertEqual(environment["PYTORCH_ALLOC_CONF"], variables["PYTORCH_ALLOC_CONF"])
        folders = environment.get("PYTHONPATH", "").split(os.pathsep)
        self.assertFalse([folder for folder in folders if folder.endswith("/start")])
        self.assertNotIn(secret.encode(), self.file.read_bytes())
        self.assertIn(("secret_in_command",), self.query("SELECT code FROM v_health"))


if __name__ == "__main__":
    main()
