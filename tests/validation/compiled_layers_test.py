"""docs/techniques.md quotes what docs/examples/compiled_layers.py prints."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main() -> int:
    ran = subprocess.run([sys.executable, str(ROOT / "docs" / "examples" / "compiled_layers.py")],
                         capture_output=True, text=True, check=False)
    page = (ROOT / "docs" / "techniques.md").read_text(encoding="utf-8")
    if ran.returncode == 0 and ran.stdout.count("\n") == 9 and ran.stdout in page:
        return 0
    print(f"docs/techniques.md does not quote this:\n{ran.stdout}{ran.stderr}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
