"""The first commands of how-to pages, and all of the tutorial, print what the page shows.

    how_to_test.py BIN_FOLDER

A page's first block of commands runs in a folder named `project`. There `train.py` is the page's
first Python block if that is a whole program, else docs/examples/train.py. Each line that the page
shows must be printed, in this order; `…` stands for any lines. A command succeeds, unless it runs
a program that runs out of memory.
"""

import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile
import unittest

from commands import BIN, temposcope

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = (
    "agents",
    "apply_techniques",
    "choose_gpu_and_batch",
    "ci",
    "fix_an_oom",
    "many_gpus",
    "record_your_program",
    "snapshots_and_traces",
)


def first_block(page: str) -> list[tuple[str, list[str]]]:
    """(command, lines that the page shows below it) of the first block of a page."""
    (block,) = re.findall(r"\A# [^\n]+\n\n```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return commands_of(block)


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    commands = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        elif line.strip() and line != "…":
            commands[-1][1].append(line.rstrip())
    return commands


def tutorial_commands(page: str) -> list[tuple[str, list[str]]]:
    """(command, lines shown below it) of a page that goes on from block to block: what records and
    reports. Its set-up is done before, and the window and the browser wait for a person."""
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    commands = [one for block in blocks for one in commands_of(block)]
    words = ("run", "explain", "info", "compare")
    return [one for one in commands if one[0].startswith(tuple(f"temposcope {w} " for w in words))]


def program_of(page: str) -> str:
    """The training program of a page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    whole = [block for block in blocks if "optimizer = " in block and "\ndef " not in block]
    return whole[0] if whole else (DOCS / "examples" / "train.py").read_text()


def missing_line(shown: list[str], printed: str) -> str | None:
    """The first line that is not printed after the lines before it."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    return next((line for line in shown if line not in lines), None)


TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?: .*\n)*(.*)", re.MULTILINE)


def ended_as_it_should(exit_code: int, printed: str) -> bool:
    """A program that runs out of memory ends with Python's exit code and traceback, and all else
    without an error."""
    raised = TRACEBACK.findall(printed)
    if "temposcope: Out of memory at " not in printed:
        return exit_code == 0 and not raised
    return exit_code == 1 and all(one.startswith("torch.OutOfMemoryError: ") for one in raised)


class HowTo(unittest.TestCase):
    def run_page(self, name: str) -> None:
        page = (DOCS / f"{name}.md").read_text()
        with tempfile.TemporaryDirectory() as folder:
            project = pathlib.Path(folder).resolve() / "project"
            for place in (project, project / "main"):
                place.mkdir()
                (place / "train.py").write_text(program_of(page))
            shutil.copy(DOCS / "examples" / "train_fsdp.py", project)
            self.run_commands(project, first_block(page))

    def run_commands(self, project: pathlib.Path, commands: list[tuple[str, list[str]]]) -> None:
        # `python` of a page is the Python of this test, and so is that of torchrun.
        path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for command, shown in commands:
            program, *words = shlex.split(command)
            self.assertEqual(program, "temposcope")
            ran = temposcope(*words, cwd=project, env=os.environ | {"PATH": path})
            printed = (ran.stdout + ran.stderr).replace(f"{project}/", "")
            ended_well = ended_as_it_should(ran.returncode, printed)
            self.assertTrue(ended_well, f"{command}: {ran.returncode}\n{printed}")
            self.assertIsNone(missing_line(shown, printed), f"{command}\n{printed}")

    def test_the_tutorial(self):
        commands = tutorial_commands((DOCS / "get_started.md").read_text())
        self.assertGreater(len(commands), 5)
        with tempfile.TemporaryDirectory() as folder:
            project = pathlib.Path(folder).resolve() / "project"
            project.mkdir()
            shutil.copy(DOCS / "examples" / "language_model.py", project / "train.py")
            self.run_commands(project, commands)


class Checks(unittest.TestCase):
    """Tests of the checks themselves."""

    def test_a_line_that_is_not_printed_is_found(self):
        page = "# Page\n\n```\n$ temposcope a\none\n…\nthree \n$ temposcope b\n```\nText\n"
        page += "```\nx\n```\n"
        self.assertEqual(
            first_block(page), [("temposcope a", ["one", "three"]), ("temposcope b", [])]
        )
        self.assertIsNone(missing_line(["one", "three"], "one \ntwo\nthree\n"))
        self.assertEqual(missing_line(["three", "one"], "one\ntwo\nthree\n"), "one")
        self.assertEqual(missing_line(["four"], "one\n"), "four")

    def test_a_command_that_fails_is_found(self):
        out_of_memory = "temposcope: Out of memory at train.py:15 in step 2: 1 GiB asked.\n"
        traceback = "Traceback (most recent call last):\n  File x\n    y()\n"
        of_torch = f"{traceback}torch.OutOfMemoryError: CUDA out of memory.\n"
        another = f"{traceback}KeyError: 'a'\n"
        for exit_code, printed, is_well in (
            (0, "three\n", True),
            (1, "three\n", False),
            (0, another, False),
            (1, of_torch, False),
            (1, of_torch + out_of_memory, True),
            (0, of_torch + out_of_memory, False),
            (1, of_torch + another + out_of_memory, False),
            (-11, of_torch + out_of_memory, False),
        ):
            self.assertEqual(ended_as_it_should(exit_code, printed), is_well, printed)

    def test_every_how_to_page_runs(self):
        index = (DOCS / "README.md").read_text()
        section = index[index.index("## How-to") : index.index("## Reference")]
        self.assertEqual(sorted(re.findall(r"\((\w+)\.md\)", section)), list(PAGES))


for page_name in PAGES:
    setattr(
        HowTo,
        f"test_{page_name}",
        lambda self, name=page_name: self.run_page(name),
    )

if __name__ == "__main__":
    assert BIN is not None
    unittest.main()
