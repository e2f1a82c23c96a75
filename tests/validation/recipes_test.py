"""docs/techniques.md describes every preset, and says of some what this build predicts."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECIPES = ["tempo", "deepspeed-fused", "substation", "flash", "checkpoint-sqrt"]
SKIPPED = 77


def main() -> int:
    binaries = pathlib.Path(os.environ["TEMPOSCOPE_BUILD_DIR"], "bin")
    if not (binaries / "temposcope-worker").exists():
        print("skipped: this build has no worker")
        return SKIPPED
    command = [sys.executable, str(ROOT / "tools" / "recipes" / "recipes"), "--program",
               str(binaries / "temposcope"), "--check", *RECIPES]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
