"""Predicts rows of docs/dev/validation.md again with this build, one row per kind of command."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROWS = [
    "tempo.fp16.original.batch",
    "tempo.fp16.original.rate",
    "mli.bert128.bf16.rate",
    "mli.bert.128.2.both",
    "ivanov.contraction",
    "ds.kept.512.all",
    "mli.two.dp.rate",
]


def main() -> int:
    program = os.path.join(os.environ["TEMPOSCOPE_BUILD_DIR"], "bin", "temposcope")
    command = [sys.executable, str(ROOT / "tools" / "validate" / "validate"), "--program", program]
    return subprocess.run([*command, "--row", *ROWS], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
