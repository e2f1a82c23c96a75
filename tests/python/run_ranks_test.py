"""`temposcope run` on distributed programs: real ranks, and ranks of a world that is not there.

    run_ranks_test.py BIN_FOLDER
"""

import contextlib
import json
import math
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import unittest

from commands import BIN, Commands, query, temposcope

PROGRAM = str(pathlib.Path(__file__).with_name("ranks_program.py"))
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
TWO_RANKS = (*TORCHRUN, "--standalone", "--nproc-per-node", "2")
SMALL = ("--width", "64", "--vocab", "512", "--positions", "16")  # of PROGRAM
ALONE = ("single", "--device", "cpu", *SMALL)

LAYERS, WIDTH, VOCAB = 4, 1024, 128000
LAYER_SHAPES = [
    (WIDTH,), (3 * WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH)
]  # fmt: skip
ROOT_SHAPES = [(VOCAB, WIDTH), (VOCAB, WIDTH)]
ELEMENT_BYTES = 2  # bfloat16


def bytes_of(shapes) -> int:
    return ELEMENT_BYTES * sum(map(math.prod, shapes))


def padded_bytes(shapes, world_size: int) -> int:
    """What FSDP2 gathers: shards of one length, the last ones of which may have less to hold."""
    return ELEMENT_BYTES * sum(
        math.ceil(shape[0] / world_size) * world_size * math.prod(shape[1:]) for shape in shapes
    )


def shard_bytes(shapes, world_size: int) -> int:
    """FSDP2 splits the first dimension of each parameter; the allocator rounds to 512 bytes."""
    shards = (
        math.ceil(shape[0] / world_size) * math.prod(shape[1:]) * ELEMENT_BYTES for shape in shapes
    )
    return sum(-(-size // 512) * 512 for size in shards)


ALL_SHAPES = LAYERS * LAYER_SHAPES + ROOT_SHAPES
PARAMETERS = bytes_of(ALL_SHAPES)


# Five steps of a program; more lines may come before and after.
STEPS = (
    "import torch\nmodel = torch.nn.Linear(8, 8, device='cpu')\n"
    "optimizer = torch.optim.SGD(model.parameters())\n"
    "for step in range(5):\n    model(torch.ones(2, 8, device='cpu')).sum().backward()\n"
    "    optimizer.step()\n"
)


def kill_group(group: int):
    """If it still lives."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Ranks(Commands):
    def start(self, output, *words: str, options=(), **environment):
        return temposcope("run", "-o", output, *options, "--", *words, cwd=self.folder,
                          env=os.environ | environment)  # fmt: skip

    def start_well(self, output, *words: str, options=(), **environment):
        ran = self.start(output, *words, options=options, **environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def ranks_in(self, folder) -> dict[int, dict]:
        self.run_document = self.told("info", folder)
        return {row["rank"]: row for row in self.run_document["rows"]}

    def collectives_of(self, row: dict) -> dict[str, dict]:
        """Those of the last step, by kind."""
        return {total["kind"]: total for total in self.told("info", row["file"])["collectives"]}

    def query(self, row: dict, sql: str) -> list[tuple]:
        return query(row["file"], sql)

    def script(self, text: str) -> str:
        path = self.folder / "program.py"
        path.write_text(text)
        return str(path)

    def virtual(self, mode: str, world_size: int, *arguments: str, ranks="representative"):
        folder = self.folder / f"{mode}-{world_size}-{ranks}"
        options = ("--gpu", "a100-80gb", "--world-size", str(world_size), "--ranks", ranks)
        self.start_well(folder, *TORCHRUN, PROGRAM, mode, *arguments, options=options)
        return self.ranks_in(folder)


class VirtualRanks(Ranks):
    on_one_card: dict | None = None

    def assert_peak(self, row: dict, expected: int):
        peak = row["peak_allocated_bytes"]
        self.assertLess(abs(peak - expected) / expected, 1e-3, f"{peak} instead of {expected}")

    def activations(self) -> int:
        """All but parameters and the two states of AdamW: no gradient lives at the peak."""
        if VirtualRanks.on_one_card is None:
            folder = self.folder / "single"
            options = ("--gpu", "a100-80gb")
            self.start_well(folder, sys.executable, PROGRAM, "single", options=options)
            VirtualRanks.on_one_card = self.ranks_in(folder)[0]
        return VirtualRanks.on_one_card["peak_allocated_bytes"] - 3 * PARAMETERS

    def test_ddp_adds_its_buckets(self):
        for world_size in (2, 1024):
            row = self.virtual("ddp", world_size, ranks="0")[0]
            self.assert_peak(row, 4 * PARAMETERS + self.activations())
            reduced = self.collectives_of(row)
            self.assertEqual(list(reduced), ["all_reduce"])
            self.assertEqual(reduced["all_reduce"]["in_bytes"], PARAMETERS)  # all gradients
            self.assertEqual(reduced["all_reduce"]["out_bytes"], PARAMETERS)
            self.assertEqual(reduced["all_reduce"]["num_ranks"], world_size)
            self.assertEqual(row["collective_bytes"], PARAMETERS)
            # Backward hides all buckets but the last one.
            self.assertGreater(row["communication_ns"], row["exposed_communication_ns"])
            self.assertGreater(row["exposed_communication_ns"], 0)
            buckets = self.query(
                row,
                "SELECT sum(size_bytes), min(role) FROM (SELECT DISTINCT t.storage, s.size_bytes, "
                "s.role FROM v_tensor t JOIN v_storage s ON s.id = t.storage "
                "JOIN allocation a ON a.id = s.allocation WHERE t.name LIKE 'DDP bucket %' "
                "AND a.free_requested_event IS NULL)",  # those of the first step are made anew
            )
            self.assertEqual(buckets, [(PARAMETERS, "gradient")])

    def test_fsdp2_holds_shards(self):
        """In the loss, outside of the model, all parameters are sharded again."""
        for world_size in (2, 1024):
            row = self.virtual("fsdp2", world_size, ranks=str(world_size - 1))[world_size - 1]
            # fully_shard gives the model another class: FSDPDecoder.
            self.assertEqual(self.query(row, "SELECT model FROM v_run"), [("Decoder",)])
            self.assert_peak(row, 3 * shard_bytes(ALL_SHAPES, world_size) + self.activations())
            whole = padded_bytes(ALL_SHAPES, world_size)
            parts = self.collectives_of(row)
            self.assertEqual(sorted(parts), ["all_gather", "reduce_scatter"])
            self.assertEqual(parts["all_gather"]["out_bytes"], 2 * whole)  # forward, backward
            self.assertEqual(parts["all_gather"]["in_bytes"], 2 * whole // world_size)
            self.assertEqual(parts["reduce_scatter"]["in_bytes"], whole)
            self.assertEqual(parts["reduce_scatter"]["out_bytes"], whole // world_size)
            self.assertEqual(
                self.query(row, "SELECT DISTINCT dtype, kernel_name FROM v_collective ORDER BY 2"),
                [
                    ("bfloat16", "ncclDevKernel_AllGather_RING_LL"),
                    ("bfloat16", "ncclDevKernel_ReduceScatter_PreMulSum_bf16_RING_LL"),
                ],
            )
            self.assert_named(row)
            at_other_times = self.query(
                row,
                "SELECT count(*) FROM collective c JOIN kernel k ON k.id = c.kernel "
                "WHERE c.start_ns <> k.start_ns OR c.end_ns <> k.end_ns",
            )
            self.assertEqual(at_other_times, [(0,)])

    def assert_named(self, row):
        """What FSDP2 gathers and reduces has the name of its parameters."""
        roles = dict(
            self.query(
                row,
                "SELECT DISTINCT t.name, s.role FROM v_tensor t JOIN v_storage s "
                "ON s.id = t.storage WHERE t.name LIKE 'layers.0.%'",
            )
        )
        self.assertEqual(roles["layers.0.all_gather_output"], "workspace")
        self.assertEqual(roles["layers.0.reduce_scatter_input"], "workspace")
        self.assertEqual(roles["layers.0.qkv.weight.grad"], "gradient")
        gathered = self.query(
            row,
            "SELECT count(DISTINCT s.size_bytes) FROM tensor t JOIN storage s ON s.id = t.storage "
            "JOIN string n ON n.id = t.name WHERE n.text = 'layers.0.qkv.weight'",
        )
        self.assertEqual(gathered, [(2,)])  # the shard, and the whole

    def test_hsdp_shards_among_eight(self):
        row = self.virtual("hsdp", 64, ranks="0")[0]
        self.assert_peak(row, 3 * shard_bytes(ALL_SHAPES, 8) + self.activations())
        reduced = self.collectives_of(row)["all_reduce"]
        self.assertEqual(reduced["in_bytes"], padded_bytes(ALL_SHAPES, 8) // 8)
        groups = self.query(
            row,
            "SELECT DISTINCT kind, ranks FROM v_collective c "
            "JOIN v_communicator g ON g.id = c.communicator ORDER BY kind",
        )
        shard, replicas = "[0, 1, 2, 3, 4, 5, 6, 7]", "[0, 8, 16, 24, 32, 40, 48, 56]"
        self.assertEqual(
            groups, [("all_gather", shard), ("all_reduce", replicas), ("reduce_scatter", shard)]
        )

    def test_zero_runs_the_rank_with_the_largest_share_too(self):
        rows = self.virtual("zero", 8)
        states = 2 * bytes_of([(VOCAB, WIDTH)])  # one embedding is more than all layers
        self.assert_peak(rows[0], 2 * PARAMETERS + states + self.activations())
        self.assertGreater(rows[0]["peak_allocated_bytes"], rows[7]["peak_allocated_bytes"])

    def test_each_stage_of_a_pipeline_runs(self):
        rows = self.virtual("pp", 4)
        self.assertEqual(sorted(rows), [0, 1, 2, 3])
        peaks = [row["peak_allocated_bytes"] for row in rows.values()]
        self.assertEqual(peaks[1], max(peaks[1:3]))
        self.assertGreater(min(peaks[0], peaks[3]), max(peaks[1:3]))  # embedding, head
        hidden = 4 * 1024 * WIDTH * ELEMENT_BYTES  # of a batch: four micro-batches
        sent = self.collectives_of(rows[1])
        self.assertEqual(sent["send"]["in_bytes"], 2 * hidden)  # on and back
        self.assertEqual(sent["recv"]["out_bytes"], 2 * hidden)
        all_steps = rows[1]["steps"] * hidden
        ways = self.query(
            rows[1],
            "SELECT kind, peer, sum(in_bytes), sum(out_bytes) FROM v_collective "
            "GROUP BY kind, peer ORDER BY kind, peer",
        )
        # The first message of all comes before a module runs, and so before the first step.
        self.assertEqual(ways, [("recv", 0, 0, all_steps - hidden // 4), ("recv", 2, 0, all_steps),
                                ("send", 0, all_steps, 0), ("send", 2, all_steps, 0)])  # fmt: skip

    def test_two_runs_are_the_same(self):
        first, second = (self.virtual("fsdp2", 8, ranks=ranks)[3] for ranks in ("3", "3,4"))
        first.pop("file"), second.pop("file")
        self.assertEqual(first, second)
        self.assertGreater(first["collectives"], 0)
        self.assertEqual(first["nccl_bytes"], 205 << 20)  # assets/setups.json
        self.assertEqual(first["device"], "cuda:3")

    def test_two_launches_are_told_apart(self):
        """By their ids alone: all that happens in them is the same."""
        first, second = (self.virtual("ddp", 2, *SMALL, ranks=ranks) for ranks in ("0,1", "1"))
        blocks, others = (self.query(
            row,
            "SELECT address, block_bytes, alloc_event, free_completed_event, op FROM allocation",
        ) for row in (first[1], second[1]))  # fmt: skip
        self.assertGreater(len(blocks), 0)
        self.assertEqual(blocks, others)
        pathlib.Path(second[1]["file"]).rename(first[1]["file"])
        told = temposcope("info", self.folder / "ddp-2-0,1")
        self.assertEqual(told.returncode, 1)
        files = f"{first[0]['file']} and {first[1]['file']}"
        self.assertIn(f"{files} are of two launches: ", told.stderr)

    def test_a_node_has_as_many_ranks_as_the_launcher_says(self):
        program = self.script(
            "import os\nnames = ('RANK', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'GROUP_WORLD_SIZE')\n"
            "print(*(os.environ[name] for name in names))\n"
        )
        for words, said in (
            ((), "7 7 8 1"),
            (("--nproc-per-node", "2"), "7 1 2 4"),
            (("--nnodes", "8", "--nproc-per-node", "1", "--node-rank", "0"), "7 0 1 8"),
        ):
            options = ("--gpu", "a100-80gb", "--world-size", "8", "--ranks", "7")
            ran = self.start(
                self.folder / said, *TORCHRUN, *words, program, options=options
            )
            self.assertIn(said, ran.stdout, ran.stderr)
            self.assertIn("none of them imported torch", ran.stderr)

    def start_alone(self, program: str):
        """Of a world of 8, without torchrun."""
        options = ("--gpu", "a100-80gb", "--world-size", "8")
        return self.start(self.folder / "alone", sys.executable, "-c", program, options=options)

    def test_ranks_without_a_launcher_are_an_error_with_a_sentence(self):
        ran = self.start_alone(STEPS.replace("range(5)", "range(2)"))
        self.assertIn("no launcher of torch started ranks", ran.stderr)
        self.assertIn("put torchrun in front of the program", ran.stderr)
        ran = self.start_alone("")
        self.assertIn("saw no Python process import torch", ran.stderr)
        self.assertNotIn("torchrun", ran.stderr)

    def start_rank(self, program: str, *, rank=2, code=1, options=()):
        """A program's rank of 4, which ends with this code."""
        options = ("--gpu", "a100-80gb", "--world-size", "4", "--ranks", str(rank), *options)
        ran = self.start(self.folder / "ranks", *TORCHRUN, self.script(program), options=options)
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran

    def test_another_rank_or_world_size_than_the_run_has_is_refused(self):
        ran = self.start_rank(
            "import os, torch.distributed as dist\n"
            "for options in ({'rank': 0, 'world_size': 2},\n"
            "                {'init_method': 'tcp://node0:29400', 'rank': 0, 'world_size': 2},\n"
            "                {'init_method': 'tcp://node0:29400?rank=0&world_size=2'},\n"
            "                {'store': dist.HashStore(), 'rank': 0, 'world_size': 2}):\n"
            "    try:\n        dist.init_process_group('nccl', **options)\n"
            "    except RuntimeError as error:\n        print(error)\n"
            "os.environ['WORLD_SIZE'] = '2'\ndist.init_process_group('nccl')\n"
        )
        refused = "program.py:7 calls this process rank 0 of 2, and it is rank 2 of 4: leave both "
        self.assertEqual(ran.stdout.count(refused), 4, ran.stdout)
        self.assertIn(
            "Nothing was recorded. Rank 2 failed: program.py:11 calls this process rank 2 of 2, "
            "and it is rank 2 of 4: leave both numbers to the launcher (RANK, WORLD_SIZE), or give "
            "the program's to --world-size.\n",
            ran.stderr,
        )

    def test_a_store_of_the_program_is_not_asked_for_absent_ranks(self):
        ran = self.start_rank(
            "import torch, torch.distributed as dist\n"
            "dist.init_process_group('nccl', store=dist.HashStore(), rank=2, world_size=4)\n"
            "dist.all_reduce(torch.ones(4).cuda())\nprint('reduced')\n",
            code=0,
        )
        self.assertIn("reduced", ran.stdout, ran.stderr)

    def test_a_launcher_of_a_function_starts_no_ranks(self):
        ran = self.start_alone(
            "from torch.distributed.launcher.api import LaunchConfig, elastic_launch\n"
            "raise SystemExit(elastic_launch(LaunchConfig(1, 1, 2), print)())\n"
        )
        self.assertIn("this launcher starts a function: put it into a script.", ran.stderr)
        self.assertIn("no launcher of torch started ranks", ran.stderr)

    def test_a_mesh_of_another_size_than_the_world_ends_with_torchs_sentence(self):
        ran = self.start_rank(
            "from torch.distributed.device_mesh import init_device_mesh\n"
            "init_device_mesh('cuda', (3, 3))\n"
        )
        self.assertRegex(ran.stderr, "Rank 2 failed with RuntimeError: .* 4, but found 9 ranks!\n")

    def test_objects_of_absent_ranks(self):
        """Where each gives one they are this rank's own. What one other rank gives is not known."""
        ran = self.start_rank(
            "import torch\nimport torch.distributed as dist\ndist.init_process_group()\n"
            "own, all_ranks = {'rank': 2}, [None] * 4\ndist.all_gather_object(all_ranks, own)\n"
            "assert all_ranks == [own] * 4 and all_ranks[0] is not own\n"
            "gathered = [None] * 4\ndist.gather_object(own, gathered, dst=2)\n"
            "assert gathered == [own] * 4\ndist.gather_object(own, dst=0)\n"
            "mine = [None]\ndist.scatter_object_list(mine, ['a', 'b', 'c', 'd'], src=2)\n"
            "assert mine == ['c']\n"
            "things = ['here', None]\ndist.broadcast_object_list(things, src=0)\n"
            "assert things == ['here', None]\n"
            "for refused in (lambda: dist.all_gather_object([None] * 3, own),\n"
            "                lambda: dist.gather_object(own, gathered, dst=0),\n"
            "                lambda: dist.scatter_object_list(mine, ['a', 'b'], src=2),\n"
            "                lambda: dist.broadcast_object_list([], src=0)):\n"
            "    try:\n        refused()\n    except (IndexError, ValueError):\n"
            "        continue\n    raise AssertionError\n"
            "dist.broadcast_object_list([None], src=2)\n"
            "pair = dist.new_group([2, 3])\n"
            "for wait in (lambda: dist.scatter_object_list(mine, src=0),\n"
            "             lambda: dist.recv_object_list(mine, src=1),\n"
            "             lambda: dist.broadcast_object_list([None], group=pair, group_src=1)):\n"
            "    try:\n        wait()\n    except RuntimeError as error:\n        print(error)\n"
            "linear = torch.nn.Linear(8, 8).cuda()\n"
            "gloo = dist.new_group(backend='gloo')\n"
            "torch.nn.parallel.DistributedDataParallel(linear, process_group=gloo)\n"
        )
        end = ", which does not run with it: run all ranks (without --world-size)."
        waits = [f"temposcope: rank 2 waits for objects of rank {rank}{end}" for rank in (0, 1, 3)]
        self.assertEqual(ran.stdout.splitlines(), waits)
        self.assertIn("Rank 2 failed: DDP on gloo gets no result from ranks that do", ran.stderr)

    def test_a_child_of_a_rank_does_not_speak_for_it(self):
        child = "import torch; raise ValueError('probe')"
        ran = self.start_rank(
            "import subprocess, sys, torch\n"
            f"subprocess.run([sys.executable, '-c', {child!r}])\n" + STEPS.replace("cpu", "cuda"),
            code=0,
        )
        self.assertIn("ValueError: probe", ran.stderr)
        ranks = self.folder / "ranks"
        said = (
            f"temposcope: Recorded 1 rank in {ranks}, of 4.\n"
            f"temposcope: Next: temposcope info {ranks}\n"
        )
        self.assertTrue(ran.stderr.endswith(said), ran.stderr)
        ran = self.start_rank(
            "import subprocess, sys, torch\n"
            f"subprocess.run([sys.executable, '-c', {child!r}])\n"
            "raise KeyError('own')\n",
            options=("--overwrite",),
        )
        self.assertIn("Rank 2 failed with KeyError: 'own'.", ran.stderr)
        self.assertNotIn("after it", ran.stderr)

    def test_a_failure_after_the_recording_has_its_reason(self):
        """However long that is, and whatever is in it."""
        message = "'late \\ud800' + 10000 * 'x'"
        ran = self.start_rank(STEPS.replace("cpu", "cuda") + f"raise ValueError({message})\n")
        self.assertIn("of 4. Rank 2 failed with ValueError: late ?xxx", ran.stderr)
        *_, sentence, _ = ran.stderr.splitlines()
        self.assertLess(len(sentence), 500)

    def test_gloo_runs_without_the_others(self):
        rows = self.virtual("gloo", 4, *SMALL, ranks="2")
        self.assertEqual(rows[2]["state"], "complete")

    def test_what_only_another_rank_knows_is_said(self):
        folder = self.folder / "asks"
        options = ("--gpu", "a100-80gb", "--world-size", "4", "--ranks", "2")
        ran = self.start(folder, *TORCHRUN, PROGRAM, "asks", options=options)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("rank 2 waits for", ran.stderr)

    def test_the_launcher_chooses_whose_output_is_shown(self):
        program = self.script("import os\nprint('rank', os.environ['RANK'], flush=True)\n" + STEPS)
        of_rank_1 = ("--local-ranks-filter", "1")
        for words, shown in (((), ["rank 0", "rank 1"]), (of_rank_1, ["rank 1"])):
            folder = self.folder / f"shown-{len(shown)}"
            options = ("--gpu", "a100-80gb", "--world-size", "2", "--ranks", "all")
            ran = self.start_well(folder, *TORCHRUN, *words, program, options=options)
            self.assertEqual(sorted(ran.stdout.splitlines()), shown)

    def test_a_rank_that_dies_is_named_and_the_others_stay(self):
        folder = self.folder / "dies"
        options = ("--gpu", "a100-80gb", "--world-size", "4")
        ran = self.start(folder, *TORCHRUN, PROGRAM, "dies", options=options)
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(sorted(self.ranks_in(folder)), [0])
        self.assertIn("rank 3: Nothing was recorded: the program ended with ValueError", ran.stderr)
        self.assertTrue(
            ran.stderr.endswith(
                f"Recorded 1 rank in {folder}, of 4. Rank 3 failed with ValueError: this rank is "
                f"unlucky.\ntemposcope: Next: temposcope info {folder}\n"
            ),
            ran.stderr,
        )

    def test_the_first_rank_that_failed_is_named(self):
        program = self.script(
            "import json, os, pathlib, signal, time\n"
            "if os.environ['RANK'] == '0':\n    os.kill(os.getpid(), signal.SIGKILL)\n"
            "status = pathlib.Path(json.loads(os.environ['TEMPOSCOPE_RUN'])['status'])\n"
            "while 'exit_code' not in status.read_text():\n    time.sleep(0.01)\n"
            "import torch\nraise ValueError\n"
        )
        options = ("--gpu", "a100-80gb", "--world-size", "4")
        ran = self.start(self.folder / "killed", *TORCHRUN, program, options=options)
        self.assertEqual(ran.returncode, 128 + signal.SIGKILL)
        self.assertIn(
            "Nothing was recorded. Rank 0 failed first with exit code 137. Rank 3 failed after "
            "it.\n",
            ran.stderr,
        )

    def test_wrong_ranks_are_refused(self):
        for options, part in (
            (("--gpu", "a100-80gb", "--world-size", "1"), "--world-size is 1"),
            (("--gpu", "a100-80gb", "--world-size", "4", "--ranks", "4"), "--ranks 4 is no rank"),
            (("--gpu", "a100-80gb", "--ranks", "all"), "--world-size"),
        ):
            ran = self.start(self.folder / "none", *TORCHRUN, PROGRAM, "ddp", options=options)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(part, ran.stderr)

    def test_a_program_without_a_launcher_is_told_so(self):
        options = ("--gpu", "a100-80gb", "--world-size", "4")
        ran = self.start(self.folder / "x", sys.executable, PROGRAM, "ddp", options=options)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("put torchrun in front", ran.stderr)


class RealRanks(Ranks):
    def test_torchrun_on_the_cpu(self):
        folder = self.folder / "gloo"
        self.start_well(folder, *TWO_RANKS, PROGRAM, "ddp", "--device", "cpu", *SMALL)
        rows = self.ranks_in(folder)
        self.assertEqual(sorted(rows), [0, 1])
        self.assertEqual(self.run_document["world_size"], 2)
        self.assertEqual([row["state"] for row in rows.values()], ["complete"] * 2)
        self.assertEqual(self.query(rows[0], "SELECT model FROM v_run"), [("Decoder",)])
        reduced = [self.collectives_of(row)["all_reduce"] for row in rows.values()]
        parameters = LAYERS * (12 * 64 * 64 + 2 * 64) + 2 * 512 * 64  # the vocabulary's twice
        self.assertEqual([total["in_bytes"] for total in reduced], [4 * parameters] * 2)  # float32
        self.assertGreater(min(total["time_ns"] for total in reduced), 0)
        self.assertEqual(self.run_document["clocks"], "collectives")
        self.assert_each_waits_for_the_other(rows)
        self.assertEqual([row["compute_ns"] for row in rows.values()], [None] * 2)  # no kernels

    def assert_each_waits_for_the_other(self, rows):
        """Of two ranks one waits as long as the other is waited for, however fast they are."""
        for one, other in ((rows[0], rows[1]), (rows[1], rows[0])):
            self.assertEqual(one["wait_ns"], other["waited_for_ns"])
        self.assertGreater(sum(row["wait_ns"] for row in rows.values()), 0)

    def test_the_rank_that_others_wait_for_is_named(self):
        folder = self.folder / "slow"
        self.start_well(folder, *TWO_RANKS, PROGRAM, "slow", "--device", "cpu", *SMALL)
        rows = self.ranks_in(folder)
        self.assert_each_waits_for_the_other(rows)
        self.assertGreater(rows[1]["waited_for_ns"], rows[0]["waited_for_ns"])
        told = temposcope("info", folder).stdout
        self.assertIn("In the last step, the others wait the most for rank 1: ", told)

    def test_another_run_needs_another_folder(self):
        for rank in ("0", "1"):
            environment = {"RANK": rank, "WORLD_SIZE": "2"}
            into = self.folder / f"run-{rank}"
            self.start_well(into, sys.executable, PROGRAM, *ALONE, **environment)
        again = self.start(into, sys.executable, PROGRAM, *ALONE, **environment)
        self.assertEqual(again.returncode, 2)
        self.assertIn("has traces already: give another folder, or --overwrite", again.stderr)
        earlier = into / "rank-0000.tscope"
        (self.folder / "run-0" / "rank-0000.tscope").rename(earlier)
        with sqlite3.connect(earlier) as trace:
            trace.execute("UPDATE run SET start_unix_ns = start_unix_ns - 60000000000")
        told = temposcope("info", into)
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, "rank-0001.*is of a run that began .* after the run of .*000")

    def test_two_launches_into_one_folder_at_the_same_time(self):
        """The second one comes to its first step when the first one has written its trace."""
        into, go = self.folder / "both", self.folder / "go"
        errors_file = self.enterContext(open(self.folder / "errors", "w+"))
        second = self.enterContext(subprocess.Popen(
            [BIN / "temposcope", "run", "-o", into, "--", sys.executable, PROGRAM, *ALONE,
             "--after", go],
            stdout=subprocess.PIPE, stderr=errors_file, text=True, start_new_session=True,
        ))  # fmt: skip
        self.addCleanup(kill_group, second.pid)
        self.assertEqual(second.stdout.readline(), "waits\n")
        self.start_well(into, sys.executable, PROGRAM, *ALONE)
        trace = into / "rank-0000.tscope"
        written = trace.read_bytes()
        go.touch()
        self.assertEqual(second.wait(timeout=300), 0)  # the program goes on
        errors = pathlib.Path(errors_file.name).read_text()
        self.assertIn(
            f"rank 0: another launch has written {trace} meanwhile: give each launch its own "
            "folder.",
            errors,
        )
        self.assertEqual(trace.read_bytes(), written)

    def test_the_nodes_of_a_launch_are_one_run(self):
        launch = {"TORCHELASTIC_RUN_ID": "job", "MASTER_ADDR": "node0", "MASTER_PORT": "29400"}
        ids = []
        for rank in ("0", "1"):
            environment = {"RANK": rank, "WORLD_SIZE": "2"} | launch
            into = self.folder / f"node-{rank}"
            self.start_well(into, sys.executable, PROGRAM, *ALONE, **environment)
            (row,) = self.ranks_in(into).values()
            ids += self.query(
                row,
                "SELECT json_extract(software, '$.run_id'), "
                "json_extract(software, '$.launch_id') FROM v_run",
            )
        self.assertEqual(ids[0], ids[1])
        self.assertNotIn(None, ids[0])

    def test_ctrl_c_keeps_the_ranks(self):
        folder = self.folder / "interrupted"
        errors_file = self.enterContext(open(self.folder / "errors", "w+"))
        process = self.enterContext(subprocess.Popen(
            [BIN / "temposcope", "run", "--gpu", "a100-80gb", "--world-size", "2", "--ranks", "0",
             "-o", folder, "--", *TORCHRUN, PROGRAM, "stays", *SMALL],
            stdout=subprocess.PIPE, stderr=errors_file, text=True, start_new_session=True,
        ))  # fmt: skip
        self.addCleanup(kill_group, process.pid)
        self.assertEqual(process.stdout.readline(), "stays\n")
        finished = folder / "rank-0000.tscope"  # sorts before the partial one
        finished.touch()
        again = self.start(
            folder, sys.executable, PROGRAM, *ALONE,
            options=("--overwrite",),
        )  # fmt: skip
        self.assertTrue(finished.exists())
        finished.unlink()
        self.assertEqual(again.returncode, 2)
        self.assertIn(f"Another launch records into {folder}: give another folder.", again.stderr)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        self.assertEqual(process.wait(timeout=120), 128 + signal.SIGINT)
        errors = pathlib.Path(errors_file.name).read_text()
        self.assertIn(f"Recorded 1 rank in {folder}, of 2; 1 of them is incomplete.", errors)
        self.assertNotIn("_virtual_launch.py", errors)

    def test_torchrun_on_virtual_cards(self):
        folder = self.folder / "cards"
        self.start_well(
            folder, *TWO_RANKS, PROGRAM, "fsdp2", *SMALL, options=("--gpu", "a100-80gb")
        )
        rows = self.ranks_in(folder)
        self.assertEqual([row["device"] for row in rows.values()], ["cuda:0", "cuda:1"])
        self.assertEqual(self.run_document["clocks"], "first_step")
        for row in rows.values():
            exposed = row["exposed_communication_ns"]
            self.assertEqual(row["compute_ns"] + exposed + row["idle_ns"], row["step_time_ns"])
            self.assertGreater(row["communication_ns"], exposed)
            self.assertGreater(exposed, 0)  # no layer hides that the first one is gathered
            self.assertIsNone(row["wait_ns"])

    def test_a_rank_that_dies_is_not_said_to_end_as_the_launcher(self):
        program = self.script(
            "import os\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
            "if dist.get_rank() == 1:\n    os._exit(9)\n" + STEPS
        )  # fmt: skip
        ran = self.start(self.folder / "dies", *TWO_RANKS, program)
        self.assertIn("rank 1: Nothing was recorded: it was killed, or ended,", ran.stderr)

    def test_times_are_of_the_last_step_that_all_ranks_have_whole(self):
        """Rank 1 ends in its third recorded step, and rank 0, which waits for it, with an error."""
        program = self.script(
            "import os, torch\nimport torch.distributed as dist\n"
            "dist.init_process_group('gloo')\n"
            "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))\n"
            "optimizer = torch.optim.SGD(model.parameters())\n"
            "for step in range(5):\n    loss = model(torch.ones(2, 8)).sum()\n"
            "    if step == 3 and dist.get_rank() == 1:\n        os._exit(9)\n"
            "    loss.backward()\n    optimizer.step()\n"
        )
        folder = self.folder / "torn"
        self.start(folder, *TWO_RANKS, program, options=("--steps", "4"))
        rows = self.ranks_in(folder)
        self.assertEqual(self.run_document["shared_step"], 3)
        self.assert_each_waits_for_the_other(rows)
        self.assertEqual([row["collectives"] for row in rows.values()], [1, 1])

    def test_a_step_in_which_the_program_fails_is_cut_off(self):
        program = self.script(
            "import torch\nmodel = torch.nn.Linear(8, 8)\n"
            "optimizer = torch.optim.SGD(model.parameters())\n"
            "for step in range(5):\n    loss = model(torch.ones(2, 8)).sum()\n"
            "    if step == 3:\n        raise ValueError\n"
            "    loss.backward()\n    optimizer.step()\n"
        )
        folder = self.folder / "cut"
        self.start(folder, sys.executable, program, options=("--steps", "4"))
        row = self.ranks_in(folder)[0]
        self.assertEqual(row["steps"], 4)
        self.assertEqual(self.run_document["shared_step"], 3)

    def test_two_processes_of_one_rank_are_not_taken_for_ranks(self):
        program = self.script(
            "import torch.distributed as dist\n"
            "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
            + STEPS
        )
        ran = self.start_well(self.folder / "same", *TWO_RANKS, program)
        self.assertEqual(
            len(re.findall(
                "torch.distributed calls this process rank 0 of 1, as it does another one, and its "
                "launcher calls it rank [01] of 2: it is not recorded", ran.stderr,
            )), 1, ran.stderr,
        )  # fmt: skip
        self.assertEqual(
            re.findall("rank 1: (.*)", ran.stderr),
            ["Nothing was recorded as this rank: torch.distributed calls it rank 0 of 1."],
        )

    def test_a_rank_that_was_started_again_has_not_failed(self):
        program = self.script(
            "import os, torch\nif os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
            "    raise ValueError\n" + STEPS
        )
        words = ("--standalone", "--nproc-per-node", "1", "--max-restarts", "1", program)
        ran = self.start_well(self.folder / "again", *TORCHRUN, *words)
        self.assertIn(f"Recorded 1 rank in {self.folder / 'again'}.\n", ran.stderr)
        *_, sentence, _ = ran.stderr.splitlines()
        self.assertNotIn("failed with", sentence)

    def test_variables_of_other_launchers(self):
        for number, (rank, size) in enumerate((
            ("SLURM_PROCID", "SLURM_NTASKS"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        )):
            folder = self.folder / f"launched-{number}"
            environment = {rank: "3", size: "4"}
            self.start_well(folder, sys.executable, PROGRAM, *ALONE, **environment)
            self.assertEqual(sorted(self.ranks_in(folder)), [3])


if __name__ == "__main__":
    unittest.main()
