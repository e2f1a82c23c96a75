"""A recording is a guest: what torch and the program do besides goes on as without it."""

import contextlib
import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import temposcope
from commands import Commands
from temposcope import RecordingError, _describe, _recorder


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(3)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Checkpointed(Mlp):
    def __init__(self, reentrant: bool):
        super().__init__()
        self.reentrant = reentrant

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, dy):
        (x,) = context.saved_tensors
        return 2 * x * dy


class Recorded(Commands):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.file = f"{self.folder}/step.tscope"
        self.x = torch.randn(32, 16)

    def gradients(self, model, step=None):
        model.zero_grad()
        step(model) if step else model(self.x.clone().requires_grad_()).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    def assert_same_gradients(self, model, step=None):
        plain = self.gradients(model, step)
        with temposcope.record(self.file, model):
            recorded = self.gradients(model, step)
        for a, b in zip(plain, recorded, strict=True):
            self.assertTrue(torch.equal(a, b))

    def saved_bytes(self) -> int:
        return self.told("info", self.file, "--ledger")["total_bytes"]


class Guest(Recorded):
    # ---- hooks of torch's own

    def test_a_checkpoint_without_reentry_keeps_only_its_inputs(self):
        plain = Mlp()
        self.assert_same_gradients(plain)
        all_bytes = self.saved_bytes()
        self.assert_same_gradients(Checkpointed(reentrant=False))
        kept_bytes = self.saved_bytes()
        self.assertLess(kept_bytes, all_bytes / 4)

    def test_a_reentrant_checkpoint_works(self):
        self.assert_same_gradients(Checkpointed(reentrant=True))

    def test_save_on_cpu_keeps_its_tensors_itself(self):
        def step(model):
            with torch.autograd.graph.save_on_cpu():
                loss = model(self.x).square().mean()
            loss.backward()

        self.assert_same_gradients(Mlp(), step)
        self.assertEqual(self.saved_bytes(), 0)

    def test_hooks_of_the_program_come_first(self):
        packed = []

        def step(model):
            with torch.autograd.graph.saved_tensors_hooks(
                lambda t: packed.append(t.numel()) or t, lambda t: t
            ):
                loss = model(self.x).square().mean()
            loss.backward()

        self.assert_same_gradients(Mlp(), step)
        self.assertEqual(packed[: len(packed) // 2], packed[len(packed) // 2 :])

    def test_a_change_in_place_of_a_saved_tensor_is_an_error(self):
        weight = torch.randn(16, 16, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            with temposcope.record(self.file):
                hidden = (self.x @ weight).sigmoid()
                hidden.add_(1)
                hidden.sum().backward()

    # ---- what autograd offers

    def test_functions_of_the_program_work(self):
        self.assert_same_gradients(
            Mlp(), lambda model: Square.apply(model(self.x)).mean().backward()
        )

    def test_gradients_of_gradients_work(self):
        def step(model):
            x = self.x.clone().requires_grad_()
            (dx,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
            dx.square().mean().backward()

        def run(model):
            model.zero_grad()
            step(model)
            return [p.grad.clone() for p in model.parameters() if p.grad is not None]

        model = Mlp()
        plain = run(model)
        with temposcope.record(self.file, model):
            recorded = run(model)
        self.assertGreater(len(plain), 0)
        for a, b in zip(plain, recorded, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_transforms_work(self):
        model = Mlp()
        parameters = dict(model.named_parameters())

        def loss(parameters, x):
            return torch.func.functional_call(model, parameters, (x,)).square().mean()

        per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
        plain = per_sample(parameters, self.x)
        with temposcope.record(self.file, model):
            recorded = per_sample(parameters, self.x)
        for name in parameters:
            self.assertTrue(torch.equal(plain[name], recorded[name]))

    def test_anomaly_mode_still_names_the_line(self):
        def step():
            x = torch.tensor([-1.0], requires_grad=True)
            with torch.autograd.detect_anomaly(check_nan=True):
                x.sqrt().sum().backward()

        with self.assertWarns(UserWarning), self.assertRaisesRegex(RuntimeError, "SqrtBackward0"):
            with temposcope.record(self.file):
                step()

    def test_compiled_models_work(self):
        model = Mlp()
        for backend in ("eager", "aot_eager"):
            with self.subTest(backend=backend):
                torch._dynamo.reset()
                self.assert_same_gradients(torch.compile(model, backend=backend))

    # ---- what the program does

    def test_an_exception_in_a_module_leaves_nothing_open(self):
        class Broken(Mlp):
            def forward(self, x):
                self.layers[0](x)
                raise ValueError("no")

        with self.assertRaises(ValueError), temposcope.record(self.file):
            Broken()(self.x)
        self.assertEqual(self.query("SELECT state FROM v_run"), [("incomplete",)])
        self.assert_same_gradients(Mlp())
        paths = {path for (path,) in self.query("SELECT path FROM v_scope")}
        self.assertIn("layers.0.1", paths)
        self.assertFalse(any("Broken" in path for path in paths))

    def test_a_model_can_be_copied_and_pickled_in_a_recording(self):
        model = Mlp()
        with temposcope.record(self.file, model):
            self.gradients(model)
            copied = copy.deepcopy(model)
            loaded = pickle.loads(pickle.dumps(model))
        for other in (copied, loaded):
            self.assertTrue(torch.equal(other(self.x), model(self.x)))

    def test_a_pickled_model_does_not_need_temposcope(self):
        model = nn.Linear(16, 4)
        with temposcope.record(self.file, model):
            self.gradients(model)
            text = pickle.dumps(model)
        self.assertNotIn(b"temposcope.", text)
        self.assertNotIn(b"_session", text)

    def test_nothing_of_the_program_is_kept_alive(self):
        def train():
            model = Mlp()
            optimizer = torch.optim.Adam(model.parameters())
            with temposcope.record(self.file, model, optimizer):
                model(self.x).mean().backward()
                optimizer.step()
            return [torch.utils.weak.WeakIdRef(p) for p in model.parameters()]

        references = train()
        gc.collect()
        self.assertTrue(all(reference() is None for reference in references))

    def test_no_hook_stays(self):
        model = Mlp()
        with temposcope.record(self.file, model):
            self.gradients(model)
        model(self.x)
        self.assertFalse(nn.modules.module._global_forward_pre_hooks)
        self.assertFalse(nn.modules.module._global_forward_hooks)
        self.assertFalse(model._forward_pre_hooks)
        self.assertIs(
            torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward
        )

    def test_a_forked_process_records_nothing_and_does_no_harm(self):
        model = Mlp()
        with temposcope.record(self.file, model):
            self.gradients(model)
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    model(self.x)  # torch refuses a backward in a forked process
                    status = 0
                os._exit(status)
            _, status = os.waitpid(child, 0)
            self.gradients(model)
        self.assertEqual(status, 0)
        self.assertEqual(self.query("SELECT count(*) FROM step"), [(2,)])

    def test_data_loaders_with_workers_work(self):
        data = torch.utils.data.TensorDataset(self.x)
        loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
        model = Mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with temposcope.record(self.file, model, optimizer) as recording:
            for (batch,) in loader:
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
        self.assertEqual(recording.recorded_steps, 4)
        self.assertEqual(self.query("SELECT state FROM v_run"), [("complete",)])

    def test_a_model_can_be_saved_and_loaded_in_a_recording(self):
        model = Mlp()
        with temposcope.record(self.file, model):
            buffer = io.BytesIO()
            torch.save(model.state_dict(), buffer)
            buffer.seek(0)
            model.load_state_dict(torch.load(buffer))
            self.gradients(model)


class Threads(Recorded):
    PROGRAM = """
        import sys, threading
        import torch
        import temposcope

        def train():
            model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Linear(64, 16))
            optimizer = torch.optim.SGD(model.parameters()) if sys.argv[2] == "optimizer" else None
            for _ in range(20):
                model(torch.randn(8, 16)).square().mean().backward()
                if optimizer is not None:
                    optimizer.step()

        with temposcope.record(sys.argv[1]):
            threads = [threading.Thread(target=train) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """

    def test_models_train_on_several_threads(self):
        for kind in ("optimizer", "none"):
            with self.subTest(kind):
                program = textwrap.dedent(self.PROGRAM)
                command = [sys.executable, "-c", program, self.file, kind]
                ran = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(self.query("SELECT state FROM v_run"), [("complete",)])
                self.assertGreater(self.query("SELECT count(*) FROM step")[0][0], 1)


class NestedTensors(Recorded):
    """Their parts have shapes of their own: torch has no sizes of the whole."""

    def assert_recorded_quietly(self, program: str):
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), self.file]
        ran = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(self.query("SELECT state FROM v_run"), [("complete",)])
        outermost = self.query("SELECT count(*) FROM op WHERE parent IS NULL")[0][0]
        self.assertGreater(outermost, 10)

    def test_an_encoder_that_skips_padding(self):
        self.assert_recorded_quietly("""
            import sys
            import torch
            import temposcope

            layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
            encoder = torch.nn.TransformerEncoder(layer, 2).eval()
            padding = torch.arange(8) >= torch.tensor([[8], [5], [3]])
            x = torch.randn(3, 8, 32)
            with torch.no_grad(), temposcope.record(sys.argv[1], encoder):
                for _ in range(2):
                    encoder(x, src_key_padding_mask=padding)
            """)

    def test_inputs_of_several_lengths(self):
        for layout in ("strided", "jagged"):
            self.assert_recorded_quietly(f"""
                import sys
                import torch
                import temposcope

                parts = [torch.randn(length, 16) for length in (3, 5)]
                x = torch.nested.nested_tensor(parts, layout=torch.{layout})
                model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU())
                optimizer = torch.optim.SGD(model.parameters())
                with temposcope.record(sys.argv[1], model, optimizer):
                    for _ in range(2):
                        y = model(x)
                        sum(part.square().sum() for part in y.unbind()).backward()
                        optimizer.step()
                """)

    def test_token_ids_of_several_lengths(self):
        ids = [torch.randint(9, (length,)) for length in (3, 5)]
        nested = torch.nested.nested_tensor(ids, layout=torch.jagged)
        model = nn.Sequential(nn.Embedding(9, 4))
        with temposcope.record(self.file, model):
            for _ in range(2):
                sum(part.square().sum() for part in model(nested).unbind()).backward()
        self.assertEqual(self.query("SELECT batch_size FROM run"), [(2,)])


class Failures(Recorded):
    """What fails is the recording, not the program, and nothing of it stays."""

    def train(self, model, optimizer):
        model(self.x).square().mean().backward()
        optimizer.step()

    def assert_nothing_stays(self, model):
        model(self.x)
        self.assertFalse(nn.modules.module._global_forward_pre_hooks)
        self.assertFalse(model._forward_pre_hooks)
        self.assert_same_gradients(model)  # it can be recorded again

    def test_of_the_recorder(self):
        for function in ("end_step", "begin_phase", "describe"):
            with self.subTest(function):
                model = Mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                error = RecordingError("the disk is full")
                with self.assertRaisesRegex(RecordingError, "the disk is full"):
                    with temposcope.record(self.file, model, optimizer):
                        self.train(model, optimizer)
                        model.zero_grad()  # new gradients are described
                        with mock.patch.object(_recorder, function, side_effect=error):
                            for _ in range(2):
                                self.train(model, optimizer)
                                temposcope.step()
                self.assert_nothing_stays(model)

    def test_of_the_recorder_at_the_end(self):
        def fails(complete):
            finish(complete)
            raise RecordingError("the disk is full")

        finish = _recorder.finish
        model = Mlp()
        with self.assertRaisesRegex(RecordingError, "the disk is full"):
            with mock.patch.object(_recorder, "finish", side_effect=fails):
                with temposcope.record(self.file, model):
                    self.gradients(model)
        self.assert_nothing_stays(model)

    def test_that_nobody_foresaw(self):
        model = Mlp()
        with self.assertRaisesRegex(RecordingError, "TypeError .no.: please report it"):
            with temposcope.record(self.file, model):
                with mock.patch.object(_describe, "loss_of", side_effect=TypeError("no")):
                    self.gradients(model)
        self.assert_nothing_stays(model)

    def test_the_program_s_own_exception_comes_first(self):
        model = Mlp()
        error = RecordingError("the disk is full")
        with self.assertRaises(ZeroDivisionError):
            with mock.patch.object(_recorder, "end_step", side_effect=error):
                with temposcope.record(self.file, model):
                    self.gradients(model)
                    raise ZeroDivisionError
        self.assert_nothing_stays(model)


if __name__ == "__main__":
    unittest.main()
