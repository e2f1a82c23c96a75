"""Clocks, power and temperature of the GPU while the checks run, read from NVML every 100 ms by a
process of its own.

    gpu_background.py        prints a line of CSV for each reading until it is ended
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

import nvml
from worker_link import last_line

INTERVAL_S = 0.1


def main():
    gpu = nvml.Gpu()
    print(",".join(["unix_s", *gpu.state()]), flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # also if gpu-check was killed
        values = ["" if value is None else str(value) for value in gpu.state().values()]
        print(",".join([f"{time.time():.2f}", *values]), flush=True)
        time.sleep(INTERVAL_S)


class Background:
    """Runs the readings, and hands them over check by check."""

    def __init__(self, scratch: pathlib.Path, environment: dict):
        self.path = scratch / "background.csv"
        self.offset = 0
        self.header = ""
        with self.path.open("w") as out, (scratch / "background.log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__], env=environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=log,
            )

    def problem(self) -> str:
        """Why there are no readings; empty while they are made."""
        if self.process.poll() is None:
            return ""
        log = self.path.with_name("background.log").read_text()
        return last_line(log, "NVML's readings ended without a word").strip()

    def take(self, path: pathlib.Path) -> dict:
        """Writes the readings since the last call to `path`, and returns a summary of them."""
        with self.path.open() as file:
            file.seek(self.offset)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self.offset += len(whole)
        lines = whole.splitlines()
        if not self.header and lines:
            self.header = lines.pop(0)
        if not lines:
            return {}
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([self.header, *lines]) + "\n")
        return summary(self.header.split(",")[1:], [line.split(",")[1:] for line in lines])

    def end(self):
        self.process.kill()
        self.process.wait()


def summary(names: list, rows: list) -> dict:
    """Lowest, median and highest value of each column that has values."""
    found = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        values = [int(value) for value in column if value]
        if values:
            found[name] = [min(values), statistics.median(values), max(values)]
    return found


if __name__ == "__main__":
    main()
