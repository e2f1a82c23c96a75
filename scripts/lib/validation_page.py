"""docs/validation.md: published beside predicted, with the errors and what they mean."""

import re

import validation_batches as batches
import validation_data as data
import validation_findings as findings
from validation_book import Book, magnitude, mean_and_worst, number, percent, table

INTRO = """# Validation

What others have published beside what `temposcope` predicts for the same step, with the error of
each row. `scripts/validate` makes this page:
[tests/validation/published.json](../tests/validation/published.json) holds every figure with its
source, its set-up and the command that predicts it; `scripts/validate --row ID` shows and runs it
again (ids are in that file).

Four kinds of rows are kept apart. **Judged** rows are ones that no constant in
`assets/calibration.json` or `assets/setups.json`, and no choice in a set-up, was fitted on.
**Calibration** rows were used for one: their error is what the fit leaves, and judges nothing.
**Closed forms** are formulas that the program's own were written from. **Reported** rows cannot be
judged fairly; each says why. Errors are predicted / published − 1, mean and worst of absolute
errors. The goals are the project's own. No constant has been changed for this page.

Tests hold that this page is what the data say, that the files in `assets/` and the program's
version are those that predicted them, that a few rows are still predicted as they stand here, and
that no row is judged that a constant or a choice was fitted on.
"""

LEFT_OUT = """### Calibration rows, some constants left out

No source is left out whole. The constants that a file of the user's can replace are replaced by
what other sources, or a guess, would have given, and the times of the source's rows predicted
again; those in the last column, which the source fixed as well, stay. What is in place of mli's was
read off Ivanov's layer with those, and gives its times by class within 3 %. So this shows what the
replaced constants do, and judges no goal.
"""

HOW = """## What the commands assume
- Programs on real text add an attention mask to the scores, so their rows are predicted with
  `--padding random`; micro-benchmarks have none.
- With accumulation k the published rate is of k forward and backward passes and one update: the
  plan's step less (1 − 1/k) of its optimizer.
- Times of layers, modules and classes are those of the ops in a predicted trace (`capture --device
  predict:GPU`, `export --table ops`); an op inside another one is not counted twice. Backward of a
  micro-benchmark leaves out the gradient of the layer's input.
- Start-up is not modelled and is in many published figures: of Lambda's runs of 100 steps the first
  one takes 2 to 3 s, so their rates are 3 to 6 % below what the same logs show later.
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
    with_set_ups = any(row.get("set_ups") for row in rows)
    head += batches.set_up_names(book, rows) if with_set_ups else []
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
        lines.append(cells + (batches.set_up_cells(book, row) if with_set_ups else []))
    return table(head, lines)


NOT_JUDGED = "not judged"


def verdict(is_met):
    return "met" if is_met else "**missed**"


def goal_lines(book):
    """(name, goal, what is, verdict) of every goal."""
    yield from memory_lines(book)
    for name, title in (("rate", "Throughput, judged"),
                        ("ratio16", "16 bits / 32 bits on one host, judged")):
        yield error_line(book, name, title, book.standing(name, "judged"))
    yield error_line(book, "fit_rate", "Throughput and times, calibration rows",
                     book.standing("fit_rate+fit_layer", "calibration"))
    errors = [error for one in book.published["leave_out"] for error in book.left_out(one)[1]]
    mean, worst = mean_and_worst(errors)
    yield ("The same, their source left out", "mean 12 %", "no source can be left out whole; with "
           f"some of its constants replaced: mean {magnitude(mean)}, worst {magnitude(worst)}",
           NOT_JUDGED)
    ratios = book.standing("fit_ratio", "calibration")
    checkpointing = [row for row in ratios if row["id"].endswith(".ckpt")]
    yield error_line(book, "fit_ratio", "Ratios between recipes, of calibration rows",
                     [row for row in ratios if row not in checkpointing])
    for error in book.errors(checkpointing):
        yield ("Checkpointing / not, of calibration rows", "within 13 %", percent(error),
               verdict(abs(error) <= 0.13))


def memory_lines(book):
    tempo = book.standing("batch", "calibration")
    near = sum(book.batch_is_near(row) for row in tempo)
    off = [book.predicted_of(row) - row["published"] for row in tempo]
    yield ("Largest batch, Tempo's V100 rows, by a set-up chosen with them in view", "±1",
           f"{near} of {len(tempo)}; off by "
           f"{', '.join(f'{one:+d}' if one else '0' for one in off)}", NOT_JUDGED)
    ran = book.ran()
    fitting = [row for row in ran if book.predicted_of(row) is not None]
    yield ("Batches that ran, predicted to fit", "all", f"{len(fitting)} of {len(ran)}",
           verdict(len(fitting) == len(ran)))
    errors = book.errors(book.standing("peak", "reported"))
    yield ("Peak memory", "mean 4 %, worst 5 %", "no published peak can be judged; reported ones "
           f"{percent(min(errors))} to {percent(max(errors))}", NOT_JUDGED)


def error_line(book, name, title, rows):
    group = book.group(name)
    errors = book.errors(rows)
    mean, worst = mean_and_worst(errors)
    missing = len(rows) - len(errors)
    text = f"{len(errors)} rows: mean {magnitude(mean)}, worst {magnitude(worst)}"
    if missing:
        text += f"; {missing} more do not fit where they ran"
    is_met = mean * 100 <= group["goal_mean"] and worst * 100 <= group["goal_worst"]
    goal = f"mean {group['goal_mean']} %, worst {group['goal_worst']} %"
    return title, goal, text, verdict(is_met and not missing)


def summary(published, predicted):
    """The headline, as README and the planner's page quote it."""
    book = Book(published, predicted)
    rows = book.judged("rate")
    errors = book.errors(rows)
    mean, worst = mean_and_worst(errors)
    ratio_mean, ratio_worst = mean_and_worst(book.errors(book.judged("ratio16")))
    cards = {gpu for row in rows for gpu in re.findall(r"--gpu (\S+)", row["command"])}
    near = sum(abs(error) <= 0.1 for error in errors)
    return (
        "Against published figures that no constant was fitted on, predicted without changing "
        f"any:\ntimes of {len(rows)} BERT runs on {len(cards)} kinds of cards within 10 % in "
        f"{near} of them, {magnitude(mean)} off on average and\n{magnitude(worst)} at worst; "
        f"16 bits over 32 bits on one host {magnitude(ratio_mean)} on average and "
        f"{magnitude(ratio_worst)} at worst.\nNo published largest batch or peak can be judged. "
        "[Row by row]({page}), with the goals that are met and those that are missed."
    )


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
        errors = book.errors(rows)
        if standing in ("judged", "calibration") and len(errors) > 1 and group["kind"] != "batch":
            mean, worst = mean_and_worst(errors)
            parts.append(f"{len(errors)} {standing} rows: mean {magnitude(mean)}, worst "
                         f"{magnitude(worst)}. Goal: {group['goal']}.\n")
    if any(row.get("next_batch") for row in group["rows"]):
        parts.append(batches.bytes_section(book))
    return "\n".join(parts)


def leave_out_section(book):
    lines = []
    for one in book.published["leave_out"]:
        fitted, without = book.left_out(one)
        _, stays = data.left_out_constants(book.published, one)
        lines.append([one["id"], str(len(without)), magnitude(mean_and_worst(fitted)[0]),
                      *map(magnitude, mean_and_worst(without)), one["why"],
                      ", ".join(stays) or "none"])
    head = ["source", "rows", "mean as fitted", "mean without", "worst without", "in its place",
            "of the source, and stays"]
    return f"{LEFT_OUT}\n{table(head, lines)}"


def replay_section(book):
    lines = [[one["file"], str(one["events"]), f"{one['rate'] * 100:.4g} %",
              f"{one['segment_event_matches']} of {one['segment_events']}",
              "equal" if one["final_state_matches"] else "**different**"]
             for one in book.predicted["replays"]]
    return ("## The allocator\n\n"
            "`temposcope replay` on real memory snapshots: every address predicted from the "
            "requested sizes,\nstreams and frees.\n\n"
            + book.published["replays"]["text"] + "\n\n"
            + table(["snapshot", "events", "addresses as recorded", "segment events",
                     "final segments and blocks"], lines)
            + "\nNone of them has a segment event, and none may be predicted.\n\n"
            "Rules that these recordings do not exercise rest on PyTorch's source and on tests "
            "that the simulator\ndoes what [allocator.md](allocator.md) says. **From source, "
            "unconfirmed:**\n\n"
            + "\n".join(f"- {rule}" for rule in book.published["unconfirmed"]) + "\n")


def sources_section(book):
    return "## Sources and set-ups\n\n" + table(
        ["source", "set-up"],
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
        INTRO, "## Goals\n", table(["", "goal", "is", ""], goals),
        "## What was found\n", found + "\n",
        "## Judged\n", sections(book, ("rate", "ratio16")),
        "## Calibration\n", sections(book, ("batch", "fit_rate", "fit_layer", "fit_ratio")),
        leave_out_section(book),
        "## Closed forms\n", sections(book, ("kept", "counts")),
        "## Reported, not judged\n", sections(book, ("unfair", "old_batch", "peak")),
        replay_section(book), HOW, sources_section(book),
        "## Not covered\n", not_covered])
