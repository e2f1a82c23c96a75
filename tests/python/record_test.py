"""What a recording of a program's own steps holds: steps, phases, modules, names, categories."""

import copy
import functools
import gc
import math
import os
import unittest

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

import families
import temposcope
from commands import Commands
from temposcope._layers import layers_of
from temposcope._names import Names


class RecordedFile(Commands):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        gc.collect()  # an optimizer that lives on says that this program trains
        self.file = f"{self.folder}/step.tscope"

    def column(self, sql: str) -> list:
        return [row[0] for row in self.query(sql)]

    def phases(self) -> list[tuple[int, str]]:
        return self.query("SELECT step, kind FROM v_phase ORDER BY id")

    def model(self):
        model, batch = families.build("encoder", "cpu")
        return model, batch, torch.optim.AdamW(model.parameters())


def train(model, batch, optimizer):
    loss = families.loss_of(model, batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


class Steps(RecordedFile):
    def test_an_optimizer_ends_each_step(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer) as recording:
            losses = [train(model, batch, optimizer) for _ in range(3)]
        self.assertEqual(recording.recorded_steps, 3)
        self.assertEqual(
            self.phases(),
            [(step, kind) for step in range(3) for kind in ("forward", "backward", "optimizer")],
        )
        self.assertEqual([round(x, 5) for x in self.column("SELECT loss FROM step")],
                         [round(x, 5) for x in losses])  # fmt: skip

    def test_micro_batches_belong_to_one_step(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file) as recording:  # nobody named model or optimizer
            for _ in range(2):
                for _ in range(3):
                    families.loss_of(model, batch).backward()
                optimizer.step()
        self.assertEqual(recording.recorded_steps, 2)
        self.assertEqual([kind for _, kind in self.phases()].count("backward"), 6)

    def test_several_optimizers_run_in_one_step(self):
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
        with temposcope.record(self.file, None, *optimizers) as recording:
            for _ in range(2):
                for model, optimizer in zip((first, second), optimizers):
                    model(torch.randn(2, 4)).sum().backward()
                    optimizer.step()
        self.assertEqual(recording.recorded_steps, 2)
        self.assertEqual(
            set(self.column("SELECT path FROM v_scope")), {"Linear", "Linear#2"}
        )

    def test_optimizers_that_nobody_named_run_in_one_step(self):
        models = [nn.Linear(4, 4) for _ in range(2)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
        with temposcope.record(self.file) as recording:
            for _ in range(3):
                models[1](models[0](torch.randn(2, 4))).sum().backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
        self.assertEqual(recording.recorded_steps, 3)

    def test_without_an_optimizer_a_step_ends_before_the_next_forward(self):
        model = nn.Linear(4, 4)
        with temposcope.record(self.file, model) as recording:
            for _ in range(3):
                model(torch.randn(2, 4)).sum().backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter -= 0.1 * parameter.grad
        self.assertEqual(recording.recorded_steps, 3)

    def test_without_training_a_step_is_a_forward(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        with torch.no_grad(), temposcope.record(self.file, model) as recording:
            for _ in range(2):
                model(torch.randn(2, 4))
        self.assertEqual(recording.recorded_steps, 2)
        self.assertEqual(self.phases(), [(0, "forward"), (1, "forward")])

    def test_a_validation_is_no_step(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer) as recording:
            train(model, batch, optimizer)
            with torch.no_grad():
                families.loss_of(model, batch)
        self.assertEqual(recording.recorded_steps, 1)

    def test_what_a_selective_checkpoint_keeps_is_saved(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = (nn.Parameter(torch.randn(16, 16)) for _ in range(2))

            def work(self, x):
                return torch.mm(torch.relu(torch.mm(x, self.first)), self.second)

            def forward(self, x):
                keep = functools.partial(
                    create_selective_checkpoint_contexts, [torch.ops.aten.mm.default]
                )
                return checkpoint(self.work, x * 2, use_reentrant=False, context_fn=keep)

        model = Net()
        with temposcope.record(self.file, model, torch.optim.SGD(model.parameters())) as recording:
            for _ in range(2):
                model(torch.randn(8, 16)).sum().backward()
                recording.step()
        told = self.told("info", self.file, "--ledger")
        self.assertEqual(told["total_bytes"], 3 * 8 * 16 * 4)  # the input and two products
        kept = self.query(
            "SELECT count(*), count(s.released_event) FROM save s "
            "JOIN op o ON o.id = s.op JOIN string n ON n.id = o.name WHERE n.text = 'aten::mm'"
        )
        self.assertEqual(kept, [(4, 4)])

    def test_marks_count_alone(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer) as recording:
            recording.step()
            for _ in range(2):
                train(model, batch, optimizer)
                train(model, batch, optimizer)
                temposcope.step()
        self.assertEqual(recording.recorded_steps, 3)

    def test_marks_without_a_recording_do_nothing(self):
        temposcope.step()
        with temposcope.phase("loss"):
            pass

    def test_an_exception_leaves_an_incomplete_trace(self):
        model, batch, optimizer = self.model()
        with self.assertRaises(KeyboardInterrupt):
            with temposcope.record(self.file, model, optimizer) as recording:
                train(model, batch, optimizer)
                families.loss_of(model, batch)
                raise KeyboardInterrupt
        self.assertEqual(recording.recorded_steps, 1)
        self.assertEqual(self.query("SELECT state FROM v_run"), [("incomplete",)])
        self.assertEqual(self.query("SELECT count(*) FROM step"), [(2,)])

    def test_an_exception_is_a_failure_and_its_step_is_broken(self):
        model, batch, optimizer = self.model()
        with self.assertRaises(ValueError), temposcope.record(self.file, model, optimizer):
            train(model, batch, optimizer)
            families.loss_of(model, batch)
            raise ValueError("no data")
        failures = self.query("SELECT outcome, error, message FROM v_failure")
        self.assertEqual(failures, [("ended", "ValueError", "no data")])
        self.assertEqual(self.column("SELECT kind FROM v_step ORDER BY id"), ["whole", "broken"])

    def test_a_block_without_a_step_leaves_no_file(self):
        with self.assertWarnsRegex(UserWarning, "no step ran in the block"):
            with temposcope.record(self.file, nn.Linear(2, 2)):
                pass
        self.assertEqual(os.listdir(self.folder), [])


class Contents(RecordedFile):
    def record(self):
        model, batch, optimizer = self.model()
        train(model, batch, optimizer)
        with temposcope.record(self.file, model, optimizer):
            train(model, batch, optimizer)
        return model, batch, optimizer

    def bytes_of(self, role: str) -> int:
        return self.column(
            f"SELECT total(size_bytes) FROM v_storage WHERE role = '{role}'"
        )[0]

    def test_categories_hold_what_the_program_has(self):
        model, batch, _ = self.record()
        of_parameters = sum(p.nbytes for p in model.parameters())
        self.assertEqual(self.bytes_of("parameter"), of_parameters)
        self.assertEqual(self.bytes_of("gradient"), of_parameters)
        steps = 4 * len(list(model.parameters()))
        self.assertEqual(self.bytes_of("optimizer_state"), 2 * of_parameters + steps)
        self.assertEqual(self.bytes_of("input"), batch["labels"].nbytes)

    def test_names_are_those_of_the_model(self):
        self.record()
        names = set(self.column("SELECT name FROM v_tensor"))
        parameter = "encoder.layers.1.linear2.weight"
        self.assertLessEqual(
            {parameter, f"{parameter}.grad", f"{parameter}.exp_avg", "input_ids"}, names
        )
        paths = set(self.column("SELECT path FROM v_scope"))
        self.assertLessEqual({"Encoder", "encoder.layers.0.self_attn", "head"}, paths)

    def test_layers_are_counted_over_all_stacks(self):
        model = nn.Transformer(8, 2, 2, 3, 16, batch_first=True)  # an encoder and a decoder
        with temposcope.record(self.file, model):
            model(torch.randn(2, 4, 8), torch.randn(2, 4, 8)).sum().backward()
        stacks = [f"encoder.layers.{i}" for i in range(2)]
        stacks += [f"decoder.layers.{i}" for i in range(3)]
        self.assertEqual(self.column("SELECT num_layers FROM v_run"), [5])
        for index, path in enumerate(stacks):
            inside = self.query(f"SELECT DISTINCT layer FROM v_scope WHERE path LIKE '{path}%'")
            self.assertEqual(inside, [(index,)], path)
        outside = self.query("SELECT DISTINCT layer FROM v_scope WHERE path NOT LIKE '%.layers.%'")
        self.assertEqual(outside, [(None,)])

    def test_blocks_of_all_stages_are_layers_and_a_list_of_parts_has_none(self):
        class Block(nn.Sequential):
            pass

        def block():
            return Block(nn.Linear(4, 4), nn.ReLU())

        stages = nn.Sequential(nn.Sequential(block(), block()), nn.Sequential(block(), block()))
        model = nn.Sequential(nn.Linear(4, 4), stages, nn.Linear(4, 4))
        with temposcope.record(self.file, model):
            model(torch.randn(2, 4)).sum().backward()
        layers = dict(self.query("SELECT path, layer FROM v_scope"))
        found = [layers[f"1.{stage}.{block}.0"] for stage in range(2) for block in range(2)]
        self.assertEqual(found, [0, 1, 2, 3])
        self.assertEqual((layers["0"], layers["2"]), (None, None))

    def test_what_lives_on_because_a_variable_keeps_it_is_held(self):
        before = torch.zeros(1000)
        kept = []
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer):
            kept.append(torch.ones(2000))
            train(model, batch, optimizer)
        del before
        self.assertEqual(
            self.column(
                "SELECT role FROM v_storage WHERE size_bytes IN (4000, 8000) ORDER BY id"
            ),
            ["held", "held"],
        )

    def test_the_run_says_what_it_ran(self):
        self.record()
        run = self.query("SELECT model, precision, batch_size, seq_len, source FROM v_run")
        self.assertEqual(run, [("Encoder", "fp32", 2, 32, "measured_cpu")])

    def test_autocast_is_seen(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer):
            with torch.autocast("cpu", torch.bfloat16):
                loss = families.loss_of(model, batch)
            loss.backward()
            optimizer.step()
        self.assertEqual(self.column("SELECT precision FROM v_run"), ["amp-bf16"])

    def test_casts_of_the_program_are_seen(self):
        class Cast(nn.Linear):
            def forward(self, input):
                weight, bias = (one.to(input.dtype) for one in (self.weight, self.bias))
                return nn.functional.linear(input, weight, bias)

        model = Cast(32, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with temposcope.record(self.file, model, optimizer):
            model(torch.randn(4, 32, dtype=torch.bfloat16)).float().sum().backward()
            optimizer.step()
        self.assertEqual(self.column("SELECT precision FROM v_run"), ["amp-bf16"])

    def test_memory_of_numpy_and_of_files_is_recorded(self):
        path = self.folder / "weights"
        path.write_bytes(b"\0" * 4 * 16)
        model = nn.Linear(4, 4, bias=False)
        mapped = torch.from_file(str(path), size=16, dtype=torch.float32).view(4, 4)
        model.weight = nn.Parameter(mapped)
        with temposcope.record(self.file, model):
            model(torch.randn(2, 4)).sum().backward()
        self.assertEqual(self.bytes_of("parameter"), 64)
        self.assertIn("adopted_storages", self.column("SELECT code FROM v_health"))

    def test_phases_can_be_named(self):
        model = nn.Linear(4, 4)
        with temposcope.record(self.file, model):
            y = model(torch.randn(2, 4))
            with temposcope.phase("loss"):
                loss = nn.MSELoss()(y, torch.zeros(2, 4))
            loss.backward()
        self.assertEqual(
            [kind for _, kind in self.phases()][:4], ["forward", "loss", "forward", "backward"]
        )

    def test_a_named_phase_around_the_end_of_a_step_ends_with_it(self):
        model, batch, optimizer = self.model()
        with temposcope.record(self.file, model, optimizer):
            for _ in range(2):
                families.loss_of(model, batch).backward()
                with temposcope.phase("optimizer"):
                    optimizer.step()
        self.assertEqual(self.column("SELECT count(*) FROM phase WHERE step IS NULL"), [0])
        self.assertEqual([kind for _, kind in self.phases()][-1], "optimizer")

    def test_a_loss_that_is_made_anew_keeps_its_name(self):
        model = nn.Linear(4, 4)
        with temposcope.record(self.file, model):
            for _ in range(3):
                nn.MSELoss()(model(torch.randn(2, 4)), torch.zeros(2, 4)).backward()
        paths = self.column("SELECT path FROM v_scope")
        self.assertIn("MSELoss", paths)
        self.assertFalse([path for path in paths if "#" in path])

    def test_a_wrapper_without_memory_has_no_allocation(self):
        class Empty(torch.Tensor):
            @staticmethod
            def __new__(cls, shape):
                return torch.Tensor._make_wrapper_subclass(cls, shape)

            @classmethod
            def __torch_dispatch__(cls, function, types, arguments=(), named=None):
                return torch.zeros(4)

        model = nn.Linear(4, 4)
        model.register_buffer("empty", Empty((1024, 1024)))
        with temposcope.record(self.file, model):
            model(torch.randn(2, 4)).sum().backward()
        self.assertEqual(self.column("SELECT max(requested_bytes) < 4096 FROM allocation"), [1])

    def test_a_container_that_holds_itself(self):
        class OfList(nn.Linear):
            def forward(self, parts):
                return super().forward(parts[0])

        parts = [torch.randn(2, 4)]
        parts.append(parts)
        model = OfList(4, 4)
        with temposcope.record(self.file, model) as recording:
            model(parts).sum().backward()
            temposcope.step()
        self.assertEqual(recording.recorded_steps, 1)

    def test_a_loss_module_begins_the_phase(self):
        model = nn.Linear(4, 4)
        with temposcope.record(self.file, model):
            nn.CrossEntropyLoss()(model(torch.randn(2, 4)), torch.tensor([1, 2])).backward()
        self.assertEqual([kind for _, kind in self.phases()][:3], ["forward", "loss", "backward"])

    def test_a_loss_of_no_number_is_not_known(self):
        model = nn.Linear(4, 4)
        with temposcope.record(self.file, model):
            model(torch.randn(2, 4)).backward(torch.ones(2, 4))
        self.assertEqual(self.column("SELECT loss FROM step"), [None])


class LateCategories(RecordedFile):
    """What a block is for may show only after its step."""

    def bytes_of_role(self, role: str) -> int:
        return sum(self.column(f"SELECT size_bytes FROM v_storage WHERE role = '{role}'"))

    def test_a_moving_average_is_a_copy_of_the_weights(self):
        self.look_at_average(lambda mean, new: mean.lerp_(new, 0.01))

    def test_a_moving_average_of_two_ops_is_one(self):
        self.look_at_average(lambda mean, new: mean.mul_(0.99).add_(new, alpha=0.01))

    def look_at_average(self, follow):
        model, batch, optimizer = self.model()
        average = copy.deepcopy(model)
        with temposcope.record(self.file, model, optimizer), torch.no_grad():
            for _ in range(2):
                with torch.enable_grad():
                    train(model, batch, optimizer)
                for mean, parameter in zip(average.parameters(), model.parameters()):
                    follow(mean, parameter)
        copies = sum(p.numel() * p.element_size() for p in average.parameters())
        self.assertEqual(self.bytes_of_role("weight_copy"), copies)

    def test_a_checkpoint_recomputes_what_backward_reads(self):
        class Net(nn.Module):
            def __init__(self, use_reentrant: bool):
                super().__init__()
                self.block = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
                self.use_reentrant = use_reentrant

            def forward(self, x):
                return checkpoint(self.block, x, use_reentrant=self.use_reentrant)

        hidden_bytes = 32 * 256 * 4
        for use_reentrant in (False, True):
            self.file = f"{self.folder}/{use_reentrant}.tscope"
            with temposcope.record(self.file, net := Net(use_reentrant)) as recording:
                net(torch.randn(32, 64, requires_grad=True)).sum().backward()
                recording.step()
            self.assertEqual(self.bytes_of_role("recomputed"), 2 * hidden_bytes, use_reentrant)


class Layers(unittest.TestCase):
    """Which modules count as layers."""

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.LayerNorm(8)

    def test_a_layer_may_hold_a_list_of_norms(self):
        layers = nn.ModuleList(
            nn.ModuleList([nn.ModuleList([self.Norm(), self.Norm()]), nn.Linear(8, 8)])
            for _ in range(3)
        )
        self.assertEqual(list(layers_of(nn.ModuleDict({"layers": layers}))), list(layers))

    def test_stages_have_the_layers_in_them(self):
        def block():
            return nn.Sequential(nn.Linear(8, 8), nn.ReLU())

        stages = nn.ModuleList(nn.ModuleList([block(), block()]) for _ in range(2))
        blocks = [block for stage in stages for block in stage]
        self.assertEqual(list(layers_of(nn.ModuleDict({"stages": stages}))), blocks)

    def test_a_layer_may_hold_a_list_with_wrapped_projections(self):
        class Adapted(nn.Module):
            def __init__(self):
                super().__init__()
                self.base, self.down, self.up = nn.Linear(8, 8), nn.Linear(8, 2), nn.Linear(2, 8)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(8)
                self.mlp = nn.Sequential(Adapted(), nn.GELU(), Adapted())

        layers = nn.ModuleList(Block() for _ in range(3))
        self.assertEqual(list(layers_of(nn.ModuleDict({"layers": layers}))), list(layers))

    def test_a_wrapper_of_a_checkpoint_is_the_layer_in_it(self):
        layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(4))
        for index in (0, 2):
            layers[index] = checkpoint_wrapper(layers[index])
        model = nn.ModuleDict({"layers": layers})
        self.assertEqual(list(layers_of(model)), list(layers))
        names = Names()
        names.add_model(model)
        self.assertEqual(names.path(layers[0]._checkpoint_wrapped_module[0]), b"layers.0.0")


class BadInput(RecordedFile):
    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(temposcope.RecordingError, "no/step.tscope"):
            with temposcope.record(f"{self.folder}/no/step.tscope", nn.Linear(2, 2)):
                pass

    def test_a_recording_in_a_recording(self):
        model = nn.Linear(2, 2)
        with temposcope.record(self.file, model):
            with self.assertRaisesRegex(temposcope.RecordingError, "recorded already"):
                with temposcope.record(f"{self.folder}/other.tscope", model):
                    pass
            model(torch.zeros(1, 2)).sum().backward()
        self.assertEqual(self.query("SELECT state FROM v_run"), [("complete",)])

    def test_a_device_that_cannot_be_recorded(self):
        with self.assertRaisesRegex(temposcope.RecordingError, "on meta"):
            with temposcope.record(self.file, nn.Linear(2, 2, device="meta")):
                pass

    def test_arguments_in_another_order(self):
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters())
        with self.assertRaisesRegex(TypeError, "model is SGD: give a torch.nn.Module"):
            with temposcope.record(self.file, optimizer, model):
                pass
        with self.assertRaisesRegex(TypeError, "Linear is no torch.optim.Optimizer"):
            with temposcope.record(self.file, model, model):
                pass

    def test_a_phase_that_does_not_exist(self):
        with self.assertRaisesRegex(ValueError, "forward, loss, backward, optimizer"):
            with temposcope.phase("lunch"):
                pass

    def test_a_file_that_is_removed_ends_the_recording_and_not_the_step(self):
        model, batch, optimizer = self.model()
        losses = []
        with self.assertRaisesRegex(temposcope.RecordingError, "removed or replaced"):
            with temposcope.record(self.file, model, optimizer):
                losses.append(train(model, batch, optimizer))
                os.remove(self.file + ".partial")
                losses.append(train(model, batch, optimizer))
        self.assertEqual([math.isfinite(loss) for loss in losses], [True, True])


if __name__ == "__main__":
    unittest.main()
