"""What keeps a block of memory alive, in the words of the product: each program of the folder
`keepers` prints what is in keepers/expected.txt.

    keepers_test.py BIN_FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import temposcope
import torch
from ledger_test import BIN, virtual_gpu

from temposcope._keepers import find_keepers

ON_GPU = ("on_gpu", "changes_nothing")
PROGRAMS = pathlib.Path(__file__).parent / "keepers"
NO_PROGRAMS = {"asking", "run_programs", *ON_GPU}


def expected() -> dict[str, list[str]]:
    """{program: the lines that it prints}"""
    lines: dict[str, list[str]] = {}
    for line in (PROGRAMS / "expected.txt").read_text().splitlines():
        if line.startswith(" "):
            lines[program].append(line.strip())
        elif line:
            program = line
            lines[program] = []
    return lines


def python(*words, **surroundings) -> str:
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, **surroundings)
    if ran.returncode != 0:
        raise AssertionError(ran.stderr[-4000:])
    return ran.stdout


class OnTheCpu(unittest.TestCase):
    maxDiff = None

    def test_what_each_program_prints(self):
        names = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem not in NO_PROGRAMS)
        paths = [PROGRAMS / f"{name}.py" for name in names]
        printed = json.loads(python(PROGRAMS / "run_programs.py", *paths))
        for name in names:
            with self.subTest(program=name):
                self.assertEqual(printed[f"{name}.py"].splitlines(), expected()[f"{name}.py"])

    def test_the_search_ends_where_there_are_many_objects(self):
        samples = [{"id": i, "x": [i, i + 1]} for i in range(300_000)]
        found = find_keepers([(1, 1)], budget_s=0.05)
        self.assertIn(found[0].verdict, ("cpp_only", "not_found_in_time"))
        del samples

    def test_a_question_takes_the_processor_time_that_it_has(self):
        samples = [{"id": i, "x": [i, i + 1]} for i in range(600_000)]
        begin = time.thread_time()
        find_keepers([(1, 1)], budget_s=0.2)
        # A pass over all objects cannot be stopped, and words may take a quarter more.
        self.assertLess(time.thread_time() - begin, 0.4)
        del samples

    def test_a_keeper_has_its_kind_and_its_line(self):
        kept = torch.zeros(1024)
        (block,) = find_keepers([(kept.data_ptr(), 4096)], budget_s=20)
        (keeper,) = block.keepers
        self.assertEqual((block.verdict, block.num_more, keeper.kind), ("named", 0, "frame"))
        function = type(self).test_a_keeper_has_its_kind_and_its_line.__code__
        self.assertEqual(keeper.file, function.co_filename)
        self.assertEqual(keeper.line, function.co_firstlineno + 1)

    def test_two_keepers_are_said_and_the_others_counted(self):
        kept = torch.zeros(1024)
        places = [[kept], {"x": kept}, (kept,), kept.view(32, 32)]
        (block,) = find_keepers([(kept.data_ptr(), 4096)], budget_s=20)
        self.assertEqual((len(block.keepers), block.num_more), (2, 3))
        del places

    def test_keepers_of_a_tensor_in_words(self):
        kept = torch.zeros(1024)
        places = [kept, [kept]]
        texts = temposcope.keepers(kept, budget_s=20)
        self.assertEqual(len(texts), 3)
        self.assertIn("`kept`", texts[0])
        self.assertIn("`places[0]`", texts[1])
        self.assertEqual(texts[2], "1 more")
        self.assertEqual(temposcope.keepers(torch.empty(0)), [])
        del places

    def test_no_time(self):
        kept = torch.zeros(1024)
        found = find_keepers([(kept.data_ptr(), 4096)], budget_s=0)
        self.assertIn(found[0].verdict, ("named", "not_found_in_time"))
        self.assertEqual(found[0].failure, "")
        self.assertEqual(find_keepers([]), [])


class OnAVirtualGpu(unittest.TestCase):
    maxDiff = None

    def look_at(self, program: str) -> None:
        printed = python(PROGRAMS / program, env=os.environ | virtual_gpu())
        self.assertEqual(printed.splitlines(), expected()[program])

    def test_memory_runs_out(self):
        self.look_at("on_gpu.py")

    def test_a_question_changes_nothing(self):
        self.look_at("changes_nothing.py")


if __name__ == "__main__":
    if BIN is None:
        sys.exit("usage: keepers_test.py BIN_FOLDER")
    unittest.main()
