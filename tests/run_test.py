#!/usr/bin/env python3
"""Runs one test of ctest.

    run_test.py [--long] [--display] [--program-of-cases] [--only FILTER] [--without FILTER]
                [--record FILE] COMMAND...

--program-of-cases  COMMAND is a GoogleTest program. All of its cases run in one process. If that
                    process crashes, each case runs again in a process of its own, so that a crash
                    hides no other case.
--only, --without   filters of GoogleTest: the cases that run
--record            the file for the program's results, as JSON
--display           starts an X server for COMMAND
--long              the test may take long: more than MOST_SECONDS of processor time; for a program
                    of cases, each case may

A test that is not labelled and takes longer fails, so that the quick tests stay quick. Processor
time does not depend on what else the machine does, as the time of day would. The exit code is 77
if all cases were skipped.
"""

import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys

MOST_SECONDS = 15  # of processor time
SKIPPED = 77


def processor_seconds() -> float:
    """What all processes that have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Display:
    """An X server of its own. It picks a free number, so servers can start side by side."""

    def __enter__(self) -> str:
        reading, writing = os.pipe()
        screen = ["-screen", "0", "2560x1600x24", "+extension", "GLX"]
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), *screen],
            pass_fds=[writing],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            number = pipe.readline().strip()
        if not number:
            sys.exit(f"Xvfb did not start: {self.server.communicate()[1]}")
        return f":{number}"

    def __exit__(self, *_) -> None:
        self.server.terminate()
        self.server.wait()


def cases_of(program: list[str], filters: str) -> list[str]:
    """The names "Suite.Case" that these filters leave."""
    command = [*program, "--gtest_list_tests", filters]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    cases, suite = [], ""
    for line in listed.stdout.splitlines():
        name = line.split("#")[0]
        if name.startswith("  "):
            cases.append(suite + name.strip())
        elif name.strip().endswith("."):
            suite = name.strip()
    return cases


def run_one_by_one(program: list[str], filters: str) -> int:
    """Runs each case in a process of its own, and prints what those print that fail."""
    failed = []
    cases = cases_of(program, filters)
    for case in cases:
        run = subprocess.run(
            [*program, f"--gtest_filter={case}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if run.returncode != 0:
            failed.append(case)
            print(run.stdout)
            print(f"{case}: exit code {run.returncode}", flush=True)
    names = ", ".join(failed) or "they fail only together"
    print(f"One by one: {len(cases)} cases, {len(failed)} failed: {names}.")
    return 1


def too_long(results: dict) -> list[str]:
    """A sentence for each case that took too much processor time."""
    sentences = []
    for suite in results["testsuites"]:
        for case in suite["testsuite"]:
            seconds = int(case.get("processor_ms", 0)) / 1000
            if seconds > MOST_SECONDS:
                name = f"{suite['name']}.{case['name']}"
                sentences.append(f"{name} took {seconds:.0f} s of processor time")
    return sentences


def run_cases(options: argparse.Namespace) -> int:
    filters = f"--gtest_filter={options.only}"
    if options.without:
        filters += f"-{options.without}"
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.unlink(missing_ok=True)
    output = f"--gtest_output=json:{options.record}"
    status = subprocess.run([*options.command, filters, "--gtest_brief=1", output]).returncode
    if not options.record.exists():
        ended = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        print(f"The program ended early ({ended}). Its cases run again, one by one.", flush=True)
        return run_one_by_one(options.command, filters)
    results = json.loads(options.record.read_text())
    cases = [case for suite in results["testsuites"] for case in suite["testsuite"]]
    ran = [case for case in cases if case["result"] != "SUPPRESSED"]
    skipped = sum(case["result"] == "SKIPPED" for case in ran)
    print(f"{len(ran)} cases, {results['failures']} failed, {skipped} skipped.")
    if status == 0 and ran and skipped == len(ran):
        return SKIPPED
    if not ran:
        print("No case ran: the filters leave none.")
        return 1
    return report_too_long(too_long(results) if not options.long else []) or status


def report_too_long(sentences: list[str]) -> int:
    for sentence in sentences:
        print(
            f"{sentence}, more than {MOST_SECONDS} s: make it shorter, or label it `long` "
            "(cmake/Tests.cmake)."
        )
    return 1 if sentences else 0


def run_command(options: argparse.Namespace) -> int:
    status = subprocess.run(options.command).returncode
    seconds = processor_seconds()
    if options.long or seconds <= MOST_SECONDS:
        return status
    return report_too_long([f"The test took {seconds:.0f} s of processor time"]) or status


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--display", action="store_true")
    parser.add_argument("--program-of-cases", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--without", default="")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    run = run_cases if options.program_of_cases else run_command
    if not options.display:
        return run(options)
    with Display() as display:
        os.environ["DISPLAY"] = display
        return run(options)


if __name__ == "__main__":
    sys.exit(main())
