"""The program starts without libtorch: it needs no library of torch or CUDA."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import repository

BUILD = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", repository.ROOT / "build"))
PROGRAM = BUILD / "bin" / "temposcope"
TORCH_OR_CUDA = re.compile(r"lib(torch|c10|cuda|cupti|cublas|cudnn|tempo_ops)")


def needed_libraries(program: pathlib.Path) -> list[str]:
    listing = subprocess.run(
        ["ldd", str(program)], check=True, capture_output=True, text=True
    ).stdout
    return [line.split()[0] for line in listing.splitlines() if line.strip()]


class Program(unittest.TestCase):
    def test_needs_no_torch_and_no_cuda(self):
        libraries = needed_libraries(PROGRAM)
        self.assertIn("libc.so.6", libraries)
        self.assertEqual([name for name in libraries if TORCH_OR_CUDA.search(name)], [])

    def test_the_worker_needs_torch(self):
        self.assertTrue(
            any(
                TORCH_OR_CUDA.search(name)
                for name in needed_libraries(PROGRAM.with_name("temposcope-worker"))
            )
        )


if __name__ == "__main__":
    if not PROGRAM.exists():
        print(f"skipped: {PROGRAM} is not built; run scripts/build")
        sys.exit(77)
    unittest.main()
