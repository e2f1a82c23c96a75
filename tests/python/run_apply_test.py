"""`temposcope run --apply`: a recipe on a program that knows nothing of it, and what is said.

    run_apply_test.py BIN_FOLDER
"""

import json
import unittest

from commands import main, thorough
from run_test import PYTHON, Run

ENCODER = """
    import sys
    import torch

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = torch.nn.TransformerEncoderLayer(
        64, 4, 256, activation=torch.nn.GELU(), batch_first=True
    )
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2), torch.nn.SiLU())
    model.to(device).train(sys.argv[2:] != ["eval"])
    optimizer = torch.optim.AdamW(model.parameters())
    names = list(model.state_dict())
    for step in range(4):
        x = torch.randn(int(sys.argv[1]), 128, 64, device=device)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert list(model.state_dict()) == names
"""
REPORT = (
    "In Sequential, tempo: replaced 2 GELU, 4 LayerNorm, 6 dropouts, 2 attention cores; "
    "not replaced: 1 SiLU because there is no op for it."
)


class Apply(Run):
    def record(self, name: str, *options: str, batch: int = 8, script: str = "train.py"):
        """The name of the trace of the encoder, recorded with these options."""
        train = self.write(script, ENCODER)
        self.file = self.folder / f"{name}.tscope"
        ran = self.run_well(PYTHON, train, str(batch), options=options)
        return ran

    def compare(self, *names: str) -> dict:
        files = [self.folder / f"{name}.tscope" for name in names]
        return self.told("compare", *files)

    def test_the_models_of_a_program_are_swapped_and_the_trace_says_so(self):
        ran = self.record("tempo", "--apply", "tempo")
        self.assertIn(f"temposcope: {REPORT}\ntemposcope: Recorded 3 steps in ", ran.stderr)
        self.assertEqual(self.query("SELECT recipe FROM v_run"), [("tempo",)])
        self.assertEqual(
            self.query("SELECT severity, explanation FROM v_health WHERE code = 'recipe_applied'"),
            [("info", REPORT)],
        )
        ops = {name for (name,) in self.query("SELECT DISTINCT name FROM v_op")}
        self.assertLessEqual({"tempo::gelu", "tempo::layer_norm", "tempo::dropout"}, ops)

    @thorough
    def test_names_are_those_of_the_program_without_it(self):
        modules = []
        for options in ((), ("--apply", "tempo", "--skip", "0")):
            self.record("names", "--overwrite", *options)
            paths = self.query("SELECT DISTINCT path FROM v_scope WHERE path != ''")
            modules.append({path for (path,) in paths})
        # The layer computes its dropout between the linear layers itself.
        self.assertEqual(modules[0] - modules[1], {"0.layers.0.dropout", "0.layers.1.dropout"})
        self.assertEqual(modules[1] - modules[0], set())

    def test_compare_says_what_the_recipe_saves_in_the_program(self):
        self.record("as_it_is")
        self.record("tempo", "--apply", "tempo")
        result = self.compare("tempo", "as_it_is")
        columns = {column["recipe"]: column for column in result["rows"]}
        self.assertEqual(list(columns), ["original", "tempo"])
        self.assertRegex(
            result["sentence"],
            r"^tempo trains the same step of Sequential in \d+\.\d % less memory than original ",
        )
        self.assertEqual(result["notes"], [])
        saved = [columns[name]["kept_bytes"] for name in ("original", "tempo")]
        self.assertLess(saved[1], 0.8 * saved[0])

    @thorough
    def test_compare_says_where_programs_differ(self):
        self.record("as_it_is")
        self.record("other", "--apply", "tempo", batch=4, script="other.py")
        result = self.compare("as_it_is", "other")
        self.assertIn(
            "They differ in recipe (original and tempo), program (train.py and other.py) and "
            "batch size (8 and 4).",
            result["sentence"],
        )

    def test_a_wrong_recipe_is_refused_before_the_program_starts(self):
        train = self.write("train.py", "raise SystemExit('it ran')")
        ran = self.run_program(PYTHON, train, options=["--apply", "temppo"])
        self.assertEqual(ran.returncode, 2)
        self.assertNotIn("it ran", ran.stderr)
        self.assert_one_sentence(ran, "'temppo' is not a recipe")

    def test_a_model_that_never_trains_is_left_and_said_to_be(self):
        train = self.write("train.py", ENCODER)
        ran = self.run_program(PYTHON, train, "2", "eval", options=["--apply", "gelu=in_place"])
        self.assertIn("changed nothing: no model ran in training mode", ran.stderr)

    @thorough
    def test_calls_of_functions_are_said_to_be_left(self):
        script = self.program("""
            import torch
            import torch.nn.functional as F
            from torch import nn

            class Block(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm, self.linear = nn.LayerNorm(16), nn.Linear(16, 16)

                def forward(self, x):
                    y = F.gelu(self.linear(self.norm(x)))
                    y = F.scaled_dot_product_attention(y, y, y, dropout_p=0.1)
                    return x + F.dropout(F.layer_norm(y, (16,)), 0.1)

            class Net(nn.Sequential): pass

            model = Net(Block(), Block())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(4):
                model(torch.randn(2, 2, 8, 16)).mean().backward()
                optimizer.step()
            """)
        ran = self.run_well(PYTHON, script, options=["--apply", "tempo"])
        self.assertIn("In Net, tempo: replaced 2 LayerNorm; not replaced: ", ran.stderr)
        ((note,),) = self.query("SELECT explanation FROM v_health WHERE code = 'recipe_left'")
        calls = {"gelu": "GELU", "layer_norm": "LayerNorm", "dropout": "Dropout"}
        calls["scaled_dot_product_attention"] = "MultiheadAttention"
        for function, module in calls.items():
            said = f"2 calls of F.{function} because only modules can be replaced, such as nn."
            self.assertIn(said + module, ran.stderr)
            self.assertIn(said + module, note)
        ran = self.run_program(PYTHON, script, options=["--apply", "checkpoint", "--overwrite"])
        self.assertIn("In Net, checkpoint: replaced 2 checkpointed layers", ran.stderr)
        typo = ["--apply", "checkpoint", "--layers", "Blok", "--overwrite"]
        ran = self.run_program(PYTHON, script, options=typo)
        self.assertIn("no module has this class: did you mean Block?", ran.stderr)
        options = ["--apply", "checkpoint", "--layers", "Block", "--overwrite"]
        ran = self.run_program(PYTHON, script, options=options)
        self.assertIn("In Net, checkpoint: replaced 2 checkpointed layers", ran.stderr)

    @thorough
    def test_json_counts_what_was_replaced_and_left(self):
        train = self.write("train.py", ENCODER)
        ran = self.run_program(PYTHON, train, "2", options=["--apply", "tempo", "--json"])
        (model,) = json.loads(ran.stdout)["applied"]
        self.assertEqual(model["model"], "Sequential")
        self.assertEqual(model["replaced"]["GELU"], 2)
        self.assertEqual(
            model["left"], [{"what": "SiLU", "reason": "there is no op for it", "modules": 1}]
        )

    @thorough
    def test_a_recipe_on_a_gpu_that_is_not_here(self):
        self.record("as_it_is", "--gpu", "rtx3090", batch=64)
        self.record("tempo", "--gpu", "rtx3090", "--apply", "tempo-packed", batch=64)
        columns = self.compare("as_it_is", "tempo")["rows"]
        peaks = [column["peak_allocated_bytes"] for column in columns]
        self.assertLess(peaks[1], 0.8 * peaks[0])

    def test_norms_whose_weights_a_kernel_would_have_cast(self):
        script = ENCODER.replace("model.to(device)", "model.to(device).bfloat16()")
        script = script.replace("device=device", "device=device, dtype=torch.bfloat16")
        train = self.write("cast.py", script)
        self.file = self.folder / "cast.tscope"
        options = ["--gpu", "rtx3090", "--apply", "tempo"]
        self.run_well(PYTHON, train, "64", options=options)
        names = {row["tensor"] for row in self.told("info", self.file, "--saved")["rows"]}
        self.assertNotIn("normalized", names)


if __name__ == "__main__":
    main()
