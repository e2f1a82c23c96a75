"""The built-in models in Python (temposcope._built_in) are those of the worker: one step of both on
the same virtual card has the same memory, to the byte. Over many GPUs (`capture --parallel`) it has
what torch's wrappers must come to.

    built_in_test.py BIN_FOLDER
"""

import json
import math
import pathlib
import subprocess
import sys
import unittest

from commands import BIN, Commands, query, temposcope

PROGRAM = BIN / "python/temposcope/programs/train_built_in.py" if BIN else None
COMPARED = pathlib.Path(__file__).with_name("tensor_parallel_program.py")
SMALL = ("--layers", "2", "--hidden", "256", "--heads", "4", "--batch", "4", "--seq", "128")
GPU = "a100-80gb"


class OneGpu(Commands):
    def memory_in(self, trace: pathlib.Path) -> dict:
        """Peak, saved bytes and the bytes of each class at the peak. A step of a program ends with
        its optimizer, and the loss lives longer: its 4 bytes are of no class there, or held if
        there was time to find who keeps them."""
        told = self.told("info", trace)
        at_peak = {row["name"]: row["size_bytes"] for row in told["rows"]}
        at_peak["temporary"] += at_peak.pop("unknown", 0) + at_peak.pop("held", 0)
        return {
            "peak": told["peak_allocated_bytes"],
            "saved": told["kept_bytes"],
            **at_peak,
        }

    def both(self, *options: str) -> tuple[dict, dict]:
        worker, python = self.folder / "worker.tscope", self.folder / "python.tscope"
        self.succeed("capture", *options, *SMALL, "--device", f"predict:{GPU}", "-o", worker)
        ((workload,),) = query(worker, "SELECT workload FROM v_run")
        recorded = ("run", "--gpu", GPU, "--skip", "1", "--steps", "1", "-o", python)
        self.succeed(*recorded, "--", sys.executable, PROGRAM, workload)
        return self.memory_in(worker), self.memory_in(python)

    def assert_same(self, *options: str):
        worker, python = self.both(*options)
        self.assertEqual(worker, python)

    def test_bert_with_its_head(self):
        self.assert_same("--model", "bert-base", "--head", "mlm")

    def test_gpt2_with_a_recipe_under_autocast(self):
        self.assert_same("--model", "gpt2", "--head", "lm", "--recipe", "tempo-packed",
                         "--precision", "amp-bf16", "--accumulate", "2")  # fmt: skip

    def test_padded_roberta_with_checkpoints(self):
        self.assert_same("--model", "roberta-base", "--head", "squad", "--padding", "random",
                         "--recipe", "checkpoint")  # fmt: skip

    def test_layers_with_fused_attention(self):
        recipe = "flash,gelu=recompute,qkv=fused,optimizer=adamw_fused"
        self.assert_same("--model", "bert-base", "--precision", "amp-bf16", "--recipe", recipe)

    def test_query_and_key_in_one_product(self):
        self.assert_same("--model", "bert-base", "--recipe", "original,qkv=qk")

    def test_key_and_value_in_one_product(self):
        self.assert_same("--model", "bert-base", "--recipe", "original,qkv=kv")

    def test_lamb(self):
        self.assert_same("--model", "bert-base", "--recipe", "original,optimizer=lamb")

    def test_master_weights(self):
        """In Python they are parameters, as the optimizer's; in the worker they are its state."""
        worker, python = self.both("--model", "bert-base", "--head", "mlm", "--precision", "fp16")
        weights = [of.pop("parameter") + of.pop("optimizer_state") for of in (worker, python)]
        self.assertEqual(*weights)
        self.assertEqual(worker, python)


LAYERS, WIDTH, VOCAB, BATCH, POSITIONS = 2, 512, 50257, 4, 256
DECODER = ("--model", "gpt2", "--head", "lm", "--layers", str(LAYERS), "--hidden", str(WIDTH),
           "--heads", "8", "--batch", str(BATCH), "--seq", str(POSITIONS),
           "--device", f"predict:{GPU}")  # fmt: skip
SPLIT_SHAPES = [  # what tensor parallelism splits in a layer
    (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (4 * WIDTH,),
    (WIDTH, 4 * WIDTH),
]  # fmt: skip
WHOLE_SHAPES = 6 * [(WIDTH,)]  # norms, and the biases of the second linear layers
ALL_SHAPES = LAYERS * (SPLIT_SHAPES + WHOLE_SHAPES) + [
    (VOCAB, WIDTH), (1024, WIDTH), (WIDTH,), (WIDTH,)
]  # fmt: skip
HIDDEN = 4 * BATCH * POSITIONS * WIDTH  # bytes of the hidden states


def bytes_of(shapes) -> int:
    return 4 * sum(map(math.prod, shapes))  # fp32


def shard_bytes(world_size: int) -> int:
    """FSDP2 splits the first dimension of each parameter; rank 0 has a full share of each."""
    return bytes_of((math.ceil(shape[0] / world_size), *shape[1:]) for shape in ALL_SHAPES)


def split_bytes(num_ranks: int) -> int:
    """Parameters of rank 0 of tensor parallelism: the vocabulary may not be a multiple."""
    whole = PARAMETERS - LAYERS * bytes_of(SPLIT_SHAPES) - bytes_of([(VOCAB, WIDTH)])
    split = LAYERS * bytes_of(SPLIT_SHAPES) // num_ranks
    return whole + split + bytes_of([(math.ceil(VOCAB / num_ranks), WIDTH)])


PARAMETERS = bytes_of(ALL_SHAPES)


class ManyGpus(Commands):
    """The peak lies in the loss: no gradient lives there, and FSDP2 has sharded all parameters."""

    on_one_card: int | None = None

    def one_card(self) -> int:
        """The worker's peak, with parameters and both states of AdamW."""
        if ManyGpus.on_one_card is None:
            file = self.folder / "one.tscope"
            self.succeed("capture", *DECODER, "-o", file)
            told = self.told("info", file)
            ManyGpus.on_one_card = told["peak_allocated_bytes"]
        return ManyGpus.on_one_card

    def ranks(self, parallel: str, world_size: int, *options: str) -> dict[int, dict]:
        folder = self.folder / "ranks"
        spread = ("--parallel", parallel, "--world-size", str(world_size), "-o", folder)
        told = self.told("capture", *DECODER, *options, *spread)
        self.assertEqual(told["world_size"], world_size)
        return {row["rank"]: row for row in told["rows"]}

    def told_of_rank_0(self, *options: str) -> dict:
        return self.told("info", self.folder / "ranks" / "rank-0000.tscope", *options)

    def assert_peak(self, row: dict, expected: int):
        peak = row["peak_allocated_bytes"]
        self.assertLess(abs(peak - expected) / expected, 1e-3, f"{peak} instead of {expected}")

    def test_ddp_adds_its_buckets(self):
        row = self.ranks("ddp", 2)[0]
        self.assert_peak(row, self.one_card() + PARAMETERS)
        self.assertEqual(row["collective_bytes"], PARAMETERS)

    def test_a_link_carries_what_it_is_told(self):
        """Two ranks send each byte of the gradients once: 1 GB a second is a byte a nanosecond."""
        row = self.ranks("ddp", 2, "--link", "1GB")[0]
        self.assertLess(abs(row["communication_ns"] / PARAMETERS - 1), 0.01)
        spread = ("--parallel", "ddp", "--world-size", "2", "--link", "0GB", "-o")
        ran = temposcope("capture", *DECODER, *spread, self.folder / "none")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--link is 0", ran.stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_traces_say_what_is_trained_and_how(self):
        """In a folder with a file that Python would take for one of its own."""
        (self.folder / "random.py").write_text("raise SystemExit('not mine')")
        files = []
        for parallel in ("ddp", "fsdp2"):
            spread = ("--parallel", parallel, "--world-size", "2", "--accumulate", "2", "-o")
            folder = self.folder / parallel
            ran = temposcope("capture", *DECODER, *spread, folder, cwd=self.folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(f"recipe original, {parallel} on 2 GPUs\n", ran.stdout)
            files.append(folder / "rank-0000.tscope")
        told = self.told("info", files[1])
        for key, value in (("model", "gpt2"), ("head", "lm"), ("recipe", "original"),
                           ("precision", "fp32"), ("batch_size", BATCH), ("parallel", "fsdp2"),
                           ("gradient_accumulation_steps", 2)):  # fmt: skip
            self.assertEqual(told[key], value)
        sequences = told["throughput_sequences_per_s"] * told["step_time_ns"] / 1e9
        self.assertAlmostEqual(sequences, 2 * 2 * BATCH, places=6)  # of both GPUs
        compared = self.told("compare", *files)
        names = [row["recipe"] for row in compared["rows"]]
        self.assertEqual(names, ["original · ddp", "original · fsdp2"])
        self.assertIn("original · fsdp2 trains the same step", compared["sentence"])

    def test_norms_save_their_output_on_ranks(self):
        """Weights have no values there, which must not be taken for a gamma near 0."""
        recipe = ("--recipe", "tempo")
        file = self.folder / "tempo.tscope"
        self.succeed("capture", *DECODER, *recipe, "-o", file)
        kept = self.told("info", file)["kept_bytes"]
        self.ranks("ddp", 2, *recipe)
        self.assertEqual(self.told_of_rank_0()["kept_bytes"], kept)

    def test_overwrite_takes_only_traces_of_ranks(self):
        folder = self.folder / "mine"
        folder.mkdir()
        (folder / "mine.tscope").write_text("not to be lost")
        spread = ("--parallel", "ddp", "--world-size", "2", "-o", folder, "--overwrite")
        ran = temposcope("capture", *DECODER, *spread)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("mine.tscope, which is no rank's trace", ran.stderr)
        self.assertEqual((folder / "mine.tscope").read_text(), "not to be lost")

    def test_a_step_with_master_weights_has_all_micro_batches(self):
        """From the first step on, whose masters are made in its update."""
        for parallel in ("ddp", "tp:2"):
            with self.subTest(parallel=parallel):
                options = ("--precision", "bf16", "--accumulate", "3", "--overwrite")
                row = self.ranks(parallel, 2, *options)[0]
                sql = "SELECT count(*) FROM v_phase WHERE kind = 'forward' GROUP BY step"
                forwards = query(row["file"], sql)
                self.assertEqual(forwards, 3 * [(3,)])

    def test_masters_are_of_a_rank_s_share(self):
        """Weights in bfloat16, their masters and both states of AdamW in fp32."""
        row = self.ranks("tp:4", 4, "--precision", "bf16")[0]
        share = split_bytes(4) // 4  # elements
        weights = row["by_class"]["parameter_bytes"] + row["by_class"]["optimizer_state_bytes"]
        self.assertEqual(weights, (2 + 4 + 8) * share)

    def test_zero1_shards_the_states(self):
        rows = self.ranks("zero1", 4)
        for row in rows.values():
            states = row["by_class"]["optimizer_state_bytes"]
            self.assert_peak(row, self.one_card() - PARAMETERS + states)
        largest = max(row["by_class"]["optimizer_state_bytes"] for row in rows.values())
        self.assertEqual(largest, 2 * bytes_of([(VOCAB, WIDTH)]))  # more than all the rest

    def test_fsdp_holds_shards_of_parameters_and_states(self):
        """Without reshard it holds all parameters too; hsdp:4 shards in groups of four."""
        for parallel, group_size, whole in (("fsdp2", 8, 0), ("fsdp2-no-reshard", 8, 1),
                                            ("hsdp:4", 4, 0)):  # fmt: skip
            with self.subTest(parallel):
                row = self.ranks(parallel, 8, "--overwrite")[0]
                shards = whole * PARAMETERS + 3 * shard_bytes(group_size)
                self.assert_peak(row, self.one_card() - 3 * PARAMETERS + shards)

    def test_tensor_parallelism_splits_layers_and_vocabulary(self):
        row = self.ranks("tp:4", 4)[0]
        self.assertEqual(row["by_class"]["parameter_bytes"], split_bytes(4))
        # Megatron's f and g, twice a layer and around the vocabulary. Of each token the loss needs
        # the largest logit, the sum of the exponentials and the logit of its label.
        self.assertEqual(row["collectives"], 4 * LAYERS + 2 + 3)
        of_loss = 3 * 4 * BATCH * POSITIONS
        self.assertEqual(row["collective_bytes"], (4 * LAYERS + 2) * HIDDEN + of_loss)
        told = self.told_of_rank_0("--ledger")
        share = BATCH * POSITIONS * math.ceil(VOCAB / 4)
        of_vocabulary = [row for row in told["rows"] if row["size_bytes"] >= 4 * share]
        self.assertEqual([row["size_bytes"] for row in of_vocabulary], [4 * share])
        self.assertEqual(of_vocabulary[0]["scope"], "Loss")

    def test_two_groups_split_a_model_and_shard_each_part(self):
        """tp:2 of four GPUs: tensors are split in pairs, and each part is sharded across them."""
        rows = self.ranks("tp:2", 4)
        for rank, split, sharded in ((0, "[0, 1]", "[0, 2]"), (3, "[2, 3]", "[1, 3]")):
            groups = query(
                rows[rank]["file"],
                "SELECT DISTINCT kind, ranks FROM v_collective c "
                "JOIN v_communicator g ON g.id = c.communicator ORDER BY kind",
            )
            self.assertEqual(groups, [
                ("all_gather", sharded), ("all_reduce", split), ("reduce_scatter", sharded)
            ])  # fmt: skip
        vocabulary = math.ceil(math.ceil(VOCAB / 2) / 2)
        rest = split_bytes(2) - bytes_of([(math.ceil(VOCAB / 2), WIDTH)])
        share = rest // 2 + bytes_of([(vocabulary, WIDTH)])
        self.assertEqual(rows[0]["by_class"]["parameter_bytes"], share)

    def test_a_split_model_computes_what_the_whole_one_does(self):
        """On two real ranks, of which the first holds 51 of 101 rows of the vocabulary. In fp32,
        with sums in another order."""
        words = [51, 32]
        for family, head, shapes in (
            ("gpt2", "lm", [words, [3, 16, 51]]),
            ("bert", "mlm", [words, [51], [3, 16, 51]]),
            ("bert", "squad", [words]),
        ):
            with self.subTest(family=family, head=head):
                ran = subprocess.run(
                    [sys.executable, "-m", "torch.distributed.run", "--standalone",
                     "--nproc-per-node", "2", COMPARED, family, head],
                    capture_output=True, text=True,
                )  # fmt: skip
                self.assertEqual(ran.returncode, 0, ran.stderr)
                told = json.loads(ran.stdout)
                self.assertAlmostEqual(*told["losses"], places=4)
                self.assertLess(max(told["differences"].values()), 1e-4)
                self.assertEqual(told["shapes"], shapes)

    def layer_of_rank(self, *options: str) -> tuple[int, dict]:
        """The bytes that the middle one of three layers keeps in rank 0 of tp:4, and its closed
        form."""
        decoder = list(DECODER)
        decoder[decoder.index("--layers") + 1] = "3"
        spread = ("--parallel", "tp:4", "--world-size", "4", "-o", self.folder / "ranks")
        self.succeed("capture", *decoder, *options, *spread, "--overwrite")
        told = self.told_of_rank_0("--ledger")
        in_layer = [row for row in told["rows"] if f"{row['scope']}.".startswith("h.1.")]
        return sum(row["size_bytes"] for row in in_layer), told["closed_form"]

    def test_a_split_layer_keeps_what_its_closed_form_says(self):
        """Korthikanti et al.: sbh (10 + 24/t + 5 a s / (h t)) in 16 bits, and the statistics. The
        inputs of the split linear layers are DTensors."""
        kept, form = self.layer_of_rank("--precision", "pure-bf16")
        n, scores, rows = BATCH * POSITIONS * WIDTH, BATCH * 8 * POSITIONS**2, BATCH * POSITIONS
        self.assertEqual(kept, 10 * n + 24 * n // 4 + 5 * scores // 4 + 16 * rows)
        self.assertEqual(form["formula"], "n(4e+2)+4Rs+(12en+T(2e+1))/4")
        self.assertEqual(form["closed_form_bytes"], kept)

    def test_split_layers_of_recipes_keep_what_their_closed_forms_say(self):
        selective = ("--recipe", "checkpoint-attention", "--precision", "pure-bf16")
        packed = ("--recipe", "tempo-packed")
        for options in (("--precision", "amp-bf16"), packed, selective):
            with self.subTest(options=options):
                kept, form = self.layer_of_rank(*options)
                self.assertEqual(form["closed_form_bytes"], kept)

    def test_a_pipeline_splits_layers_and_copies_the_decoder(self):
        rows = self.ranks("pp:2", 2, "--recipe", "flash", "--precision", "pure-bf16")
        self.assertEqual(self.told_of_rank_0()["gradient_accumulation_steps"], 2)
        parameters = [row["by_class"]["parameter_bytes"] for row in rows.values()]
        self.assertEqual(sum(parameters), (PARAMETERS + bytes_of([(VOCAB, WIDTH)])) // 2)
        # Two micro-batches in bfloat16: hidden states on, their gradients back.
        self.assertEqual([row["collective_bytes"] for row in rows.values()], 2 * [2 * HIDDEN])

    def test_stages_wait_for_each_other(self):
        """With 1F1B the last of two stages idles while the first one runs the first forward and the
        last backward: M micro-batches take M + 1 times as long as one, and not M times."""
        decoder = list(DECODER)
        decoder[decoder.index("--head") + 1] = "layers"
        of_first, bubbles = [], []
        for micro_batches in (4, 8):
            spread = ("--parallel", "pp:2", "--world-size", "2", "--json", "--accumulate")
            into = (str(micro_batches), "-o", self.folder / str(micro_batches))
            told = json.loads(self.succeed("capture", *decoder, *spread, *into).stdout)
            first, last = told["rows"]
            self.assertEqual(first["step_time_ns"], last["step_time_ns"])
            of_first.append(first["compute_ns"])
            self.assertEqual(
                last["step_time_ns"],
                last["compute_ns"] + last["exposed_communication_ns"] + last["idle_ns"],
            )
            bubbles.append(last["idle_ns"])
        of_micro_batch = (of_first[1] - of_first[0]) / 4
        self.assertLess(abs(bubbles[1] / bubbles[0] - 1), 0.05)
        # The first micro-batch adds to no gradient yet, and there are transfers.
        self.assertLess(abs(bubbles[0] / of_micro_batch - 1), 0.1)

    def test_a_stage_counts_its_own_layers(self):
        decoder = list(DECODER)
        decoder[decoder.index("--layers") + 1] = "4"
        spread = ("--parallel", "pp:2", "--world-size", "2", "-o", self.folder / "ranks")
        self.succeed("capture", *decoder, *spread)
        self.assertEqual(self.told_of_rank_0()["num_layers"], 2)

    def test_a_step_that_does_not_fit_says_so(self):
        spread = ("--parallel", "ddp", "--world-size", "2", "-o", self.folder / "ranks")
        small = [word.replace(GPU, "t4") for word in DECODER]
        small[small.index("--batch") + 1] = "64"
        ran = temposcope("capture", *small, *spread)
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("rank 0: Recorded", ran.stderr)
        self.assertIn("OutOfMemoryError", ran.stderr)

    def test_what_cannot_be_spread_is_refused(self):
        for options, part in (
            (("--parallel", "fsdp3", "--world-size", "8"), "'fsdp3' is not a strategy"),
            (("--parallel", "tp", "--world-size", "8"), "write tp:N"),
            (("--parallel", "ddp:2", "--world-size", "8"), "ddp:2 has no groups"),
            (("--parallel", "ddp"), "spreads a step over 2 to"),
            (("--parallel", "hsdp:8", "--world-size", "12"), "give a multiple of 8"),
            (("--parallel", "tp:3", "--world-size", "3"), "8 heads cannot be split"),
            (("--parallel", "pp:4", "--world-size", "4"), "2 layers cannot be split"),
            (("--parallel", "ddp", "--world-size", "2", "--recipe", "tempo-fused"),
             "tempo-fused cannot be spread"),
            (("--parallel", "ddp", "--world-size", "2", "--recipe", "tempo,flash"), "one recipe"),
            (("--parallel", "zero1", "--world-size", "2", "--precision", "bf16"), "amp-bf16"),
            (("--world-size", "2"), "--parallel"),
        ):
            ran = temposcope("capture", *DECODER, *options, "-o", self.folder / "ranks")
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(part, ran.stderr)
        on_cpu = DECODER[:-1] + ("cpu",)
        ran = temposcope("capture", *on_cpu, "--parallel", "ddp", "--world-size", "2", "-o",
                         self.folder / "ranks")  # fmt: skip
        self.assertEqual(ran.returncode, 2)
        self.assertIn("add --device predict:GPU", ran.stderr)


if __name__ == "__main__":
    unittest.main()
