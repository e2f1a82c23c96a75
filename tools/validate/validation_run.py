"""Runs the commands that predict published figures and reads the figures from their answers."""

import concurrent.futures
import copy
import csv
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import threading

import validation_data as data

GIB = 1 << 30
MIB = 1 << 20
# The interval of a largest batch covers a CUDA context that is larger or smaller by this much, and
# fragmentation beyond what the simulator finds.
CONTEXT_BYTES = GIB // 5
FRAGMENTATION = 0.04
# Other choices for a software environment of 2022: the CUDA contexts of a 2080 Ti and of a 3090
# (pytorch#49877), and copies of the gradients in buckets, which torch's DDP makes and apex's data
# parallelism does not.
OTHER_ENVIRONMENTS = {
    "context 880 MiB": {"context": [{"mib": 880, "source": "neutral"}]},
    "context 1490 MiB": {"context": [{"mib": 1490, "source": "neutral"}]},
    "copies of the gradients": {"ddp_buckets": "copy"},
}
PLAN_FILE = "plan.json"
OUT_OF_MEMORY = 3  # app/commands/console/outcome.h


class RunError(Exception):
    """One sentence about a command that failed."""


class DoesNotFit(RunError):
    """The batch does not fit, which is a result and no failure. `reason` says what is missing."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


def environment(settings):
    """Built-in models over many GPUs run in the Python that scripts/setup installed."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = os.environ.get("TEMPOSCOPE_DEPS") or pathlib.Path(cache) / "temposcope"
    python = pathlib.Path(folder) / "venv" / "bin" / "python3"
    return {"TEMPOSCOPE_PYTHON": str(python), **os.environ, "XDG_CONFIG_HOME": str(settings)}


class Runner:
    """Runs commands with the repository's own data, each command once, in temporary folders."""

    def __init__(self, program, jobs):
        self.program = program
        self.jobs = jobs
        self.scratch = tempfile.TemporaryDirectory(prefix="temposcope-validate-")
        self.answers = {}
        self.writing = threading.Lock()

    def settings(self, name, **files):
        """A settings folder with these user files. Without files it hides the user's real ones."""
        folder = pathlib.Path(self.scratch.name) / "settings" / name
        with self.writing:  # rows that run side by side share a folder
            (folder / "temposcope").mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                path = folder / "temposcope" / f"{file}.json"
                if not path.exists():
                    path.write_text(json.dumps(content))
        return folder

    def answer(self, commands, settings):
        """The JSON output of the last command, or the table that it wrote. Answers are cached."""
        key = (tuple(commands), str(settings))
        if key not in self.answers:
            with tempfile.TemporaryDirectory(dir=self.scratch.name) as folder:
                self.answers[key] = self._run(commands, settings, pathlib.Path(folder))
        return self.answers[key]

    def _run(self, commands, settings, folder):
        for command in commands:
            arguments = shlex.split(command)
            if arguments[0] == "plan":
                # This file is written even if no row fits; then nothing is printed.
                arguments += ["-o", PLAN_FILE]
            done = subprocess.run(
                [self.program, *arguments], cwd=folder, capture_output=True, text=True,
                env=environment(settings), check=False)
            if done.returncode != 0:
                raise failure(command, done, folder / PLAN_FILE)
        table = folder / "ops.csv"
        if table.exists():
            with table.open(newline="") as file:
                return list(csv.DictReader(file))
        return json.loads(done.stdout)

    def predict(self, rows, settings=None):
        """{id: {value, ...}} of rows that have commands."""
        settings = settings or self.settings("none")
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return dict(pool.map(lambda row: (row["id"], self._predict(row, settings)), rows))

    def _predict(self, row, settings):
        commands = data.command_of(row)
        result = {"fingerprint": data.fingerprint(row)}
        try:
            answer = self.answer(commands, settings)
            result["value"] = READERS[row["value"].partition(".")[0]](row, answer)
            if row.get("interval"):
                result["low"], result["high"] = self._interval(row, answer["rows"][0])
            if row.get("environments"):
                setup_id = answer["rows"][0]["setup"]
                result["environments"] = self._in_other_environments(row, setup_id)
            if row.get("next_batch"):
                result["at_next"] = self._at_next(row, settings)
        except DoesNotFit as error:
            result.update(value=None, note=error.reason)
        return result

    def _in_other_environments(self, row, setup_id):
        """The largest batches under OTHER_ENVIRONMENTS."""
        batches = {}
        for name, changes in OTHER_ENVIRONMENTS.items():
            settings = self.settings(name, setups=setups_with(setup_id, **changes))
            answer = self.answer(data.command_of(row), settings)
            batches[name] = answer["rows"][0]["max_batch_size"]
        return batches

    def _at_next(self, row, settings):
        """Memory of the step at the first batch of the published grid that did not fit."""
        command = f"{row['command']} --batch {row['next_batch']}"
        plan = self.answer([command], settings)["rows"][0]
        return {"capacity_bytes": capacity_of(plan),
                "peak_reserved_bytes": plan["peak_reserved_bytes"],
                "peak_by_class": plan["peak_by_class"]}

    def _interval(self, row, plan):
        """The largest batches with less and with more memory for tensors."""
        context = plan["terms"]["context_bytes"]
        capacity = capacity_of(plan)
        least = (capacity - CONTEXT_BYTES) * (1 - FRAGMENTATION)
        ends = []
        for name, moved in (("low", capacity - least), ("high", -CONTEXT_BYTES)):
            mib = round((context + moved) / MIB)
            setups = setups_with(plan["setup"], context=[{"mib": mib, "source": "neutral"}])
            settings = self.settings(f"{name}-{row['id']}", setups=setups)
            ends.append(self.answer(data.command_of(row), settings)["rows"][0]["max_batch_size"])
        return ends


def failure(command, done, plan_file):
    """The exception for a failed command: DoesNotFit if the plan's only row does not fit, or the
    captured step ran out of memory."""
    if command.startswith("capture") and done.returncode == OUT_OF_MEMORY:
        return DoesNotFit("the step needs more memory than the GPU has")
    if plan_file.exists():
        row = data.read(plan_file)["rows"][0]
        if row["status"] == "does_not_fit":
            return DoesNotFit(row["reason"])
    sentence = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
    return RunError(f"temposcope {command}: {sentence}")


def capacity_of(plan):
    """The memory of the GPU that tensors may take."""
    terms = plan["terms"]
    return plan["usable_bytes"] - terms["context_bytes"] - terms["nccl_bytes"]


def setups_with(setup_id, **changes):
    """A user's setups.json that changes fields of one software environment."""
    setups = data.read(data.ROOT / "assets" / "setups.json")
    setup = copy.deepcopy(next(one for one in setups["setups"] if one["id"] == setup_id))
    setup.update(changes)
    return {"sources": setups["sources"], "setups": [setup]}


def calibration_without(leave_out):
    """A user's calibration.json that replaces constants that were fitted on a source."""
    name = "left_out"
    tables = {key: [{**one, "source": name} for one in rows]
              for key, rows in leave_out["calibration"].items()}
    return {"sources": {name: leave_out["why"]}, **tables}


def from_plan(row, answer):
    """A figure of the plan's only row."""
    return round(answer["rows"][0][row["value"].partition(".")[2]] * row.get("scale", 1), 4)


def from_rank(row, answer):
    """A figure of a rank's trace; its throughput is of all ranks."""
    return round(answer[row["value"].partition(".")[2]] * row.get("scale", 1), 4)


def from_bench(row, answer):
    """A predicted figure of `bench`, whose command asks for one benchmark. A layer's has one row
    for each pass."""
    what = row["value"].partition(".")[2]
    passes = {"forward": "forward", "training": "forward and backward"}
    found = [one for one in answer["rows"]
             if one["source"] == "predicted" and one["pass"] == passes.get(what)]
    if len(found) != 1:
        raise RunError(f"{row['id']}: bench predicted {len(found)} figures instead of one")
    if what == "gb_per_s":
        return round(found[0]["bandwidth_bytes_per_s"] / 1e9, 4)
    return round(found[0]["model_tflops"], 4)


def is_inside(op, module_paths):
    return any(op["scope"] == one or op["scope"].startswith(one + ".") for one in module_paths)


def is_of_part(op, part):
    """Whether an op does work in the module of `part`, has one of its classes, and lies in none of
    the modules that `part` leaves out."""
    has_cost = any(int(op[key]) > 0 for key in ("flop", "read_words", "written_words"))
    return (has_cost and is_inside(op, [part["scope"]])
            and op["class"] in part.get("class", [op["class"]])
            and not is_inside(op, part.get("without", [])))


def selected_ops(row, table):
    """The ops in the phases, modules and classes that a row selects."""
    select = row["select"]
    for op in table:
        if op["phase"] in select["phases"] and any(is_of_part(op, part)
                                                   for part in select["parts"]):
            yield op


def covered_ns(ops):
    """The time in which at least one of the ops runs. Ops may run inside each other."""
    total, reached = 0, 0
    for start, end in sorted((int(op["start_ns"]), int(op["end_ns"])) for op in ops):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def from_ops(row, table):
    ops = list(selected_ops(row, table))
    if not ops:
        raise RunError(f"{row['id']}: its 'select' matches no op of the trace")
    what = row["value"].partition(".")[2]
    if what == "gflop":
        return round(sum(int(op["flop"]) for op in ops) / 1e9, 4)
    seconds = covered_ns(ops) / 1e9
    if what == "ms":
        return round(seconds * 1e3 * row.get("scale", 1), 4)
    return round(row["tflop"] / seconds, 4)


def from_ledger(_, answer):
    """Bytes that the layer saves for backward, in decimal MB."""
    return round(answer["closed_form"]["ledger_bytes"] / 1e6, 2)


READERS = {"plan": from_plan, "rank": from_rank, "bench": from_bench, "ops": from_ops,
           "ledger": from_ledger}


def replays(program, samples):
    """The results of `temposcope replay` for each snapshot in a folder."""
    keys = ("events", "address_matches", "segment_events", "segment_event_matches",
            "final_state_matches", "peak_reserved_bytes")
    found = []
    for file in sorted(samples.glob("*.pickle")):
        done = subprocess.run([program, "replay", str(file), "--json"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RunError(done.stderr.strip().splitlines()[-1])
        answer = json.loads(done.stdout)
        rate = answer["address_match_rate"]
        found.append({"file": file.name, **{key: answer[key] for key in keys}, "rate": rate})
    return found


def version(program):
    """The version that the program prints, as in "temposcope 0.1.0"."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{program} --version failed; run scripts/build")
    return done.stdout.split()[-1]
