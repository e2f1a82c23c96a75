"""How a program was started, as a trace keeps it: without secrets.

    launch_test.py BIN_FOLDER
"""

import os
import sys
import unittest
import unittest.mock

import commands  # noqa: F401  takes the folder out of the arguments

from temposcope import _launch
from temposcope._launch import HIDDEN, environment, without_secrets


class Commands(unittest.TestCase):
    def test_secrets_are_hidden(self):
        for words, hidden in (
            (["--token", "abc"], ["--token", HIDDEN]),
            (["--hf-token", "abc", "--seed", "1"], ["--hf-token", HIDDEN, "--seed", "1"]),
            (["--api-key=a=b"], [f"--api-key={HIDDEN}"]),
            (["wandb.key=abc"], [f"wandb.key={HIDDEN}"]),
            (["env", "HF_TOKEN=abc", "python"], ["env", f"HF_TOKEN={HIDDEN}", "python"]),
            (["sh", "-c", "PASSWORD='abc' x --auth abc -n 1"],
             ["sh", "-c", f"PASSWORD='{HIDDEN}' x --auth {HIDDEN} -n 1"]),
            (["hf_" + 20 * "a"], [HIDDEN]),
            (["x=sk-" + 20 * "a"], [f"x={HIDDEN}"]),
            ([40 * "e"], [HIDDEN]),
            (["--pwd", "abc"], ["--pwd", HIDDEN]),
            (["-H", "Authorization: Bearer abc"], ["-H", f"Authorization: Bearer {HIDDEN}"]),
            (["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig"], [HIDDEN]),
            (["glpat-" + 20 * "a"], [HIDDEN]),
            (["-----BEGIN PRIVATE KEY-----\nabc"], [HIDDEN]),
            (["https://me:mine@host/x"], [f"https://{HIDDEN}@host/x"]),
        ):  # fmt: skip
            with self.subTest(words):
                self.assertEqual(without_secrets(words), hidden)
                self.assertTrue(_launch.has_secret(hidden))

    def test_what_is_no_secret_stays(self):
        words = ["python", "train.py", "--tokenizer", "gpt2", "--max-tokens=99", "--pad-token", "0",
                 "--eos_token=2", "--key-dim", "64", "--author", "me",
                 "--monkey", "x", "--path", "y"]  # fmt: skip
        self.assertEqual(without_secrets(words), words)
        self.assertFalse(_launch.has_secret(words))

    def test_without_a_command_it_is_that_of_this_process(self):
        told = _launch.launch()
        self.assertEqual(told["command"], without_secrets(sys.orig_argv))
        self.assertEqual(told["folder"], os.getcwd())


class Variables(unittest.TestCase):
    def test_only_those_that_change_memory_or_behaviour(self):
        kept = {
            "CUDA_VISIBLE_DEVICES": "1",
            "OMP_NUM_THREADS": "2",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "TOKENIZERS_PARALLELISM": "false",
            "TORCH_BLAS_PREFER_CUBLASLT": "1",
        }
        others = {
            "HF_TOKEN": "a", "HOME": "/home/me", "NCCL_AUTH": "a", "TORCH_API_KEY": "a",
            "TORCH_LOGS": "hf_" + 20 * "a",
        }  # fmt: skip
        self.assertEqual(environment(kept | others), kept)

    def test_the_recorder_s_own_folder_is_not_the_user_s(self):
        own = os.path.join(os.path.dirname(_launch.__file__), "start")
        path = os.pathsep.join((own, "/mine"))
        self.assertEqual(environment({"PYTHONPATH": path}), {"PYTHONPATH": "/mine"})
        self.assertEqual(environment({"PYTHONPATH": own}), {})

    def test_ranks_that_the_command_gives_are_not_kept(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, {"RANK": "3"}))
        self.assertEqual(_launch.launch()["environment"]["RANK"], "3")
        self.assertNotIn("RANK", _launch.launch(is_rank=True)["environment"])


if __name__ == "__main__":
    unittest.main()
