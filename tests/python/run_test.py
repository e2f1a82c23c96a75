"""`temposcope run` on programs of many kinds: what is recorded, and what stays the program's own.

    run_test.py BIN_FOLDER
"""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import textwrap
import time
import unittest

from commands import BIN, Commands, main, temposcope, thorough

PYTHON = sys.executable

TRAIN = """
    import sys
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(int(sys.argv[1])):
        model(torch.randn(4, 8, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, device, flush=True)
    {end}
"""


class Run(Commands):
    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def program(self, text: str) -> str:
        return self.write("program.py", text)

    def train_script(self, end: str = "") -> str:
        return self.write("train.py", textwrap.dedent(TRAIN).format(end=end))

    def command(self, *words: str, options=()) -> list:
        return [BIN / "temposcope", "run", "-o", self.file, *options, "--", *words]

    def run_program(self, *words: str, options=(), **surroundings):
        return subprocess.run(
            self.command(*words, options=options),
            capture_output=True, text=True, cwd=self.folder, **surroundings,
        )  # fmt: skip

    def run_well(self, *words: str, options=(), **surroundings):
        ran = self.run_program(*words, options=options, **surroundings)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def assert_recorded(self, steps: int, state: str = "complete", beside: int = 1):
        """`beside`: steps that were not asked for, as the first one without --skip 0."""
        self.assertEqual(self.query("SELECT state FROM v_run"), [(state,)])
        self.assertEqual(self.query("SELECT count(*) FROM step"), [(beside + steps,)])

    def assert_one_sentence(self, ran, part: str):
        """Beside the command that comes next, which is the last line if there is a trace."""
        self.assertIn(part, ran.stderr)
        ours = [line for line in ran.stderr.splitlines() if line.startswith("temposcope: ")]
        has_trace = "temposcope: Recorded " in ran.stderr or ".tscope.partial.\n" in ran.stderr
        if has_trace:
            self.assertRegex(ours.pop(), "^temposcope: Next: temposcope explain .*out[.]tscope")
        self.assertEqual(len(ours), 1, ran.stderr)
        self.assertTrue(ours[0].endswith((".", "?")), ours)

    def assert_torch_refused(self, text: str, sentence: str, *options: str):
        """Before a program runs that finds this text beside itself when it imports torch."""
        package = self.folder / "torch"
        package.mkdir()
        (package / "__init__.py").write_text(text)
        program = self.program("import torch\nprint('ran')\n")
        ran = self.run_program(PYTHON, program, options=options)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn(sentence, ran.stderr)


    def kinds(self) -> list[str]:
        """Of the steps."""
        return [kind for (kind,) in self.query("SELECT kind FROM v_step ORDER BY id")]


class Programs(Run):
    def test_a_script_runs_to_its_end_and_its_steps_are_recorded(self):
        ran = self.run_well(PYTHON, self.train_script(), "6")
        self.assertEqual(ran.stdout, "".join(f"step {i} cpu\n" for i in range(6)))
        self.assert_one_sentence(ran, "Recorded 3 steps in ")
        self.assert_recorded(3)
        self.assertEqual(self.kinds(), ["first", "whole", "whole", "whole"])
        self.assertEqual(
            self.query("SELECT count(*) FROM v_storage WHERE role = 'optimizer_state'"), [(12,)]
        )

    def test_the_last_line_is_the_command_that_comes_next(self):
        ran = self.run_well(PYTHON, self.train_script(), "6")
        last = ran.stderr.splitlines()[-1]
        self.assertEqual(last, f"temposcope: Next: temposcope explain {self.file}")
        explained = temposcope(*last.split(" temposcope ")[1].split(), cwd=self.folder)
        self.assertEqual(explained.returncode, 0, explained.stderr)

    def test_the_program_ends_where_the_recording_does(self):
        ran = self.run_well(
            PYTHON, self.train_script(), "6", options=["--stop", "--steps", "2", "--skip", "0"]
        )
        self.assertEqual(ran.stdout, "step 0 cpu\n")
        self.assert_recorded(2, beside=0)
        self.assertEqual(self.kinds(), ["first", "whole"])

    def test_steps_between_the_first_one_and_those_asked_for_are_left_out(self):
        ran = self.run_well(PYTHON, self.train_script(), "7", options=["--skip", "3"])
        self.assert_one_sentence(ran, "Recorded 3 steps in ")
        self.assert_recorded(3)
        self.assertEqual(self.kinds(), ["first", "whole", "whole", "whole"])
        # What is left out has no ops, and its allocations are there.
        ((end, start, events),) = self.query(
            "SELECT a.end_ns, b.start_ns, b.first_event - a.last_event "
            "FROM step a JOIN step b ON a.id = 0 AND b.id = 1"
        )
        ops = f"SELECT count(*) FROM op WHERE start_ns > {end} AND end_ns < {start}"
        self.assertEqual(self.query(ops), [(0,)])
        self.assertGreater(events, 20)

    @thorough
    def test_a_module_of_a_package_runs(self):
        package = self.folder / "trainer"
        package.mkdir()
        (package / "__init__.py").write_text("import torch\n")
        (package / "__main__.py").write_text(textwrap.dedent(TRAIN).format(end=""))
        self.run_well(PYTHON, "-m", "trainer", "5")
        self.assert_recorded(3)

    @thorough
    def test_a_shell_script_that_starts_python_runs(self):
        train = self.train_script()
        script = self.write("train.sh", f"#!/bin/sh\ncd /\n{PYTHON} {train} 5 | cat\n")
        ran = self.run_program("sh", script)
        self.assertEqual(ran.stdout.count("step"), 5)
        self.assert_recorded(3)

    def test_the_name_of_the_trace_is_the_program_s(self):
        self.succeed("run", "--", PYTHON, self.train_script(), "4", cwd=self.folder)
        self.assertTrue((self.folder / "train.tscope").is_file())

    @thorough
    def test_workers_of_a_data_loader_are_not_recorded(self):
        script = self.program("""
            import torch

            class Data(torch.utils.data.Dataset):
                def __len__(self):
                    return 16

                def __getitem__(self, index):
                    return torch.nn.functional.gelu(torch.full((8,), float(index)))

            if __name__ == "__main__":
                model = torch.nn.Linear(8, 8)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for context in ("fork", "spawn"):
                    loader = torch.utils.data.DataLoader(
                        Data(), 4, num_workers=2, multiprocessing_context=context
                    )
                    for batch in loader:
                        optimizer.zero_grad()
                        model(batch).mean().backward()
                        optimizer.step()
            """)
        self.run_well(PYTHON, script, options=["--steps", "6"])
        self.assert_recorded(6)

    def test_a_step_of_a_gan_trains_both_models(self):
        script = self.program("""
            import torch
            from torch import nn

            class Generator(nn.Sequential): pass
            class Discriminator(nn.Sequential): pass

            make, judge = Generator(nn.Linear(4, 8)), Discriminator(nn.Linear(8, 1))
            sgd = lambda model: torch.optim.SGD(model.parameters(), lr=0.1)
            of_make, of_judge = sgd(make), sgd(judge)
            for _ in range(4):
                made = make(torch.randn(2, 4))
                for x, sign in ((made.detach(), 1), (torch.randn(2, 8), -1)):
                    (sign * judge(x).mean()).backward()
                of_judge.step()
                judge(made).mean().backward()
                of_make.step()
            """)
        self.run_well(PYTHON, script, options=["--skip", "0"])
        self.assert_recorded(3, beside=0)
        passes = "SELECT step, count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step"
        self.assertEqual(self.query(passes), [(0, 3), (1, 3), (2, 3)])
        names = self.query("SELECT DISTINCT name FROM v_tensor")
        self.assertIn(("Discriminator.0.weight.grad",), names)
        self.assertIn(("0.weight.grad",), names)

    def micro_batches_of(self, script: str) -> tuple:
        """Those of a step, and sequences a second times the time of a step."""
        self.file.unlink(missing_ok=True)
        self.run_well(PYTHON, script)
        told = self.told("info", self.file)
        throughput = told["throughput_sequences_per_s"]
        sequences = throughput and round(throughput * told["step_time_ns"] / 1e9)
        return told["gradient_accumulation_steps"], sequences

    @thorough
    def test_micro_batches_count_where_they_are_known(self):
        accumulating = """
            import torch

            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(4):
                for batch in {batches}:
                    model(torch.randn(batch, 8)).mean().backward()
                with torch.no_grad():
                    model(torch.randn(16, 8))
                optimizer.step()
                optimizer.zero_grad()
            """
        three = self.write("three.py", accumulating.format(batches=[4, 4, 4]))
        self.assertEqual(self.micro_batches_of(three), (3, 12))
        unlike = self.write("unlike.py", accumulating.format(batches=[4, 2]))
        self.assertEqual(self.micro_batches_of(unlike), (None, None))
        self.assertIn("B=4 and others", self.succeed("info", self.file).stdout)

    @thorough
    def test_optimizers_that_take_turns_train_an_unknown_number_of_samples(self):
        steps = """
            import torch

            first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
            optimizers = [torch.optim.Adam(one.parameters()) for one in (first, second)]
            for step in range(8):
                with torch.no_grad():
                    first(torch.randn(64, 8))
                {body}
            """
        in_turn = """for optimizer in optimizers:
                    second(first(torch.randn(4, 8))).mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()"""
        together = """second(first(torch.randn(4, 8))).mean().backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()"""
        self.assertEqual(
            self.micro_batches_of(self.program(steps.format(body=in_turn))), (None, None)
        )
        self.assertEqual(self.micro_batches_of(self.program(steps.format(body=together))), (1, 4))

    @thorough
    def test_a_closure_trains_on_one_batch_several_times(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2, tolerance_grad=0)
            for step in range(4):
                batch = torch.randn(4, 8)

                def closure():
                    optimizer.zero_grad()
                    loss = model(batch).square().mean()
                    loss.backward()
                    return loss

                optimizer.step(closure)
            """)
        self.assertEqual(self.micro_batches_of(script), (None, None))

    @thorough
    def test_an_optimizer_that_runs_no_more_does_not_hold_up_the_steps(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(4, 4)
            once, always = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
            for step in range(8):
                model(torch.randn(2, 4)).mean().backward()
                if step == 0:
                    once.step()
                always.step()
            """)
        self.run_program(PYTHON, script, options=["--skip", "0", "--steps", "5"])
        self.assert_recorded(5, beside=0)
        passes = "SELECT count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step"
        self.assertEqual(self.query(passes), [(1,)] * 5)

    TWO_PHASES = """
        import sys
        import torch
        from torch import nn

        nets = [nn.Linear(8, 8) for _ in range(2)]
        optimizers = [torch.optim.AdamW(net.parameters()) for net in nets]
        for net, optimizer in list(zip(nets, optimizers))[: int(sys.argv[1])]:
            for _ in range(int(sys.argv[2])):
                net(torch.randn(2, 8)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """

    def test_an_optimizer_that_runs_again_ends_the_step(self):
        """One that lives and does not run yet, or never, does not count."""
        script = self.write("two_phases.py", self.TWO_PHASES)
        passes = "SELECT count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step"
        for num_nets, count, steps in ((1, 4, 3), (1, 1, 1), (2, 4, 8), (2, 1, 1)):
            with self.subTest((num_nets, count)):
                options = ["--skip", "0", "--steps", str(steps), "--overwrite"]
                self.run_program(PYTHON, script, str(num_nets), str(count), options=options)
                self.assert_recorded(steps, beside=0)
                self.assertEqual(self.query(passes), [(2 if count == num_nets - 1 else 1,)] * steps)

    def test_co_trained_models_make_one_step(self):
        script = self.program("""
            import torch
            from torch import nn

            nets = [nn.Linear(8, 8) for _ in range(2)]
            optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
            for _ in range(4):
                for net, optimizer in zip(nets, optimizers):
                    net(torch.randn(2, 8)).sum().backward()
                    optimizer.step()
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        passes = "SELECT count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step"
        self.assertEqual(self.query(passes), [(2,)] * 4)

    def test_an_optimizer_that_never_runs_leaves_a_forward_a_step(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.no_grad():
                for _ in range(6):
                    model(torch.randn(2, 8))
            """)
        self.run_program(PYTHON, script)
        self.assert_recorded(3)
        self.assertEqual(self.query("SELECT DISTINCT kind FROM v_phase"), [("forward",)])

    def test_a_frozen_model_and_a_validation_are_inference(self):
        script = self.program("""
            import torch
            from torch import nn

            frozen, model = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(5):
                for _ in range(2):
                    with torch.no_grad():
                        h = frozen(torch.randn(2, 8))
                    model(h).sum().backward()
                optimizer.step()
                with torch.no_grad():
                    model(torch.randn(2, 8))
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        kinds = self.query("SELECT group_concat(kind, ' ') FROM v_phase GROUP BY step")
        one = "inference forward backward optimizer inference optimizer forward backward optimizer"
        self.assertEqual(kinds[0], (one,))
        self.assertEqual(kinds[1:], [("inference " + one,)] * 3)

    def test_a_teacher_after_its_student_is_inference(self):
        script = self.program("""
            import torch
            from torch import nn

            teacher, student = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8)
            optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
            for _ in range(5):
                x = torch.randn(2, 8)
                seen = student(x)
                with torch.no_grad():
                    wanted = teacher(x)
                nn.functional.mse_loss(seen, wanted).backward()
                optimizer.step()
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        kinds = self.query("SELECT group_concat(kind, ' ') FROM v_phase GROUP BY step")
        self.assertEqual(kinds, [("forward inference forward backward optimizer",)] * 4)

    def test_a_reentrant_checkpoint_outside_of_a_model_is_forward(self):
        script = self.program("""
            import torch
            from torch.utils.checkpoint import checkpoint

            blocks = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))
            optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
            for _ in range(5):
                x = blocks[0](torch.randn(2, 8))
                for block in blocks[1:]:
                    x = checkpoint(block, x, use_reentrant=True)
                x.sum().backward()
                optimizer.step()
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        kinds = self.query("SELECT group_concat(kind, ' ') FROM v_phase GROUP BY step")
        self.assertEqual(kinds, [("forward backward optimizer",)] * 4)

    def test_a_validation_before_the_training_is_no_step(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.no_grad():
                for _ in range(20):
                    model(torch.randn(2, 8))
            for _ in range(5):
                model(torch.randn(2, 8)).sum().backward()
                optimizer.step()
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        kinds = self.query("SELECT s.kind, count(*) FROM v_step s GROUP BY s.kind ORDER BY 2")
        self.assertEqual(kinds, [("first", 1), ("whole", 3)])
        passes = "SELECT count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step"
        self.assertEqual(self.query(passes), [(1,)] * 4)

    def test_a_model_is_the_main_one_though_its_validation_comes_first(self):
        program = self.program(
            """
            import torch
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
            optimizer = torch.optim.AdamW(model.parameters())
            with torch.no_grad():
                model(torch.randn(4, 8))
            for _ in range(4):
                model(torch.randn(4, 8)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            """
        )
        self.run_well(PYTHON, program)
        self.assertEqual(
            self.query("SELECT path FROM v_scope ORDER BY path"), [("0",), ("1",)]
        )

    def test_a_program_with_a_hook_of_its_own_at_each_optimizer_goes_on(self):
        program = self.program(
            """
            import torch
            from torch.optim.optimizer import register_optimizer_step_post_hook
            register_optimizer_step_post_hook(lambda *_: None)
            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for step in range(8):
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
            print("the end")
            """
        )
        self.assertIn("the end", self.run_well(PYTHON, program).stdout)
        self.assert_recorded(3)

    def test_a_profiler_of_the_program_runs_beside(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(64, 64).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            waits = torch.profiler.schedule(wait=1, warmup=1, active=2)
            with torch.profiler.profile(schedule=waits, profile_memory=True) as profiler:
                for _ in range(6):
                    model(torch.randn(8, 64, device="cuda")).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    profiler.step()
            print(len(profiler.key_averages()) > 0)
            """)
        ran = self.run_well(PYTHON, script, options=["--gpu", "a100-40gb"])
        self.assert_recorded(3)
        self.assertEqual(ran.stdout.split(), ["True"])
        notes = self.query(
            "SELECT count(*) FROM health h JOIN string s ON s.id = h.code "
            "WHERE s.text = 'profiled'"
        )
        self.assertEqual(notes, [(1,)])

    @thorough
    def test_the_student_and_not_its_teacher_is_the_model(self):
        frozen = "if teacher.requires_grad_(False):"
        for teach in ("with torch.no_grad():", frozen):
            script = self.write("distil.py", self.DISTIL.replace("TEACH", teach))
            self.run_well(PYTHON, script, options=["--overwrite"])
            self.assert_recorded(3)
            run = self.query("SELECT model, precision, batch_size FROM v_run")
            self.assertEqual(run, [("Student", "fp32", 2)])
            paths = {path for (path,) in self.query("SELECT path FROM v_scope")}
            self.assertEqual(paths, {"Teacher", "0", "Teacher.0"})

    DISTIL = """
        import torch
        from torch import nn

        class Teacher(nn.Sequential): pass
        class Student(nn.Sequential): pass

        teacher, student = Teacher(nn.Linear(4, 64).double()), Student(nn.Linear(4, 64))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(4):
            x = torch.randn(2, 4)
            TEACH
                wanted = teacher(x.double()).float()
            (student(x) - wanted).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    """

    @thorough
    def test_the_sitecustomize_of_the_user_still_runs(self):
        self.write("sitecustomize.py", "print('mine', flush=True)\n")
        ran = self.run_program(
            PYTHON, self.train_script(), "4", env=os.environ | {"PYTHONPATH": str(self.folder)}
        )
        self.assertTrue(ran.stdout.startswith("mine\nstep 0"), ran.stdout)
        self.assert_recorded(3)

    def test_torch_may_be_looked_for_before_it_is_imported(self):
        looks = "import importlib.util\nimportlib.util.find_spec('torch')\n"
        script = pathlib.Path(self.train_script())
        script.write_text(looks + script.read_text())
        self.run_program(PYTHON, str(script), "4")
        self.assert_recorded(3)

    def test_the_program_may_import_temposcope_first(self):
        script = pathlib.Path(self.train_script())
        script.write_text("import temposcope\nimport temposcope._program\n" + script.read_text())
        paths = {"PYTHONPATH": str(BIN / "python")}  # installed, or not
        for environment in (os.environ | paths, os.environ | {"PYTHONPATH": ""}):
            with self.subTest(environment["PYTHONPATH"]):
                self.run_well(PYTHON, str(script), "4", options=["--overwrite"], env=environment)
                self.assert_recorded(3)

    def test_an_optimizer_without_a_backward_ends_a_step(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(4):
                with torch.no_grad():
                    score = model(torch.randn(4, 8)).mean()
                    for parameter in model.parameters():
                        parameter.grad = score * torch.randn_like(parameter)
                optimizer.step()
            """)
        self.run_well(PYTHON, script)
        self.assert_recorded(3)
        gradients = self.query("SELECT count(*) FROM v_storage WHERE role = 'gradient'")
        self.assertGreaterEqual(gradients, [(6,)])  # two in each step

    def test_backward_of_the_programs_own_function_gets_its_own_parameters(self):
        script = self.program("""
            import torch

            class Product(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, weight):
                    ctx.save_for_backward(x, weight)
                    return x @ weight.t()

                @staticmethod
                def backward(ctx, gradient):
                    x, weight = ctx.saved_tensors
                    weight.main_grad += gradient.t() @ x
                    return gradient @ weight, None

            model = torch.nn.Linear(8, 8, bias=False)
            model.weight.main_grad = torch.zeros(8, 8)
            model.forward = lambda x: Product.apply(x, model.weight)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.ones(2, 8, requires_grad=True)).sum().backward()
                optimizer.step()
            print(float(model.weight.main_grad.sum()))
            """)
        ran = self.run_well(PYTHON, script)
        self.assertEqual(ran.stdout.split()[-1], str(4 * 2 * 64.0))

    def test_the_layer_that_an_encoder_copies_is_held_and_no_parameter_of_the_model(self):
        script = self.program("""
            import torch

            layer = torch.nn.TransformerEncoderLayer(256, 2, 256, batch_first=True)
            model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.ones(2, 8, 256)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            """)
        self.run_well(PYTHON, script)
        rows = self.told("info", self.file, "--peak", "--by", "class")["rows"]
        sizes = {row["name"]: row["size_bytes"] for row in rows}
        self.assertGreater(sizes["held"], sizes["parameter"] / 2 * 0.9)
        self.assertLess(sizes["held"], sizes["parameter"] / 2 * 1.1)

    def test_a_program_that_marks_its_steps_needs_no_optimizer(self):
        script = self.program("""
            import torch
            import temposcope

            weight = torch.randn(8, 8, requires_grad=True)
            for _ in range(4):
                with temposcope.phase("forward"):
                    loss = (torch.randn(4, 8) @ weight).square().mean()
                loss.backward()
                temposcope.step()
            """)
        self.run_well(PYTHON, script, options=["--skip", "0"])
        self.assert_recorded(3, beside=0)

    def test_json_stands_alone_on_standard_output(self):
        ran = self.run_program(PYTHON, self.train_script(), "5", options=["--json"])
        document = json.loads(ran.stdout)
        self.assertEqual(
            document,
            {
                "file": str(self.file), "state": "complete", "steps": 3, "exit_code": 0,
                "sentence": f"Recorded 3 steps in {self.file}.", "applied": None,
                "verdict": None, "failure_file": None, "value_reads": [],
                "later_peak_bytes": None,
            },
        )  # fmt: skip
        self.assertIn("step 4 cpu", ran.stderr)


class OnAVirtualGpu(Run):
    def test_the_program_finds_the_card(self):
        script = self.train_script("print(torch.cuda.get_device_name())")
        ran = self.run_well(PYTHON, script, "5", options=["--gpu", "h100-sxm"])
        self.assertIn("step 4 cuda\n", ran.stdout)
        self.assertIn("H100", ran.stdout)
        self.assert_recorded(3)
        self.assertEqual(self.query("SELECT source FROM v_run"), [("predicted",)])
        (kernels,) = self.query("SELECT count(*) FROM kernel")[0]
        self.assertGreater(kernels, 30)

    def test_training_on_the_cpu_is_not_taken_for_the_card(self):
        on_cpu = TRAIN.replace("torch.cuda.is_available()", "0")
        script = self.program(textwrap.dedent(on_cpu).format(end=""))
        ran = self.run_program(PYTHON, script, "3", options=["--gpu", "h100-sxm"])
        self.assertEqual((ran.returncode, ran.stdout.count("cpu")), (0, 3), ran.stderr)
        self.assert_one_sentence(ran, "trains on the CPU and not on the virtual NVIDIA H100")
        self.assertFalse(self.file.exists())

    def with_variable(self, variable: str):
        words = ["env", variable, PYTHON, self.train_script(), "3"]
        return self.run_program(*words, options=["--gpu", "h100-sxm"])

    @thorough
    def test_a_program_without_the_caching_allocator_runs_unrecorded(self):
        ran = self.with_variable("PYTORCH_NO_CUDA_MEMORY_CACHING=1")
        self.assertEqual((ran.returncode, ran.stdout.count("cuda")), (0, 3), ran.stderr)
        self.assert_one_sentence(ran, "PYTORCH_NO_CUDA_MEMORY_CACHING is set")
        self.assertFalse(self.file.exists())

    @thorough
    def test_the_allocator_of_cuda_is_not_on_the_virtual_gpu(self):
        ran = self.with_variable("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("does not have cudaDeviceGetDefaultMemPool", ran.stderr)
        self.assertFalse(self.file.exists())

    @thorough
    def test_a_python_without_the_card_is_refused(self):
        words = ["env", "-u", "LD_PRELOAD", PYTHON, self.train_script(), "3"]
        ran = self.run_program(*words, options=["--gpu", "h100-sxm"])
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("taken LD_PRELOAD out of the environment", ran.stderr)
        self.assertFalse(self.file.exists())

    def test_times_are_modelled(self):
        self.run_well(PYTHON, self.train_script(), "5", options=["--gpu", "h100-sxm"])
        self.assertEqual(self.query("SELECT time_basis FROM v_run"), [("modelled",)])
        steps = self.query("SELECT start_ns, end_ns FROM v_step WHERE kind = 'whole' ORDER BY id")
        self.assertEqual(len({end - start for start, end in steps}), 1)  # of equal steps
        for start, end in steps:
            self.assertGreater(end - start, 10_000)
            (inside,) = self.query(
                "SELECT sum(end_ns - start_ns) FROM kernel "
                f"WHERE start_ns BETWEEN {start} AND {end}"
            )[0]
            self.assertGreater(inside, 0)
            self.assertLessEqual(inside, end - start)
        # Every launch of a step has a time, in the parameter update too.
        (timeless,) = self.query(
            "SELECT count(*) FROM kernel JOIN op ON op.id = kernel.op "
            "WHERE op.phase IS NOT NULL AND kernel.end_ns <= kernel.start_ns"
        )[0]
        self.assertEqual(timeless, 0)

    @thorough
    def test_a_card_without_a_model_of_its_kernels(self):
        script = self.train_script("raise SystemExit")
        ran = self.run_program(PYTHON, script, "5", options=["--gpu", "mi250x"])
        self.assertEqual(ran.returncode, 1)
        self.assert_one_sentence(ran, "does not run CUDA")

    def test_memory_that_runs_out_is_recorded(self):
        script = self.program("""
            import torch

            model = torch.nn.Linear(1 << 16, 1 << 16, device="cuda")  # 16 GiB
            model(torch.randn(4, 1 << 16, device="cuda")).mean().backward()
            torch.optim.AdamW(model.parameters()).step()
            """)
        ran = self.run_program(
            PYTHON, script, options=["--gpu", "a100-40gb", "--skip", "0", "--steps", "1"]
        )
        self.assertEqual(ran.returncode, 1)
        self.assertIn("OutOfMemoryError", ran.stderr)
        self.assertIn("(marked incomplete)", ran.stderr)
        self.assert_recorded(1, "incomplete", beside=0)
        self.assertIn(("out_of_memory",), self.query("SELECT code FROM v_health"))

    def test_a_card_that_does_not_exist(self):
        ran = self.run_program(PYTHON, "-c", "", options=["--gpu", "h1000"])
        self.assertEqual(ran.returncode, 2)
        self.assert_one_sentence(ran, "h1000")

    def test_a_torch_without_cuda(self):
        torch = "class version: cuda = None\n__version__ = '2.11.0+cpu'\n"
        self.assert_torch_refused(torch, "has no CUDA", "--gpu", "h100-sxm")


class LargestBatch(Run):
    SCRIPT = """
        import sys
        import torch

        size, layers = int(sys.argv[1]), int(sys.argv[2])
        torch.set_default_device("cuda")
        weights = [torch.nn.Linear(1 << 14, 1 << 14) for _ in range(layers)]
        model = torch.nn.Sequential(*weights)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.ones(size << 14, 1 << 14, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """

    CAUGHT = """
        import sys
        import torch

        size = int(sys.argv[1])
        model = torch.nn.Linear(1 << 14, 1 << 14, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            try:
                model(torch.ones(size << 14, 1 << 14, device="cuda")).mean().backward()
            except torch.OutOfMemoryError:
                if sys.argv[2] == "end":
                    sys.exit("too large")
                model(torch.ones(16, 1 << 14, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """

    def search(self, *arguments, name="N", options=()):
        options = ("--gpu", "a100-40gb", "--max", name, *options)
        return temposcope("run", *options, "--", *arguments, cwd=self.folder)

    def test_it_is_found_by_running(self):
        script = self.write("large.py", self.SCRIPT)
        options = ["--json", "-o", "max.csv", "--values", "{LAYERS}=4,6"]
        ran = self.search(PYTHON, script, "{N}", "{LAYERS}", options=options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        rows = json.loads(ran.stdout)["rows"]
        lines = list(csv.DictReader((self.folder / "max.csv").read_text().splitlines()))
        self.assertEqual([row["values"] for row in rows], [{"LAYERS": "4"}, {"LAYERS": "6"}])
        # Four layers' weights and their gradients take 8 GiB. Of each batch of 1 << 14 rows the
        # inputs of the layers are kept, 1 GiB each.
        self.assertGreater(rows[0]["max_batch_size"], 2)
        self.assertGreater(rows[0]["max_batch_size"], rows[1]["max_batch_size"])
        for row, cells in zip(rows, lines, strict=True):
            self.assertEqual(row["gpu"], "a100-40gb")
            self.assertEqual(row["failing_batch_size"], row["max_batch_size"] + 1)
            self.assertLess(row["peak_allocated_bytes"], 40 << 30)
            self.assertGreater(row["failing_by_class"]["activation_bytes"], 1 << 30)
            self.assertGreater(row["failing_requested_bytes"], row["failing_free_bytes"])
            largest = row["failing_tensors"][0]
            self.assertGreaterEqual(largest["size_bytes"], 1 << 30)
            for key in ("gpu", "max_batch_size", "failing_batch_size", "failing_requested_bytes"):
                self.assertEqual(cells[key], str(row[key]))
            activation_bytes = row["failing_by_class"]["activation_bytes"]
            self.assertEqual(cells["failing_activation_bytes"], str(activation_bytes))
            self.assertTrue(cells["failing_tensors"].startswith(largest["name"]))
            self.assertEqual(cells["LAYERS"], row["values"]["LAYERS"])

    @thorough
    def test_a_program_that_catches_its_own_out_of_memory(self):
        caught = self.write("caught.py", self.CAUGHT)
        for then in ("go on", "end"):
            ran = self.search(PYTHON, caught, "{N}", then, options=["--json"])
            self.assertEqual(ran.returncode, 0, ran.stderr)
            (row,) = json.loads(ran.stdout)["rows"]
            self.assertGreater(row["max_batch_size"], 2)
            self.assertLess(row["max_batch_size"], 20)  # a batch's input and output take 2 GiB
            self.assertGreater(row["failing_requested_bytes"], row["failing_free_bytes"])

    @thorough
    def test_a_program_that_fails_for_another_reason(self):
        ran = self.search(PYTHON, "-c", "import torch; raise ValueError('no')", "{N}")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("With {N} = 2 the program ended with exit code 1: ValueError: no", ran.stderr)

    @thorough
    def test_ctrl_c_ends_the_search(self):
        script = self.write("slow.py", """
            import pathlib, sys, time
            pathlib.Path(f"started{sys.argv[1]}{sys.argv[2]}").touch()
            time.sleep(600)
            """)  # fmt: skip
        command = [BIN / "temposcope", "run", "--gpu", "a100-40gb,h100-sxm", "--max", "N"]
        process = subprocess.Popen(
            [*command, "--values", "L=1,2", "--", PYTHON, script, "{N}", "{L}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            start_new_session=True,
        )  # fmt: skip
        while not list(self.folder.glob("started*")):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1)
        self.assertIn("The search was cancelled.", errors)
        self.assertEqual(len(list(self.folder.glob("started*"))), 1)

    def test_what_only_a_trace_needs(self):
        for option in (["--steps", "4"], ["--skip", "0"], ["--stop"], ["--no-stacks"]):
            ran = self.search(PYTHON, "train.py", "{N}", options=option)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""))
            self.assert_one_sentence(ran, f"{option[0]} says how a trace is recorded")

    def test_a_placeholder_that_is_not_used(self):
        for word, search, option in (
            ("{M}", {}, "--max N: no argument of the program holds {N};"),
            ("8", {"name": "{N}"}, "--max N: no argument of the program holds {N};"),
            ("{N}", {"options": ["--values", "L=2"]},
             "--values L=...: no argument of the program holds {L};"),
            ("{N}", {"options": ["--values", "{N}=4"]},
             "--values {N}=4: {N} is the batch size that --max looks for;"),
        ):  # fmt: skip
            ran = self.search(PYTHON, "train.py", word, **search)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""))
            self.assert_one_sentence(ran, option)


class ProgramsThatEndEarly(Run):
    def test_an_exit_code_is_passed_on(self):
        ran = self.run_program(PYTHON, self.train_script("sys.exit(7)"), "4")
        self.assertEqual(ran.returncode, 7)
        self.assert_recorded(3)

    def test_an_exception_keeps_what_was_recorded(self):
        ran = self.run_program(PYTHON, self.train_script("raise ValueError('no')"), "3")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("ValueError: no", ran.stderr)
        self.assert_one_sentence(ran, "Recorded 2 of 3 steps")
        self.assertIn('"micro_batches":1', self.query("SELECT workload FROM v_run")[0][0])
        self.assert_one_sentence(ran, "ended with ValueError")
        self.assert_recorded(2, "incomplete")

    def test_a_program_that_ends_before_its_steps(self):
        ran = self.run_well(PYTHON, self.train_script(), "1")
        self.assert_one_sentence(ran, "Recorded the first step and 0 of 3 steps after it in ")
        self.assert_recorded(0, "incomplete")

    def test_a_program_that_ends_before_its_first_step(self):
        script = self.program("""
            import torch
            model = torch.nn.Linear(8, 8).cuda()
            raise ValueError("no data")
            """)
        ran = self.run_program(PYTHON, script, options=["--gpu", "rtx4090"])
        self.assertEqual(ran.returncode, 1)
        self.assert_one_sentence(ran, "the program ended with ValueError before its first step")
        self.assertFalse(self.file.exists())

    def test_a_program_without_torch(self):
        ran = self.run_program(PYTHON, "-c", "print(1)")
        self.assertEqual((ran.returncode, ran.stdout), (0, "1\n"))
        self.assert_one_sentence(ran, "the recorder saw no Python process import torch")

    def test_a_python_that_keeps_the_recorder_out(self):
        packages = sysconfig.get_path("purelib")
        for option, path in (("-I", ""), ("-E", ""), ("-S", packages)):
            program = f"import sys; sys.path.append({path!r}); import torch; print(1); sys.exit(5)"
            ran = self.run_program(PYTHON, option, "-c", program)
            self.assertEqual((ran.returncode, ran.stdout), (5, "1\n"), ran.stderr)
            self.assert_one_sentence(ran, "ended with exit code 5, and the recorder saw no")
            self.assertIn("(python -I, -E and -S keep the recorder out)", ran.stderr)

    def test_a_program_without_a_step(self):
        ran = self.run_program(PYTHON, "-c", "import torch; print(torch.ones(2).sum().item())")
        self.assertEqual((ran.returncode, ran.stdout), (0, "2.0\n"))
        self.assert_one_sentence(ran, "before a model ran a training step")
        self.assertIn("marks its steps with temposcope.step()", ran.stderr)

    def test_a_program_that_is_not_there(self):
        ran = self.run_program(PYTHON, "nosuch.py")
        self.assertEqual(ran.returncode, 2)
        self.assertNotIn("Traceback", ran.stderr)
        self.assert_one_sentence(ran, "the program ended with exit code 2, and")

    def started(self):
        script = self.train_script("import time; time.sleep(60)")
        process = subprocess.Popen(
            self.command(PYTHON, script, "3"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        for _ in range(3):
            process.stdout.readline()
        return process

    def test_ctrl_c_keeps_what_was_recorded(self):
        process = self.started()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn("ended with KeyboardInterrupt", errors)
        self.assert_recorded(2, "incomplete")

    @thorough
    def test_a_signal_that_nohup_ignores_stays_ignored(self):
        script = self.train_script("sys.stdin.readline()")
        ignoring = ["sh", "-c", 'trap "" HUP; exec "$0" "$@"']
        process = subprocess.Popen(
            [*ignoring, *self.command(PYTHON, script, "4")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        for _ in range(4):
            process.stdout.readline()
        os.killpg(process.pid, signal.SIGHUP)
        _, errors = process.communicate("go on\n", timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assert_recorded(3)

    @thorough
    def test_an_ignored_sigchld_hides_no_exit_code(self):
        ran = subprocess.run(
            self.command("sh", "-c", "exit 7"), capture_output=True, text=True, cwd=self.folder,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )  # fmt: skip
        self.assertEqual(ran.returncode, 7, ran.stderr)

    @thorough
    def test_a_closed_standard_error_is_no_failure(self):
        closing = ["sh", "-c", 'exec "$0" "$@" 0<&- 2>&-']
        ran = subprocess.run(
            [*closing, *self.command(PYTHON, self.train_script(), "4")],
            capture_output=True, text=True, cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(ran.stdout.count("step"), 4)
        self.assert_recorded(3)

    def test_a_killed_program_leaves_its_partial(self):
        process = self.started()
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
        )
        os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertIn(".partial", errors)
        partial = f"{self.file}.partial"
        self.assertEqual(self.query("SELECT count(*) FROM step", partial), [(3,)])

    @thorough
    def test_a_program_that_is_killed_before_its_recording(self):
        script = self.program("import os, torch\nos.kill(os.getpid(), 15)\n")
        stale = pathlib.Path(f"{self.file}.partial")
        stale.write_text("of another run")
        os.utime(stale, (1e9, 1e9))
        ran = self.run_program(PYTHON, script)
        self.assertEqual(ran.returncode, 128 + signal.SIGTERM)
        self.assert_one_sentence(ran, "ended with exit code 143 before its recording began")

    def test_a_crash_leaves_its_partial(self):
        script = self.train_script("import ctypes; ctypes.string_at(0)")
        ran = self.run_program(PYTHON, script, "3")
        self.assertEqual(ran.returncode, 128 + signal.SIGSEGV)
        self.assert_one_sentence(ran, f"the steps before are in {self.file}.partial")
        self.assertEqual(self.query("SELECT count(*) FROM step", f"{self.file}.partial"), [(3,)])

    @thorough
    def test_much_output_passes(self):
        program = "import torch; print('x' * 5_000_000)"
        ran = self.run_program(PYTHON, "-c", program)
        self.assertEqual(len(ran.stdout), 5_000_001)


class BadInput(Run):
    def refused(self, *arguments, code: int, part: str):
        ran = temposcope("run", *arguments, cwd=self.folder)
        self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
        self.assert_one_sentence(ran, part)

    def test_no_program(self):
        self.refused(code=2, part="temposcope run -- python train.py")
        self.refused("--", code=2, part="temposcope run -- python train.py")

    def test_a_program_that_does_not_exist(self):
        self.refused("--", "no-such-program", code=1, part="Cannot start no-such-program")

    def test_numbers_of_steps(self):
        self.refused("--steps", "0", "--", "true", code=2, part="--steps is 0")
        self.refused("--skip", "-1", "--", "true", code=2, part="--skip is -1")

    def test_stacks_that_are_asked_for_and_left_out(self):
        for option in ("--stacks", "--cpp-stacks"):
            self.refused("--no-stacks", option, "--", "true", code=2, part="give one of them.")

    def test_files(self):
        self.refused("-o", "a.txt", "--", "true", code=2, part="give a name that ends in .tscope.")
        self.refused("-o", "/dev/null/a.tscope", "--", "true", code=1, part="cannot be made")
        self.file.write_text("mine")
        self.refused("-o", self.file, "--", "true", code=2, part="exists already")
        self.assertEqual(self.file.read_text(), "mine")

    def test_another_version_of_torch(self):
        version = "class version:\n    cuda = '12.8'\n\n__version__ = '2.99.0'\n"
        self.assert_torch_refused(version, "built for torch 2.")


if __name__ == "__main__":
    main()
