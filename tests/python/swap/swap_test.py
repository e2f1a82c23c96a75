"""What temposcope.swap replaces and leaves, and that the model stays the model that it was."""

import copy
import inspect
import io
import itertools
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import small_models
import torch
import torch.nn as nn
import torch.nn.functional as F
import transformers
from saved_bytes import saved_bytes
from small_models import FAMILIES
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

import temposcope
from temposcope import _hugging_face
from temposcope._swapped_modules import SaveChoice


class Block(nn.Module):
    """A layer of a user, which no library knows."""

    def __init__(self, width=64):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU(approximate="tanh")
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(self.act(self.up(self.norm(x)))))


class Masks(unittest.TestCase):
    def test_processes_with_one_seed_draw_masks_of_their_own(self):
        dropout = nn.Sequential(nn.Dropout(0.5))
        temposcope.swap(dropout, "tempo")
        keeps = []
        for rank in range(2):
            distributed.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
            torch.manual_seed(3)
            keeps.append(dropout(torch.ones(1000, requires_grad=True)))
            distributed.destroy_process_group()
        torch.manual_seed(3)
        self.assertTrue(torch.equal(dropout(torch.ones(1000, requires_grad=True)), keeps[0]))
        self.assertLess((keeps[0] == keeps[1]).double().mean(), 0.6)


class Recipes(unittest.TestCase):
    def test_presets_are_those_of_the_commands(self):
        presets = temposcope.recipes()
        self.assertEqual(next(iter(presets)), "original")
        for name in ("tempo", "tempo-packed", "checkpoint", "flash"):
            self.assertIn(name, presets)
        for name in presets:
            temposcope.swap(nn.Linear(2, 2), name)  # if only to say what is left

    def test_a_wrong_recipe_is_an_error_that_names_the_choices(self):
        for recipe, message in (
            ("temp", "'temp' is not a recipe: did you mean .*tempo"),
            ("gelu=inplace", "'inplace' is not a value of 'gelu': choose one of .*in_place"),
            ("silu=in_place", "'silu' is not a switch of a recipe"),
            ("", "is not a recipe"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                temposcope.swap(nn.Linear(2, 2), recipe)

    def test_what_is_no_module_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "takes a torch.nn.Module, not list"):
            temposcope.swap([nn.Linear(2, 2)], "tempo")


class Report(unittest.TestCase):
    def test_of_every_family(self):
        expected = {
            "BERT": "2 GELU, 5 LayerNorm, 7 dropouts, 2 attention cores",
            "RoBERTa": "2 GELU, 5 LayerNorm, 7 dropouts, 2 attention cores",
            "GPT-2": "2 GELU, 5 LayerNorm, 7 dropouts, 2 attention cores",
            "ViT": "2 GELU, 5 LayerNorm, 3 dropouts, 2 attention cores",
            "Llama": "5 RMSNorm, 2 attention cores; "
            "not replaced: 2 SiLUActivation because there is no op for it",
            "TransformerEncoder": "2 GELU, 4 LayerNorm, 6 dropouts, 2 attention cores",
            "TransformerEncoder, norm first": "2 GELU, 4 LayerNorm, 6 dropouts, 2 attention cores",
        }
        for name in FAMILIES:
            with self.subTest(name):
                report = temposcope.swap(small_models.build(name), "tempo")
                self.assertEqual(str(report), f"tempo: replaced {expected[name]}")

    def test_names_paths(self):
        model = small_models.build("BERT")
        report = temposcope.swap(model, "tempo-gelu,dropout=stock")
        self.assertEqual(
            report.replaced,
            {"GELU": tuple(f"encoder.layer.{i}.intermediate.intermediate_act_fn" for i in (0, 1))},
        )

    def test_of_what_is_left(self):
        model = nn.Sequential(
            nn.LayerNorm((4, 8)), nn.Mish(), nn.Dropout1d(), nn.GELU(), nn.LayerNorm(8)
        )
        report = temposcope.swap(model, "tempo,fusion=tempo,gelu=recompute")
        left = {one.what: (one.reason, one.modules) for one in report.left}
        self.assertEqual(left["LayerNorm"][1], ("0",))
        self.assertIn("more than the last dimension", left["LayerNorm"][0])
        self.assertEqual(left["Dropout1d"][1], ("2",))
        self.assertEqual(left["fusion=tempo"][1], ())
        self.assertIn("gelu=recompute", left)
        self.assertEqual(report.replaced, {"LayerNorm": ("4",)})

    def test_a_subclass_may_compute_anything_and_is_left(self):
        class Doubled(nn.LayerNorm):
            def forward(self, x):
                return 2 * super().forward(x)

        report = temposcope.swap(nn.Sequential(Doubled(8)), "tempo")
        self.assertEqual(report.replaced, {})
        self.assertEqual(report.left[0].what, "Doubled")

    def test_layers_of_a_user(self):
        for layers in ((), (Block,)):
            model = nn.Sequential(Block(), Block())
            report = temposcope.swap(model, "checkpoint", layers=layers)
            self.assertEqual(report.replaced["checkpointed layers"], ("0", "1"))
            x = torch.randn(3, 64, requires_grad=True)
            self.assertEqual(saved_bytes(model, lambda: model(x)), 2 * x.nbytes)
            temposcope.swap(model, "original-stock")
            self.assertGreater(saved_bytes(model, lambda: model(x)), 2 * x.nbytes)

    def test_layers_that_have_to_be_named(self):
        """One block is no stack, and a batch norm that runs twice counts a batch twice."""
        with_statistics = (nn.Sequential(Block(), nn.BatchNorm1d(64)) for _ in range(2))
        for model in (Block(), nn.Sequential(*with_statistics)):
            report = temposcope.swap(model, "checkpoint")
            self.assertIn("as in swap(..., layers=(Block,)) or run --layers Block", str(report))
            self.assertNotIn("checkpointed layers", report.replaced)

    def test_attention_that_keeps_no_probabilities(self):
        model = small_models.build("BERT")
        model.config._attn_implementation_internal = "flex_attention"
        report = temposcope.swap(model, "tempo")
        self.assertNotIn("attention cores", report.replaced)
        self.assertIn("its attention is flex_attention", str(report))


class Model(unittest.TestCase):
    """The model stays what it was to everybody else."""

    def test_parameters_state_and_classes_stay(self):
        for name in FAMILIES:
            model = small_models.build(name)
            names = [one for one, _ in model.named_parameters()]
            modules = [(path, id(one), type(one)) for path, one in model.named_modules()]
            state = {key: value.clone() for key, value in model.state_dict().items()}
            temposcope.swap(model, "tempo-packed,checkpoint=per_layer")
            with self.subTest(name):
                self.assertEqual([one for one, _ in model.named_parameters()], names)
                for path, identity, kind in modules:
                    self.assertEqual(id(model.get_submodule(path)), identity)
                    self.assertIsInstance(model.get_submodule(path), kind)
                fresh = small_models.build(name)
                fresh.load_state_dict(model.state_dict())
                for key, value in model.state_dict().items():
                    self.assertTrue(torch.equal(value, state[key]))

    def test_without_gradients_it_is_the_model_as_it_was_bit_for_bit(self):
        for name in FAMILIES:
            for attention in ("eager", "sdpa"):
                model = small_models.build(name, attention=attention).eval()
                with torch.no_grad():
                    before = small_models.run(name, model)
                    temposcope.swap(model, "tempo")
                    self.assertTrue(torch.equal(small_models.run(name, model), before), name)

    def test_train_and_eval(self):
        model = small_models.build("BERT")
        temposcope.swap(model, "tempo")
        torch.manual_seed(0)
        first, second = small_models.run("BERT", model), small_models.run("BERT", model)
        self.assertFalse(torch.equal(first, second))  # other masks in every step
        torch.manual_seed(0)
        self.assertTrue(torch.equal(small_models.run("BERT", model), first))
        model.eval()
        first, second = small_models.run("BERT", model), small_models.run("BERT", model)
        self.assertTrue(torch.equal(first, second))

    def test_copies_and_pickles_are_swapped_too(self):
        for name, recipe in itertools.product(FAMILIES, ("tempo-packed", "flash,dropout=stock")):
            model = small_models.build(name)
            if recipe.startswith("flash"):
                model.eval()
            temposcope.swap(model, recipe)
            expected = small_models.step(name, model)
            buffer = io.BytesIO()
            torch.save(model, buffer)
            buffer.seek(0)
            with self.subTest(f"{name}, {recipe}"):
                for other in (
                    copy.deepcopy(model),
                    pickle.loads(pickle.dumps(model)),
                    torch.load(buffer, weights_only=False),
                ):
                    for one, truth in zip(small_models.step(name, other), expected, strict=True):
                        self.assertTrue(torch.equal(one, truth))
                    kinds = [type(one) for one in other.modules()]
                    self.assertEqual(kinds, [type(one) for one in model.modules()])

    def test_another_process_opens_a_pickle(self):
        model = small_models.build("BERT")
        temposcope.swap(model, "tempo")
        program = textwrap.dedent("""
            import pickle, sys, torch
            model = pickle.load(sys.stdin.buffer)
            model(torch.zeros(1, 4, dtype=torch.long)).last_hidden_state.sum().backward()
            print(type(model.encoder.layer[0].attention.output.LayerNorm).__name__)
        """)
        done = subprocess.run(
            [sys.executable, "-c", program], input=pickle.dumps(model), capture_output=True
        )
        self.assertEqual(done.stdout.decode().strip(), "TempoLayerNorm", done.stderr.decode())

    def test_transformers_saves_the_model_as_it_was(self):
        model = small_models.build("BERT", attention="sdpa")
        fresh = copy.deepcopy(model)
        for recipe in ("tempo", "flash"):
            temposcope.swap(model, recipe)
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                other = type(fresh).from_pretrained(folder).eval()
            self.assertEqual([type(one) for one in other.modules()], [*map(type, fresh.modules())])
            with torch.no_grad():
                self.assertTrue(
                    torch.equal(
                        small_models.run("BERT", other),
                        small_models.run("BERT", fresh.eval()),
                    )
                )

    def test_a_model_can_be_swapped_again_and_given_back(self):
        for name in FAMILIES:
            for attention in ("eager", "sdpa"):
                model = small_models.build(name, attention=attention)
                fresh = copy.deepcopy(model)
                for recipe in ("tempo", "flash-tempo", "checkpoint", "tempo-packed"):
                    temposcope.swap(model, recipe)
                packed = copy.deepcopy(fresh)
                temposcope.swap(packed, "tempo-packed")
                with self.subTest(f"{name}, {attention}"):
                    for one, other in zip(
                        small_models.step(name, model), small_models.step(name, packed)
                    ):
                        self.assertTrue(torch.equal(one, other))
                    report = temposcope.swap(model, "original-stock")
                    self.assertEqual(str(report), "original-stock: replaced nothing")
                    self.assertEqual(
                        [type(one) for one in model.modules()],
                        [type(one) for one in fresh.modules()],
                    )
                    left = [
                        key
                        for one in model.modules()
                        for key in vars(one)
                        if key.startswith("_temposcope")
                    ]
                    self.assertEqual(left, [])
                    for one, other in zip(
                        small_models.step(name, model), small_models.step(name, fresh)
                    ):
                        self.assertTrue(torch.equal(one, other))

    def test_models_that_share_a_config_do_not_share_a_swap(self):
        one = small_models.build("BERT")
        other = type(one)(one.config)
        for recipe in ("tempo", "flash"):
            temposcope.swap(one, recipe)
            self.assertEqual(other.config._attn_implementation, "eager")
            names = {m.config._attn_implementation for m in other.modules() if hasattr(m, "config")}
            self.assertEqual(names, {"eager"})

    def test_hooks_stay(self):
        model = small_models.build("BERT")
        calls = []
        model.embeddings.LayerNorm.register_forward_hook(lambda *_: calls.append("norm"))
        temposcope.swap(model, "tempo")
        small_models.run("BERT", model)
        self.assertEqual(calls, ["norm"])

    def test_output_attentions_are_still_returned(self):
        model = small_models.build("BERT")
        model.set_attn_implementation("eager")
        temposcope.swap(model, "tempo")
        tokens = torch.zeros(2, 5, dtype=torch.long)
        attentions = model(tokens, output_attentions=True).attentions
        self.assertEqual([tuple(one.shape) for one in attentions], [(2, 4, 5, 5)] * 2)

    def test_compiled_modules_are_left_alone(self):
        model = nn.Sequential(Block(), Block())
        model[1] = torch.compile(model[1], backend="eager")
        report = temposcope.swap(model, "tempo")
        self.assertEqual(report.replaced["GELU"], ("0.act",))
        self.assertIn("compiled modules are left alone", str(report))

    def test_what_was_compiled_since_stays_swapped(self):
        model = nn.Sequential(Block())
        temposcope.swap(model, "tempo")
        model[0] = torch.compile(model[0], backend="eager")
        temposcope.swap(model, "original-stock")
        self.assertEqual(type(model[0]._orig_mod.norm).__name__, "TempoLayerNorm")

    def test_another_version_of_transformers_is_named(self):
        model = small_models.build("Llama")
        with mock.patch.object(sys.modules["transformers"], "__version__", "4.57.1"):
            report = temposcope.swap(model, "tempo")
        self.assertEqual(report.replaced, {})
        self.assertIn("swap knows transformers 5, not 4.57.1", str(report))

    def test_a_swapped_model_can_be_compiled(self):
        model = Block()
        x = torch.randn(3, 64)
        expected = model.eval()(x)
        temposcope.swap(model, "tempo")
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), expected)

    def test_transforms_of_torch_func_run_the_model_as_it_was(self):
        model = Block().eval()
        parameters = dict(model.named_parameters())
        x = torch.randn(3, 64)

        def loss(parameters):
            return torch.func.functional_call(model, parameters, (x,)).square().sum()

        expected = torch.func.grad(loss)(parameters)
        temposcope.swap(model, "tempo")
        for name, gradient in torch.func.grad(loss)(parameters).items():
            self.assertTrue(torch.equal(gradient, expected[name]), name)

    def test_generation_of_text_is_as_it_was(self):
        config = transformers.GPT2Config(
            n_embd=32, n_head=2, n_layer=2, vocab_size=99, eos_token_id=0, bos_token_id=0
        )
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(config).eval()
        tokens = torch.ones(1, 3, dtype=torch.long)
        before = model.generate(tokens, max_new_tokens=5, do_sample=False)
        temposcope.swap(model, "tempo")
        after = model.generate(tokens, max_new_tokens=5, do_sample=False)
        self.assertTrue(torch.equal(before, after))

    def test_flash_with_dropout_on_the_cpu_says_what_to_do(self):
        for name in ("BERT", "TransformerEncoder"):
            model = small_models.build(name)
            temposcope.swap(model, "flash")
            with self.assertRaisesRegex(RuntimeError, "flash attention cannot run here: .*dropout"):
                small_models.run(name, model)


class Calls(unittest.TestCase):
    """A swapped module takes what torch's own takes."""

    def model(self):
        return nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.5))

    def test_inputs_by_their_name(self):
        model = self.model()
        temposcope.swap(model, "tempo")
        for module in model:
            self.assertEqual(module(input=torch.randn(2, 8)).shape, (2, 8))

    def test_other_layouts_run_the_modules_own_code(self):
        for layout in (torch.strided, torch.jagged):
            parts = [torch.randn(length, 8) for length in (3, 5)]
            x = torch.nested.nested_tensor(parts, layout=layout)
            stock, swapped = self.model().eval(), self.model().eval()
            temposcope.swap(swapped, "tempo")
            for a, b in zip(stock(x).unbind(), swapped(x).unbind(), strict=True):
                self.assertTrue(torch.equal(a, b))


class Norms(unittest.TestCase):
    def test_rms_norms_of_transformers_have_the_code_of_llamas(self):
        def code(name):
            package = name.removesuffix("RMSNorm").lower()
            module = f"transformers.models.{package}.modeling_{package}"
            kind = getattr(__import__(module, fromlist=[name]), name)
            return inspect.getsource(kind.forward)

        for name in _hugging_face.RMS_NORMS:
            self.assertEqual(code(name), code("LlamaRMSNorm"), name)

    def test_small_weights_change_what_is_saved_and_not_the_gradient(self):
        for kind in (nn.LayerNorm, nn.RMSNorm):
            norm = kind(16).double()
            truth = copy.deepcopy(norm)
            temposcope.swap(norm, "tempo")
            x = torch.randn(5, 16, dtype=torch.float64)
            for step in range(40):
                if step == 3:  # as an optimizer
                    with torch.no_grad():
                        for one in (norm, truth):
                            one.weight[2] = 0
                if step == 20:  # as an optimizer that torch does not count
                    for one in (norm, truth):
                        one.weight.data[2] = 1
                for one in (norm, truth):
                    one.zero_grad()
                    one(x).square().sum().backward()
                torch.testing.assert_close(norm.weight.grad, truth.weight.grad)
                expected = "normalized" if 3 <= step < 20 else "output"
                if not 20 <= step < 20 + SaveChoice.CALLS:
                    self.assertEqual(norm._temposcope.of(norm.weight, None), expected, step)

    def test_a_swapped_model_can_be_traced(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.5)).eval()
        x = torch.randn(4, 8)
        expected = model(x)
        temposcope.swap(model, "tempo")
        torch.testing.assert_close(torch.jit.trace(model, x)(x), expected)

    def test_nan_in_a_weight_does_not_hide(self):
        weight = torch.tensor([1.0, float("nan")])
        self.assertEqual(SaveChoice().of(weight, None), "normalized")

    def test_a_change_of_a_saved_output_is_an_error(self):
        norm = nn.LayerNorm(8)
        temposcope.swap(norm, "tempo")
        y = norm(torch.randn(3, 8, requires_grad=True))
        y += 1
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_other_types_run_the_modules_own_code(self):
        norm = nn.LayerNorm(8)  # float32
        temposcope.swap(norm, "tempo")
        x = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
        expected = F.layer_norm(x, (8,), norm.weight, norm.bias)
        self.assertTrue(torch.equal(norm(x), expected))


if __name__ == "__main__":
    unittest.main()
