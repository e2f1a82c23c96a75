#!/usr/bin/env python3
"""kernels/inplace_gelu_constants.h is what kernels/fit/fit_gelu.py makes, to the letter.

Run by ctest with the virtual environment's Python, which has mpmath.
"""
import difflib
import pathlib
import subprocess
import sys

KERNELS = pathlib.Path(__file__).parents[2] / "kernels"


def main() -> int:
    made = subprocess.run(
        [sys.executable, str(KERNELS / "fit" / "fit_gelu.py")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    kept = (KERNELS / "inplace_gelu_constants.h").read_text()
    names = ("inplace_gelu_constants.h", "fit_gelu.py")
    sys.stdout.writelines(
        difflib.unified_diff(kept.splitlines(True), made.splitlines(True), *names)
    )
    return int(made != kept)


if __name__ == "__main__":
    sys.exit(main())
