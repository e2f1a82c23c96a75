"""The server of `temposcope mcp`: the Model Context Protocol over standard input and output.

    mcp_server.py PROGRAM FOLDER

A tool calls PROGRAM, which is `temposcope`, with --json. Traces are written into FOLDER or below
it. torch is not needed here: the package is not imported.
"""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Annotated, Literal

try:
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.types import CallToolResult, TextContent, ToolAnnotations
    from pydantic import Field
except ImportError as error:
    sys.exit(
        f"temposcope: {error}, in {sys.executable}: run pip install 'temposcope[mcp]' there, or "
        "name a Python that has it in TEMPOSCOPE_PYTHON."
    )

PROGRAM = sys.argv[1]
FOLDER = pathlib.Path(sys.argv[2]).resolve()
MOST_BYTES = 100_000  # of a result: a larger one fills the context of an agent
TAIL_BYTES = 4_000  # of the output of a program that failed
PATIENCE_S = 30.0  # from an interrupt to the kill: a recording is written, its steps are timed
HURRY_S = 1.0  # the same where the client has gone: it kills this server after two seconds

server = MCPServer(
    "temposcope",
    instructions="Where the GPU memory of a PyTorch training step goes. Record a program with "
    "`run`, on a simulated GPU if there is none; `explain` then says what to do about its memory. "
    "Paths are relative to the folder in which the server was started. Keys end in their units.",
    log_level="WARNING",
)
READS_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

File = Annotated[
    str, Field(description="a trace (.tscope), a PyTorch memory snapshot, or a folder of ranks")
]
GroupBy = Literal["class", "layer", "op", "tensor", "line"]
Seconds = Annotated[float, Field(gt=0)]


# ---- the program -----------------------------------------------------------------------------


def options(**values: str | int | float | bool | list[str] | None) -> list[str]:
    """As words of the command line. A value stays with its name, so that it is never taken for an
    option of its own."""
    words = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={','.join(value) if isinstance(value, list) else value}")
    return words


def arguments(files: list[str]) -> list[str]:
    return [f"./{file}" if file.startswith("-") else file for file in files]


async def end(process: anyio.abc.Process, patience_s: float) -> None:
    """Interrupts it and all that it started, as Ctrl-C does; what then still runs is killed."""
    for number, seconds in ((signal.SIGINT, patience_s), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(seconds):
            await process.wait()
            return


async def run_program(words: list[str], out: IO, log: IO, timeout_s: float | None) -> bool:
    """Whether it came to its end within the time. Raises OSError if it cannot be started."""
    process = await anyio.open_process(
        [PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
    )
    try:
        with anyio.move_on_after(timeout_s):
            await process.wait()
            return True
        await end(process, PATIENCE_S)
        return False
    finally:
        if process.returncode is None:  # the client cancelled the call, or has gone
            with anyio.CancelScope(shield=True):
                await end(process, HURRY_S)


# ---- results ---------------------------------------------------------------------------------


def failure(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


def end_of(file: IO) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL_BYTES))
    return file.read().decode(errors="replace").strip()


def with_short_lists(told, most: int):
    if isinstance(told, dict):
        return {key: with_short_lists(value, most) for key, value in told.items()}
    if isinstance(told, list):
        return [with_short_lists(one, most) for one in told[:most]]
    return told


def fit(told: dict, words: list[str]) -> tuple[dict, list[str]]:
    """At most MOST_BYTES of it, and a note if that is not all. Lists of the program begin with what
    matters most."""
    size = length = len(json.dumps(told))
    most = MOST_BYTES
    while length > MOST_BYTES and most > 0:
        most //= 2
        told = with_short_lists(told, most)
        length = len(json.dumps(told))
    if length == size:
        return told, []
    return told, [
        f"Lists are cut to their first {most} items, since the whole has {size:,} bytes: "
        f"{shlex.join(['temposcope', *words])} prints it."
    ]


async def answer(
    words: list[str], verdict: Callable[[dict], str], timeout_s: float | None = None
) -> CallToolResult:
    """What `temposcope` with these words says: a text that begins with the verdict, and the
    JSON."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        try:
            is_in_time = await run_program(words, out, log, timeout_s)
        except OSError as error:
            return failure(f"{PROGRAM} cannot be started: {error.strerror}; install it again.")
        out.seek(0)
        document, log_end = out.read(), end_of(log)
    late = [] if is_in_time else [f"It was ended after {timeout_s:g} s (timeout_s)."]
    if not document:
        sentence = log_end.rpartition("\n")[2].removeprefix("temposcope: ")
        sentence = sentence or f"temposcope {words[0]} ended without a word."
        return failure(" ".join([sentence, *late]))
    told = json.loads(document)
    notes = late
    if told.get("exit_code"):
        notes = [*late, f"The end of its output:\n{log_end}"]
    told, cuts = fit(told, words)
    text = "\n".join([verdict(told), *notes, *cuts])
    return CallToolResult(
        # The protocol wants the JSON as text, too, for clients without structured content.
        content=[TextContent(text=text), TextContent(text=json.dumps(told))],
        structured_content=told,
    )


def sentence_of(told: dict) -> str:
    return told["sentence"]


def gibibytes(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"


def about_trace(told: dict) -> str:
    of = told.get("file", "")
    if "shared_step" in told:
        peak = max(row["peak_allocated_bytes"] for row in told["rows"])
        return f"{len(told['rows'])} ranks, whose largest peak is {gibibytes(peak)} allocated."
    if "peak_allocated_bytes" in told:
        return f"The peak of {of} is {gibibytes(told['peak_allocated_bytes'])} allocated."
    if "total_bytes" in told:
        return f"{of} saves {gibibytes(told['total_bytes'])} for backward."
    return f"{of} has {len(told.get('rows', []))} rows of this report."


def about_plan(told: dict) -> str:
    def fits(row: dict) -> bool:
        return row["status"] == "ok" if "status" in row else row["max_batch_size"] is not None

    rows = [row for row in told["rows"] if fits(row)]
    text = f"{len(rows)} of {len(told['rows'])} combinations are possible"
    timed = [row for row in rows if row["throughput_sequences_per_s"]]
    if not timed:
        return text + "."
    best = max(timed, key=lambda row: row["throughput_sequences_per_s"])
    speed = best["throughput_sequences_per_s"]
    return f"{text}; the fastest has {speed:.1f} sequences/s, on {best['gpu']}."


# ---- tools -----------------------------------------------------------------------------------


@server.tool()
async def explain(
    files: Annotated[list[File], Field(min_length=1)],
    verify: Annotated[
        int | None,
        Field(ge=1, description="run the program that the trace names with the first N remedies"),
    ] = None,
    batch: Annotated[int | None, Field(ge=1, description="the batch that is to fit")] = None,
    gpu: Annotated[str | None, Field(description="where it is to fit, as a100-40gb")] = None,
    timeout_s: Annotated[Seconds | None, Field(description="for each run of `verify`")] = None,
) -> CallToolResult:
    """Says what happened (such as out of memory), what fills the GPU at its peak, what grows, and
    which remedies there are, best first: bytes saved, time, whether it then fits, and the text to
    paste. Remedies are estimated; with `verify` the program itself runs on a virtual GPU."""
    target = [f"batch={batch}"] if batch else []
    target += [f"gpu={gpu}"] if gpu else []
    told = options(json=True, verify=verify, to_fit=target or None, timeout=timeout_s)
    return await answer(
        ["explain", *arguments(files), *told], lambda told: told["verdict"]["sentence"]
    )


@server.tool(annotations=READS_ONLY)
async def info(
    file: File,
    report: Annotated[
        Literal["overview", "peak", "ledger", "growth", "ops", "health"],
        Field(
            description="`peak`: what lives when most memory is in use. `ledger`: what is saved "
            "for backward. `growth`: what stays from step to step. `ops`: time and kernels of "
            "each op. `health`: what the recording could not see"
        ),
    ] = "overview",
    by: Annotated[GroupBy | None, Field(description="groups of the report peak")] = None,
    module: Annotated[
        str | None, Field(description="only this module, in the report `ledger`")
    ] = None,
) -> CallToolResult:
    """Shows what a trace holds: its workload, peak, step time, and one of the reports."""
    chosen = {} if report == "overview" else {report: True}
    words = options(json=True, **chosen, by=by, scope=module)
    return await answer(["info", *arguments([file]), *words], about_trace)


@server.tool(annotations=READS_ONLY)
async def compare(
    files: Annotated[list[File], Field(min_length=1)],
    by: Annotated[GroupBy | None, Field(description="also what lives at each peak")] = None,
) -> CallToolResult:
    """Compares traces of one workload, such as before and after a change: memory, step time, and
    the largest batch."""
    return await answer(["compare", *arguments(files), *options(json=True, by=by)], sentence_of)


@server.tool()
async def run(
    command: Annotated[
        list[str],
        Field(min_length=1, description='the program and its arguments, as ["python", "train.py"]'),
    ],
    output: Annotated[
        str,
        Field(description="the trace to write, NAME.tscope; a folder for a program of many ranks"),
    ],
    gpu: Annotated[
        str | None,
        Field(description="a simulated GPU such as h100-sxm; without it this machine's devices"),
    ] = None,
    steps: Annotated[int, Field(ge=1, description="training steps to record")] = 3,
    apply: Annotated[
        str | None, Field(description="a recipe to put into its models, such as tempo")
    ] = None,
    stop: Annotated[bool, Field(description="end it after the recorded steps")] = True,
    overwrite: Annotated[bool, Field(description="replace a trace that is there already")] = False,
    timeout_s: Annotated[
        Seconds, Field(description="it is interrupted then, and the steps so far are kept")
    ] = 600,
) -> CallToolResult:
    """Runs a PyTorch program of the user's, unchanged, and records its training steps. On a virtual
    GPU no kernel runs: memory is exact, values are zeros and times are modelled."""
    if not pathlib.Path(output).resolve().is_relative_to(FOLDER):
        return failure(f"{output} is outside of {FOLDER}: traces are written there or below it.")
    words = options(
        json=True, output=output, gpu=gpu, steps=steps, apply=apply, stop=stop,
        overwrite=overwrite,
    )  # fmt: skip
    return await answer(["run", *words, "--", *command], sentence_of, timeout_s)


@server.tool(annotations=READS_ONLY)
async def plan(
    gpu: Annotated[list[str], Field(min_length=1, description='such as ["a100-40gb"], or ["all"]')],
    traces: Annotated[
        list[str] | None,
        Field(description="of a program of the user's, at two batches; in place of a model"),
    ] = None,
    model: Annotated[
        list[str] | None, Field(description='built-in models, such as ["bert-large"]')
    ] = None,
    head: Annotated[
        Literal["layers", "mlm", "squad", "lm"] | None, Field(description="of the model")
    ] = None,
    recipe: Annotated[
        list[str] | None, Field(description='such as ["original", "tempo"], or ["all"]')
    ] = None,
    precision: Annotated[list[str] | None, Field(description='such as ["amp-bf16"]')] = None,
    seq: Annotated[list[int] | None, Field(description="tokens per sequence")] = None,
    batch: Annotated[
        int | None, Field(ge=1, description="sequences per GPU; without it the largest that fits")
    ] = None,
    budget: Annotated[str | None, Field(description="memory to use of each, as 14GiB")] = None,
) -> CallToolResult:
    """Predicts without a GPU which batch fits on which GPU and how fast a step is: of a built-in
    model, or of a program from its traces."""
    words = options(
        json=True, gpu=gpu, model=model, head=head, recipe=recipe, precision=precision,
        seq=None if seq is None else [str(one) for one in seq], batch=batch, budget=budget,
    )  # fmt: skip
    return await answer(
        ["plan", *words, *(f"--trace={trace}" for trace in traces or ())], about_plan
    )


if __name__ == "__main__":
    # Both end what still runs, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        server.run("stdio")
