"""Training loops of real libraries, small and with random weights, recorded by `temposcope run` on
the CPU and on a virtual GPU: transformers' Trainer, accelerate and Lightning.

    trainers_test.py BIN_FOLDER
"""

import importlib.util
import re
import unittest

import torch
from run_test import PYTHON, Run

# Of an AdamW that is not fused, unlike the Trainer's: on a GPU it counts steps on the CPU.
STATES_HERE = 2 if torch.cuda.is_available() else 3

MODEL = """
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=64, max_position_embeddings=64, attn_implementation="eager",
        )
    )

    class Sentences(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            ids = torch.full((16,), index)
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": index % 2}
"""
TRAINER = (
    MODEL
    + """
    import sys
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=sys.argv[1], max_steps=4, per_device_train_batch_size=4,
        gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=2, save_strategy="no",
        report_to=[], use_cpu=not torch.cuda.is_available(), disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=Sentences(), eval_dataset=Sentences()).train()
"""
)
ACCELERATE = (
    MODEL
    + """
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Sentences(), 4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for number, batch in enumerate(loader):
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if number == 7:
            break
"""
)
LIGHTNING = (
    MODEL
    + """
    import pytorch_lightning as pl

    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch):
            return self.model(**batch).loss

        def validation_step(self, batch):
            self.model(**batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.DataLoader(Sentences(), 4)
    trainer = pl.Trainer(
        max_steps=4, accumulate_grad_batches=2, gradient_clip_val=1.0, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        val_check_interval=4, limit_val_batches=1,
    )
    trainer.fit(Lit(), data, data)
"""
)
# The logits of all batches of a validation stay on the GPU until it ends.
EVALUATE = """
    import sys
    import torch
    from transformers import BertConfig, BertForMaskedLM, Trainer, TrainerCallback
    from transformers import TrainingArguments
    from temposcope._keepers import find_keepers

    class Sentences(torch.utils.data.Dataset):
        def __len__(self):
            return 32

        def __getitem__(self, index):
            ids = torch.full((128,), index + 5)
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}

    class Ask(TrainerCallback):
        batches = 0

        def on_prediction_step(self, *_args, **_kwargs):
            self.batches += 1
            if self.batches < 4:
                return
            segments = torch._C._cuda_memorySnapshot(None)["segments"]
            blocks = [(b["address"], b["size"]) for s in segments for b in s["blocks"]
                      if b["state"] == "active_allocated"]
            (found,) = find_keepers([max(blocks, key=lambda block: block[1])], budget_s=20)
            print("kept by", *(keeper.text for keeper in found.keepers))

    model = BertForMaskedLM(BertConfig(
        vocab_size=30522, hidden_size=64, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64,
    ))
    arguments = TrainingArguments(
        output_dir=sys.argv[1], per_device_eval_batch_size=8, report_to=[], disable_tqdm=True
    )
    Trainer(model, arguments, eval_dataset=Sentences(), callbacks=[Ask()],
            compute_metrics=lambda _: {"found": 1.0}).evaluate()
"""
REPLACED = "In BertForSequenceClassification, tempo: replaced 2 GELU, 5 LayerNorm, 8 dropouts, 2 "


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class Trainers(Run):
    def record(self, text: str, *options: str):
        program = self.write("train.py", text)
        ran = self.run_well(PYTHON, program, str(self.folder), options=options)
        self.assertRegex(ran.stderr, re.escape("temposcope: Recorded 3 steps in "))
        return ran

    def check(self, precision: str, states_per_parameter: int):
        self.assert_recorded(3)
        self.assertEqual(
            self.query("SELECT model, precision, batch_size, seq_len FROM v_run"),
            [("BertForSequenceClassification", precision, 4, 16)],
        )
        # Two micro-batches, the clipping of gradients, and the optimizer make a step.
        backwards = self.query(
            "SELECT count(*) FROM v_phase WHERE kind = 'backward' GROUP BY step ORDER BY step"
        )
        self.assertEqual(backwards, [(2,)] * 4)  # the first step, and three
        states = self.query("SELECT count(*) FROM v_storage WHERE role = 'optimizer_state'")
        parameters = 5 + 2 * 16 + 2 + 2  # embeddings, layers, pooler, classifier
        self.assertEqual(states, [(states_per_parameter * parameters,)])
        self.assertEqual(
            self.query("SELECT count(*) FROM v_scope WHERE path = 'bert.encoder.layer.1.output'"),
            [(1,)],
        )

    def check_recipe(self, text: str, precision: str, states_per_parameter: int):
        """On a GPU that is not here, which the libraries find by themselves."""
        ran = self.record(text, "--apply", "tempo", "--gpu", "rtx3090", "--overwrite")
        self.assertIn(REPLACED, ran.stderr)
        self.check(precision, states_per_parameter)
        self.assertEqual(
            self.query("SELECT recipe, source FROM v_run"), [("tempo", "predicted")]
        )
        ops = {name for (name,) in self.query("SELECT DISTINCT name FROM v_op")}
        self.assertLessEqual({"tempo::gelu", "tempo::layer_norm"}, ops)
        self.assertGreater(self.query("SELECT count(*) FROM kernel")[0][0], 100)

    def test_the_trainer_of_transformers(self):
        self.record(TRAINER)
        self.check("fp32", 3)  # both moments and the number of steps
        self.check_recipe(TRAINER, "fp32", 3)

    def test_what_keeps_the_logits_of_a_validation(self):
        program = self.write("evaluate.py", EVALUATE)
        ran = self.run_program(PYTHON, program, str(self.folder), options=["--gpu", "a100-40gb"])
        said = "kept by `all_preds.tensors` of evaluation_loop() at trainer.py:"
        self.assertIn(said, ran.stdout, ran.stderr)

    def test_accelerate(self):
        self.record(ACCELERATE)
        self.check("amp-bf16", STATES_HERE)
        self.check_recipe(ACCELERATE, "amp-bf16", 2)

    @unittest.skipUnless(importlib.util.find_spec("pytorch_lightning"), "no pytorch_lightning")
    def test_lightning(self):
        self.record(LIGHTNING)
        self.check("fp32", STATES_HERE)
        self.check_recipe(LIGHTNING, "fp32", 2)


if __name__ == "__main__":
    unittest.main()
