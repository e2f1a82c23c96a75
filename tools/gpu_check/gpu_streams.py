"""Checks of gpu-check: what steps and PyTorch programs ask of the allocator, and the memory
outside of it."""

import json

import goals
import gpu_recordings
import gpu_workloads
import trace_checks
import worker_link
from gpu_run import BUNDLE, MIB, Failed, Run, Skipped, refusal

# Of the summary of each small step; its trace has the rest.
FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "allocations", "allocator_events",
           "kernels", "losses")
UNEXPLAINED_BYTES = 32 * MIB
HANDLES = 2  # of cuBLAS: one for each thread that trains
# Program of program_steps.py, recipe.
PROGRAMS = (
    *((name, "") for name in (
        "encoder", "encoder-amp", "decoder-bf16", "decoder-scaled", "bert", "bert-eager",
        "bert-amp", "gpt2-amp", "llama-bf16", "resnet50", "resnet50-last", "vit", "t5", "lstm",
        "convnext",
    )),
    *((name, recipe) for name in ("bert-eager", "gpt2-amp") for recipe in ("tempo", "checkpoint")),
    *(("bert-amp", recipe) for recipe in ("tempo", "flash")),
)
OF_LIBRARIES = ("ModuleNotFoundError", "ImportError")  # a program whose library is not installed


def request_streams(run: Run):
    """Traces of one- and two-layer steps: recipes, precisions, attention kernels, both families.
    The result also has the shapes of what fused attention writes."""
    streams = run.some(gpu_workloads.request_streams().items(), few=8)
    runnable = [stream for stream in streams
                if gpu_workloads.runs_on(stream[1], run.card["compute_capability"])]
    left_out = sorted({name for name, _ in streams} - {name for name, _ in runnable})
    run.detail |= {"steps": {}, "left_out": left_out, "planned": len(streams)}

    def measure(stream) -> tuple:
        name, described = stream
        return name, small_step(run, name, gpu_workloads.workload(described))

    run.side_by_side(measure, runnable, run.detail["steps"])
    run.judge([f"{name}: {sentence}" for name, row in run.detail["steps"].items()
               for sentence in row["problems"]])


def small_step(run: Run, name: str, workload: dict, **fields) -> dict:
    """The figures of a step and what is wrong with its trace."""
    try:
        found = run.trace(name, workload, steps=2, **fields)
    except worker_link.WorkerError as error:
        return refusal(error)
    row = {key: found[key] for key in FIGURES}
    row["notes"] = {code: note["count"] for code, note in found["notes"].items()}
    row["problems"] = trace_checks.problems(found)
    if outputs := trace_checks.attention_outputs(run.folder / f"{name}.tscope"):
        row["attention_outputs"] = outputs
    return row


def losses(run: Run):
    """The losses of recipes that compute the same function agree step by step. This tests the ops
    end to end."""
    steps = run.found.get("request-streams", {}).get("steps", {})
    for recipe in gpu_workloads.SAME_LOSSES:
        row = steps.get(gpu_workloads.stream("bert", recipe, "fp32")[0], {})
        if "losses" in row:
            run.detail[recipe] = row["losses"]
    if len(run.detail) < 2:
        raise Skipped("needs the losses of at least two of the request streams")
    run.judge_measured(goals.differing_losses(run.detail))


def allocator(run: Run):
    """torch's own snapshots of the caching allocator in steps of small models."""
    folder = run.folder / gpu_recordings.FOLDER
    folder.mkdir(exist_ok=True)
    for settings in gpu_recordings.SCENARIOS:
        rows = gpu_recordings.record_allocator(run, folder, settings)
        run.detail |= {settings or "eager": rows} if "problem" in rows else rows
    run.judge(gpu_recordings.problems(folder, run.detail, gpu_recordings.snapshots()))


def programs(run: Run):
    """Memory snapshots and traces of plain PyTorch programs, and of some with a recipe."""
    folder = run.folder / "programs"
    folder.mkdir(exist_ok=True)
    run.side_by_side(
        lambda program: steps_of(run, folder, *program), run.some(PROGRAMS, few=2), run.detail
    )
    run.judge([f"{name}: {row['problem']}" for name, row in run.detail.items()
               if "problem" in row])


def steps_of(run: Run, folder, program: str, recipe: str) -> tuple:
    """(name, figures) of a program."""
    name = f"{program}-{recipe}" if recipe else program
    arguments = [str(BUNDLE / "python"), str(folder), program, *([recipe] if recipe else [])]
    try:
        text = run.python("program_steps.py", *arguments, TEMPOSCOPE_LIBRARIES=str(BUNDLE))
    except Failed as failed:
        reason = str(failed)
        return name, {"left_out" if any(e in reason for e in OF_LIBRARIES) else "problem": reason}
    return name, json.loads(text.splitlines()[-1])


def cudnn(run: Run):
    """What cuDNN requests in attention, convolutions and recurrent layers, by shape."""
    options = ["--few"] if run.few else []

    def measure(part: str) -> tuple:
        try:
            text = run.python("cudnn_memory.py", part, *options)
        except Failed as failed:
            return part, {"measured": 0, "problem": str(failed)}
        (run.folder / f"cudnn-{part}.jsonl").write_text(text)
        rows = [json.loads(line) for line in text.splitlines()]
        refused = sum("problem" in row for row in rows)
        return part, {"measured": len(rows) - refused, "refused": refused}

    run.side_by_side(measure, ("attention", "convolutions", "recurrent"), run.detail)
    run.judge([f"{part}: {row.get('problem', 'nothing ran')}" for part, row in run.detail.items()
               if not row["measured"]])


def workspaces(run: Run):
    """Workspaces of cuBLAS and cuBLASLt by thread, stream and phase, in steps without a warm-up."""
    wrong = []
    for precision in precisions(run):
        name = f"workspaces-{precision}"
        _, described = gpu_workloads.stream("bert", "original", precision)
        workload = gpu_workloads.workload(described)
        row = small_step(run, name, workload, warmup_steps=0)
        wrong += [f"{precision}: {sentence}" for sentence in row["problems"]]
        path = run.folder / f"{name}.tscope"
        if not path.exists():
            continue
        run.detail[precision] = trace_checks.workspaces(path)
        handles = [row for row in run.detail[precision] if row["name"].startswith("cublas_")]
        if len(handles) != HANDLES:
            wrong.append(f"{precision}: {len(handles)} cuBLAS workspaces, not {HANDLES}")
    run.judge(wrong)


def outside_memory(run: Run):
    """Device memory outside the allocator by stage, without CUPTI and with it."""
    run.detail |= {"without_cupti": {}, "with_cupti": {}}
    wrong = []
    for precision in precisions(run):
        path = run.folder / f"workspaces-{precision}.tscope"
        if path.exists():
            run.detail["with_cupti"][precision] = readings(path)
            last = run.detail["with_cupti"][precision][-1]
            if abs(last["unexplained_bytes"]) > UNEXPLAINED_BYTES:
                mib = last["unexplained_bytes"] / MIB
                wrong.append(f"{precision}: {mib:.0f} MiB of GPU memory belong to no known user")
        try:
            found = json.loads(run.python("torch_memory.py", precision))
            run.detail["without_cupti"][precision] = found
        except Failed as failed:
            wrong.append(f"{precision}: {failed}")
    run.judge(wrong)


def precisions(run: Run) -> list:
    capability = run.card["compute_capability"]
    return [
        precision for precision in run.some(gpu_workloads.PRECISIONS, few=1)
        if gpu_workloads.runs_on({"precision": precision, "recipe": "original"}, capability)
    ]


def readings(path) -> list:
    """The counters of a trace, one dict for each time at which the device was read."""
    by_time = {}
    for row in trace_checks.rows_of(path, "SELECT time_ns, name, value FROM v_counter"):
        at_time = by_time.setdefault(row["time_ns"], {"time_ns": row["time_ns"]})
        at_time[row["name"]] = row["value"]
    return [by_time[time] for time in sorted(by_time)]
