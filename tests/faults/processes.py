"""What a killed or failed command leaves behind: processes of its session, and files."""

import pathlib
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


def is_one_sentence(error: str) -> bool:
    """What was said beside progress: one line of ours that ends like a sentence."""
    said = [line for line in error.splitlines() if line.startswith("temposcope: ")]
    return len(said) == 1 and said[0].endswith((".", "?"))


def problem_of_traces(program: pathlib.Path, folder: pathlib.Path) -> str | None:
    """A trace under its final name is complete; a partial one opens as incomplete or is refused."""
    for path in sorted(folder.rglob("*.tscope*")):
        if path.suffix not in (".tscope", ".partial"):
            continue  # a log of SQLite
        opened = subprocess.run([program, "info", path], capture_output=True, text=True)
        says_incomplete = "incomplete" in opened.stdout + opened.stderr
        if path.suffix == ".tscope":
            if opened.returncode != 0:
                return f"{path.name} does not open: {opened.stderr.strip()}"
            if says_incomplete:
                return f"{path.name} is incomplete"
        elif opened.returncode == 0:
            if not says_incomplete:
                return f"{path.name} does not say that it is incomplete"
        elif opened.returncode != 1 or not is_one_sentence(opened.stderr):
            return f"{path.name} is not refused in one sentence: {opened.stderr.strip()}"
    return None
