"""What a killed or failed command leaves behind: processes of its session, and files."""

import json
import os
import pathlib
import signal
import subprocess


def processes_of(session: int) -> dict[int, str]:
    """The living processes of a session: {id: name}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        state, _, _, of_session = text[text.rindex(")") + 2 :].split()[:4]
        if int(of_session) == session and state != "Z":
            found[int(entry.name)] = name
    return found


def kill_session(session: int) -> list[int]:
    """Returns the ids of the processes that were there to kill."""
    found = []
    for number in processes_of(session):
        try:
            os.kill(number, signal.SIGKILL)
            found.append(number)
        except ProcessLookupError:
            pass  # it has just ended
    return found


def is_one_sentence(error: str) -> bool:
    """What was said beside progress: one line of ours that ends like a sentence."""
    said = [line for line in error.splitlines() if line.startswith("temposcope: ")]
    return len(said) == 1 and said[0].endswith((".", "?"))


def problem_of_traces(
    program: pathlib.Path, folder: pathlib.Path, steps: int | None = None
) -> str | None:
    """A trace under its final name is complete. A partial one is refused, or opens as incomplete,
    or is complete too: it was killed before it got its name. What is complete has all `steps`."""
    for path in sorted(folder.rglob("*.tscope*")):
        if path.suffix not in (".tscope", ".partial"):
            continue  # a log of SQLite
        opened = subprocess.run([program, "info", path, "--json"], capture_output=True, text=True)
        if opened.returncode != 0:
            if path.suffix == ".tscope":
                return f"{path.name} does not open: {opened.stderr.strip()}"
            if opened.returncode != 1 or not is_one_sentence(opened.stderr):
                return f"{path.name} is not refused in one sentence: {opened.stderr.strip()}"
            continue
        trace = json.loads(opened.stdout)
        if trace["state"] != "complete":
            if path.suffix == ".tscope":
                return f"{path.name} is {trace['state']}"
        elif steps is not None and trace["steps"] != steps:
            return f"{path.name} is complete with {trace['steps']} of {steps} steps"
    return None
