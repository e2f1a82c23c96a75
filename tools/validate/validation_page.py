"""Writes docs/dev/validation.md: published and predicted values, errors, goals and findings."""

import validation_data as data
import validation_findings as findings
from validation_book import Book, magnitude, mean_and_worst, number, percent, table

INTRO = """# Validation

This page compares the predictions of `temposcope` with figures that others have published for the
same training steps, and with what we measured on an H200. Each row shows the published value, the
predicted value and the error, which is predicted / published − 1. Means and worst cases are of
absolute errors. The project set its goals itself. In the names of rows, B is the batch size and S
the sequence length. Names such as
`tempo-published` are recipes of `temposcope`. The section "Sources" says who published the figures
and how they were measured.

`tools/validate/validate` writes this page.
[tests/validation/published.json](../../tests/validation/published.json) holds every published
figure with its source, the conditions of the measurement and the command that predicts it.
`tools/validate/validate --row ID` shows that command, runs it again and compares the answer with
this page. The ids are in the same file.

There are four kinds of rows:

- **Judged** rows test the predictions. No constant in `assets/calibration.json` or
  `assets/setups.json` was fitted on them, and no software environment was chosen to match them.
- **Calibration** rows were used for such a fit or choice. Their error is what remains after the
  fit. It does not tell how well the program predicts other steps.
- **Closed forms** are formulas and lists of buffers from papers and other projects. The program's
  own formulas were written from them, so agreement shows only that they were copied correctly.
- **Reported** rows cannot be judged fairly. The text above each table says why.

No constant was changed to improve this page. Tests check that

- this page matches the data,
- the data were predicted with the present `assets/` and version of the program,
- the program still predicts a few rows as shown here,
- no constant was fitted on a judged row, and no choice was made to match one.
"""

LEFT_OUT = """### Calibration rows, predicted without some of their constants

This section asks how good a prediction is without a source's own constants. For each source, some
of the constants that were fitted on it are replaced by values from other sources or by a guess
(column "replaced by"). Then the times of the source's rows are predicted again. The last column
names the constants that were fitted on the source too and were not replaced. Because of these, no
source is left out completely, and this section judges no goal. The replacements for mli's constants
were chosen with Ivanov's layer, with the constants of the last column in use. They give the times
of that layer's op classes within 3 %.
"""

HOW = """## What the commands assume

- Programs that train on real text add an attention mask to the scores. Their rows are predicted
  with `--padding random`. Micro-benchmarks have no mask.
- With k accumulation steps, the published rate is of k forward and backward passes and one
  optimizer update. So is the predicted one (`plan --accumulate`).
- mli's layers, products and passes over a vector are benchmarks of single calls, and so are the
  predicted ones (`bench`): a layer's input needs no gradient, and gradients add up.
- Steps of several GPUs run torch's own DDP and tensor parallelism on virtual cards
  (`capture --parallel`), and their trace says peak and throughput (`info RANK.tscope`).
- Times of other layers, of modules and of op classes are the times of ops in a predicted trace
  (`capture --device predict:GPU`, `export --table ops`). When one op runs inside another one, their
  common time counts once.
- The interval of a largest batch covers a CUDA context that is 0.2 GiB larger or smaller. Its lower
  end also assumes 4 % more fragmentation than the simulator finds.
- Many published figures include start-up, which the program does not model. In Lambda's runs of
  100 steps the first step takes 2 to 3 s, so the published rates are 3 to 6 % below the rates that
  the same logs show for later steps.
"""


def note_of(book, row):
    """Why a row has no prediction."""
    if row["value"] == "ratio":
        return ""
    return book.predicted["rows"][row["id"]].get("note", "")


def rows_table(book, rows):
    with_notes = any(note_of(book, row) for row in rows)
    with_interval = any(row.get("interval") for row in rows)
    head = ["row", "published", "predicted"]
    head += ["interval"] if with_interval else []
    head += ["error"] + (["why"] if with_notes else [])
    with_environments = any(row.get("environments") for row in rows)
    head += findings.environment_names(book, rows) if with_environments else []
    lines = []
    for row in rows:
        error = book.error(row)
        cells = [f"{row['what']}", f"{number(book.published_of(row))} {row['unit']}",
                 number(book.predicted_of(row))]
        if with_interval:
            answer = book.predicted["rows"][row["id"]]
            cells.append(f"{answer['low']} to {answer['high']}" if row.get("interval") else "")
        cells.append("–" if error is None else percent(error))
        cells += [note_of(book, row)] if with_notes else []
        lines.append(cells + (findings.environment_cells(book, row) if with_environments else []))
    return table(head, lines)


NOT_JUDGED = "not judged"


def verdict(is_met):
    return "met" if is_met else "**missed**"


def is_checkpointing_ratio(row):
    """Whether the row is a ratio to a step without checkpointing, which has a goal of its own."""
    return row["id"].endswith(".ckpt")


def goal_lines(book):
    """(name, goal, result, verdict) of every goal."""
    yield from memory_lines(book)
    yield error_line(book, "h200_memory", "Peaks and largest batches on an H200, judged",
                     book.standing("h200_memory", "judged"))
    yield error_line(book, "h200_time", "Step times on an H200, judged",
                     book.standing("h200_time", "judged"))
    for name, title in (("rate", "Throughput, judged"),
                        ("ratio16", "16-bit / 32-bit throughput on the same machine, judged")):
        yield error_line(book, name, title, book.standing(name, "judged"))
    yield error_line(book, "fit_rate", "Throughput and times, calibration rows",
                     book.standing("fit_rate+fit_layer", "calibration"))
    errors = [error for one in book.published["leave_out"] for error in book.left_out(one)[1]]
    mean, worst = mean_and_worst(errors)
    yield ("The same, without the constants of their own source", "mean 12 %", "no source can be "
           "left out completely; with some of its constants replaced: mean "
           f"{magnitude(mean)}, worst {magnitude(worst)}", NOT_JUDGED)
    ratios = book.standing("fit_ratio", "calibration")
    yield error_line(book, "fit_ratio",
                     "Ratios between recipes except checkpointing, calibration rows",
                     [row for row in ratios if not is_checkpointing_ratio(row)])
    for error in book.errors([row for row in ratios if is_checkpointing_ratio(row)]):
        yield ("Throughput with checkpointing / without, calibration row", "within 13 %",
               percent(error), verdict(abs(error) <= 0.13))


def memory_lines(book):
    tempo = book.standing("batch", "calibration")
    near = sum(book.batch_is_near(row) for row in tempo)
    off = [book.predicted_of(row) - row["published"] for row in tempo]
    yield ("Largest batch, Tempo's V100 rows; the software environment was chosen to match them",
           "±1",
           f"{near} of {len(tempo)} rows; off by "
           f"{', '.join(f'{one:+d}' if one else '0' for one in off)}", NOT_JUDGED)
    ran = book.ran()
    missing = [row["what"] for row in ran if book.predicted_of(row) is None]
    result = f"{len(ran) - len(missing)} of {len(ran)}"
    if missing:
        result += f"; not {'; '.join(missing)}"
    yield "Batches that others ran, predicted to fit", "all", result, verdict(not missing)
    errors = book.errors(book.standing("peak", "reported"))
    yield ("Peak memory", "mean 4 %, worst 5 %", "no published peak can be judged; errors of "
           f"the reported ones: {percent(min(errors))} to {percent(max(errors))}", NOT_JUDGED)


def error_line(book, name, title, rows):
    group = book.group(name)
    errors = book.errors(rows)
    mean, worst = mean_and_worst(errors)
    missing = len(rows) - len(errors)
    text = f"{len(errors)} rows: mean {magnitude(mean)}, worst {magnitude(worst)}"
    if missing:
        text += f"; {missing} more are predicted not to fit on the GPU that ran them"
    is_met = mean * 100 <= group["goal_mean"] and worst * 100 <= group["goal_worst"]
    goal = f"mean {group['goal_mean']} %, worst {group['goal_worst']} %"
    return title, goal, text, verdict(is_met and not missing)


def group_section(book, group):
    parts = [f"### {group['title']}\n"]
    if group.get("text"):
        parts.append(group["text"] + "\n")
    for standing in data.STANDINGS:
        rows = [row for row in group["rows"] if row["standing"] == standing]
        if not rows:
            continue
        for why in dict.fromkeys(row.get("why") for row in rows):
            if why:
                parts.append(f"Not judged: {why}.\n")
            parts.append(rows_table(book, [row for row in rows if row.get("why") == why]))
        counted = [row for row in rows if not is_checkpointing_ratio(row)]
        errors = book.errors(counted)
        if standing in ("judged", "calibration") and len(errors) > 1 and group["kind"] != "batch":
            mean, worst = mean_and_worst(errors)
            which = " except checkpointing" if len(counted) < len(rows) else ""
            parts.append(f"{len(errors)} {standing} rows{which}: mean {magnitude(mean)}, worst "
                         f"{magnitude(worst)}. Goal: {group['goal']}.\n")
    if any(row.get("next_batch") for row in group["rows"]):
        parts.append(findings.bytes_section(book))
    return "\n".join(parts)


def leave_out_section(book):
    lines = []
    for one in book.published["leave_out"]:
        fitted, without = book.left_out(one)
        _, stays = data.left_out_constants(book.published, one)
        lines.append([one["id"], str(len(without)), magnitude(mean_and_worst(fitted)[0]),
                      *map(magnitude, mean_and_worst(without)), one["why"],
                      ", ".join(stays) or "none"])
    head = ["source", "rows", "mean as fitted", "mean, replaced", "worst, replaced", "replaced by",
            "fitted on the source, not replaced"]
    return f"{LEFT_OUT}\n{table(head, lines)}"


def replay_section(book):
    lines = [[one["file"], str(one["events"]), f"{one['rate'] * 100:.4g} %",
              f"{one['segment_event_matches']} of {one['segment_events']}",
              "equal" if one["final_state_matches"] else "**different**"]
             for one in book.predicted["replays"]]
    return ("## The allocator\n\n"
            "`temposcope replay` feeds the requested sizes, streams and frees of real memory "
            "snapshots to the allocator\nsimulator. It counts how many addresses the simulator "
            "predicts as recorded.\n\n"
            + book.published["replays"]["text"] + "\n\n"
            + table(["snapshot", "events", "addresses as recorded", "segment events",
                     "final segments and blocks"], lines)
            + "\nThe recordings contain no segment event, so the simulator must not predict one "
            "either.\n\n"
            "PyTorch's own allocator ran on the virtual GPU for the rules that these recordings do "
            "not exercise: side streams,\nretries when memory runs out, garbage collection, "
            "expandable segments, `max_split_size_mb`, `roundup_power2_divisions`\n"
            "(`virtual_gpu.allocator_recordings`). The rules below are **taken from PyTorch's "
            "source and not confirmed by a recording**.\nTests check only that the simulator "
            "does what [allocator.md](../allocator.md) says about them:\n\n"
            + "\n".join(f"- {rule}" for rule in book.published["unconfirmed"]) + "\n")


def virtual_gpu_section(book):
    section = book.published["virtual_gpu"]
    return ("## The virtual GPU\n\n" + section["text"] + "\n\n"
            + table(["recording", "equal events", "segments, recorded / virtual", "peak"],
                    section["rows"])
            + "\n" + section["after"] + "\n")


def sources_section(book):
    return "## Sources\n\n" + table(
        ["source", "how it was measured"],
        [[f"{one['title']}", one["set_up"]] for one in book.published["sources"].values()])


def sections(book, wanted):
    return "\n".join(group_section(book, book.group(name)) for name in wanted)


def render(published, predicted):
    """The whole page."""
    book = Book(published, predicted)
    goals = [list(line) for line in goal_lines(book)]
    found = "\n".join(f"- {findings.filled_in(book, one)}" for one in published["findings"])
    not_covered = table(["figure", "why not"],
                        [[one["what"], one["why"]] for one in published["not_covered"]])
    return "\n".join([
        INTRO, "## Goals\n", table(["", "goal", "result", ""], goals),
        "## What was found\n", found + "\n",
        "## Judged\n", sections(book, ("rate", "ratio16", "attention")),
        "## Calibration\n",
        sections(book, ("batch", "fit_rate", "fit_layer", "fit_kernel", "fit_ratio")),
        leave_out_section(book),
        "## Closed forms\n", sections(book, ("kept", "counts")),
        "## Reported, not judged\n",
        sections(book, ("unfair", "two_gpus", "two_gpus_peak", "t5", "qkv", "fused",
                        "tempo_2080ti", "old_batch", "peak")),
        replay_section(book), virtual_gpu_section(book), HOW, sources_section(book),
        "## Not covered\n", not_covered])
