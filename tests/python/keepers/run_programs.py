"""Runs programs of this folder, each in a process of its own, and prints what each has printed.

    run_programs.py PROGRAM...

Torch is imported once, as that takes longer than a program, and the processes are forks of this
one. Prints JSON: {program: its output}.
"""

import io
import json
import os
import pathlib
import sys
import traceback
import types

import torch._dynamo  # noqa: F401 (the optimizers import it)

import temposcope._keepers  # noqa: F401


def run(path: pathlib.Path) -> None:
    """As `python path` does, as far as the programs can tell."""
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    program.__file__ = str(path)
    code = compile(path.read_text(), str(path), "exec")
    exec(code, vars(program))


def output_of(path: pathlib.Path) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb"), line_buffering=True)
        try:
            run(path)
        except BaseException:
            print(traceback.format_exc())
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as output:
        text = output.read()
    os.waitpid(child, 0)
    return text


if __name__ == "__main__":
    paths = map(pathlib.Path, sys.argv[1:])
    print(json.dumps({path.name: output_of(path) for path in paths}))
