"""docs/validation.md: published beside predicted, with the errors and what they mean."""

import re
import statistics

import validation_data as data

# A batch may be off by one, or by this share where that is more (the goal of the issue).
BATCH_STEP = 1
BATCH_SHARE = 0.05

INTRO = """# Validation

What others have published beside what `temposcope` predicts for the same step, with the error of
each row. `scripts/validate` makes this page:
[tests/validation/published.json](../tests/validation/published.json) holds every figure with its
source, its set-up and the command that predicts it; `scripts/validate --row ID` shows and runs it
again (ids are in that file).
A test holds that the page is what the data say, that a few rows are still predicted as they stand
here, and that no row is judged that a constant was fitted on.

Three kinds of rows are kept apart. **Judged** rows are of sources that no constant in
`assets/calibration.json` or `assets/setups.json` was fitted on. **Calibration** rows were used for
one: their error is what the fit leaves, and judges nothing. **Reported** rows cannot be judged
fairly; each says why. Errors are predicted / published − 1, mean and worst of absolute errors. No
constant has been changed for this page.
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


def percent(value):
    """With its sign, unless it rounds to nothing."""
    rounded = round(value * 100, 1)
    return f"{rounded:+.1f} %" if rounded else "0.0 %"


def magnitude(value):
    return f"{abs(value) * 100:.1f} %"


def number(value):
    """Four significant digits, a batch as it is."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


class Book:
    """Published and predicted figures together."""

    def __init__(self, published, predicted):
        self.published = published
        self.predicted = predicted
        self.rows = {row["id"]: row for row in data.all_rows(published)}

    def published_of(self, row):
        return data.published_value(row, self.rows)

    def predicted_of(self, row):
        if row["value"] != "ratio":
            return self.predicted["rows"][row["id"]]["value"]
        top, bottom = (self.predicted_of(self.rows[part]) for part in row["of"])
        return None if top is None or bottom is None else top / bottom

    def error(self, row):
        value = self.predicted_of(row)
        return None if value is None else value / self.published_of(row) - 1

    def errors(self, rows):
        return [error for error in map(self.error, rows) if error is not None]

    def group(self, name):
        return next(one for one in self.published["groups"] if one["id"] == name)

    def standing(self, group, standing):
        return [row for row in self.group(group)["rows"] if row["standing"] == standing]

    def batch_is_met(self, row):
        off = abs(self.predicted_of(row) - row["published"])
        return off <= max(BATCH_STEP, BATCH_SHARE * row["published"])


def mean_and_worst(errors):
    sizes = [abs(error) for error in errors]
    return statistics.fmean(sizes), max(sizes)


def table(head, lines):
    rule = "|".join(["---"] * len(head))
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|",
                      *(f"| {' | '.join(cells)} |" for cells in lines)]) + "\n"


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
    lines = []
    for row in rows:
        error = book.error(row)
        cells = [f"{row['what']}", f"{number(book.published_of(row))} {row['unit']}",
                 number(book.predicted_of(row))]
        if with_interval:
            answer = book.predicted["rows"][row["id"]]
            cells.append(f"{answer['low']} to {answer['high']}" if row.get("interval") else "")
        cells.append("–" if error is None else percent(error))
        lines.append(cells + ([note_of(book, row)] if with_notes else []))
    return table(head, lines)


def verdict(is_met):
    return "met" if is_met else "**missed**"


def goal_lines(book):
    """(name, goal, what is, verdict) of every goal."""
    tempo = book.standing("batch", "judged")
    met = [row for row in tempo if book.batch_is_met(row)]
    off = [book.predicted_of(row) - row["published"] for row in tempo]
    yield ("Largest batch, Tempo's V100 rows", "±1", f"{len(met)} of {len(tempo)}; off by "
           f"{', '.join(f'{one:+d}' if one else '0' for one in off)}", len(met) == len(tempo))
    ran = [row for row in book.rows.values() if "--batch" in row.get("command", "")
           and row["value"].startswith("plan.")]
    fitting = [row for row in ran if book.predicted_of(row) is not None]
    yield ("Batches that ran, predicted to fit", "all", f"{len(fitting)} of {len(ran)}",
           len(fitting) == len(ran))
    for name, title in (("kept", "Memory: what a layer keeps (no peak can be judged)"),
                        ("rate", "Throughput on one GPU, judged"),
                        ("ratio16", "16 bits / 32 bits on one host, judged")):
        yield judged_line(book, name, title)
    fit = book.errors(book.standing("fit_rate", "calibration") +
                      book.standing("fit_layer", "calibration"))
    mean, worst = mean_and_worst(fit)
    yield ("Throughput and times, calibration rows", "mean 6 %, worst 19 %",
           f"{len(fit)} rows: mean {magnitude(mean)}, worst {magnitude(worst)}",
           mean <= 0.06 and worst <= 0.19)
    mean, worst = leave_out_total(book)
    yield ("The same, their source left out", "mean 12 %",
           f"mean {magnitude(mean)}, worst {magnitude(worst)}", mean <= 0.12)
    yield from recipe_ratio_lines(book)


def judged_line(book, name, title):
    group = book.group(name)
    rows = book.standing(name, "judged")
    errors = book.errors(rows)
    mean, worst = mean_and_worst(errors)
    missing = len(rows) - len(errors)
    text = f"{len(errors)} rows: mean {magnitude(mean)}, worst {magnitude(worst)}"
    if missing:
        text += f"; {missing} more do not fit where they ran"
    is_met = mean * 100 <= group["goal_mean"] and worst * 100 <= group["goal_worst"]
    return title, group["goal"], text, is_met and not missing


def recipe_ratio_lines(book):
    rows = book.standing("fit_ratio", "calibration")
    checkpointing = [row for row in rows if row["id"].endswith(".ckpt")]
    others = book.errors([row for row in rows if row not in checkpointing])
    mean, worst = mean_and_worst(others)
    yield ("Ratios between recipes, of calibration rows", "mean 5 %, worst 8 %",
           f"{len(others)} rows: mean {magnitude(mean)}, worst {magnitude(worst)}",
           mean <= 0.05 and worst <= 0.08)
    errors = book.errors(checkpointing)
    if errors:
        yield ("Checkpointing / not, of calibration rows", "within 13 %", percent(errors[0]),
               abs(errors[0]) <= 0.13)


def left_out_errors(book, one):
    errors = []
    for key, value in book.predicted["left_out"][one["id"]].items():
        if value is not None and key in book.rows:
            errors.append(value / book.rows[key]["published"] - 1)
    return errors


def leave_out_total(book):
    return mean_and_worst([error for one in book.published["leave_out"]
                           for error in left_out_errors(book, one)])


def summary(published, predicted):
    """The headline, as README and the planner's page quote it."""
    book = Book(published, predicted)
    tempo = book.standing("batch", "judged")
    rate_mean, rate_worst = mean_and_worst(book.errors(book.standing("rate", "judged")))
    ratio_mean, ratio_worst = mean_and_worst(book.errors(book.standing("ratio16", "judged")))
    met = sum(book.batch_is_met(row) for row in tempo)
    rates = [row for row in book.standing("rate", "judged") if book.error(row) is not None]
    cards = {gpu for row in rates for gpu in re.findall(r"--gpu (\S+)", row["command"])}
    return (
        "Against published figures that no constant was fitted on, predicted without changing "
        f"any:\nTempo's largest batches within one sequence in {met} of {len(tempo)} rows; "
        f"throughput of {len(rates)} BERT runs on {len(cards)} kinds\nof cards "
        f"{magnitude(rate_mean)} off on average and {magnitude(rate_worst)} at worst; 16 bits over "
        f"32 bits on one host {magnitude(ratio_mean)}\non average and {magnitude(ratio_worst)} at "
        "worst. [Row by row]({page}), with the goals that are met and those that are missed."
    )


def group_section(book, group):
    parts = [f"### {group['title']}\n"]
    if group.get("text"):
        parts.append(group["text"] + "\n")
    for standing in ("judged", "calibration", "reported"):
        rows = [row for row in group["rows"] if row["standing"] == standing]
        if not rows:
            continue
        for why in dict.fromkeys(row.get("why") for row in rows):
            if why:
                parts.append(f"Not judged: {why}.\n")
            parts.append(rows_table(book, [row for row in rows if row.get("why") == why]))
        errors = book.errors(rows)
        if standing != "reported" and len(errors) > 1 and group["kind"] != "batch":
            mean, worst = mean_and_worst(errors)
            parts.append(f"{len(errors)} {standing} rows: mean {magnitude(mean)}, worst "
                         f"{magnitude(worst)}. Goal: {group['goal']}.\n")
    if group.get("finding"):
        parts.append(group["finding"] + "\n")
    return "\n".join(parts)


def leave_out_section(book):
    lines = []
    for one in book.published["leave_out"]:
        kept = book.errors([book.rows[key] for key in book.predicted["left_out"][one["id"]]])
        errors = left_out_errors(book, one)
        lines.append([one["id"], str(len(errors)), magnitude(mean_and_worst(kept)[0]),
                      *map(magnitude, mean_and_worst(errors)), one["why"]])
    mean, worst = leave_out_total(book)
    return ("### Calibration rows, their source left out\n\n"
            "What a source fixed is replaced by what the other sources, or nothing better, would "
            "have given;\nits rows are then predicted again: the error to expect for a new host or "
            "framework.\n\n"
            + table(["source", "rows", "mean as fitted", "mean without", "worst without",
                     "in its place"], lines)
            + f"\nAll together: mean {magnitude(mean)}, worst {magnitude(worst)}. Goal: 12 %.\n")


def replay_section(book):
    lines = [[one["file"], str(one["events"]), f"{one['rate'] * 100:.4g} %",
              f"{one['segment_event_matches']} of {one['segment_events']}",
              "equal" if one["final_state_matches"] else "**different**"]
             for one in book.predicted["replays"]]
    return ("## The allocator\n\n"
            "`temposcope replay` on real memory snapshots: every address predicted from the "
            "requested sizes,\nstreams and frees.\n\n"
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
    goals = [[name, goal, text, verdict(met)] for name, goal, text, met in goal_lines(book)]
    findings = "\n".join(f"- {one}" for one in published["findings"])
    not_covered = table(["figure", "why not"],
                        [[one["what"], one["why"]] for one in published["not_covered"]])
    return "\n".join([
        INTRO, "## Goals\n", table(["", "goal", "is", ""], goals),
        "## What was found\n", findings + "\n",
        "## Judged\n", sections(book, ("batch", "kept", "counts", "rate", "ratio16")),
        "## Calibration\n", sections(book, ("fit_rate", "fit_layer", "fit_ratio")),
        leave_out_section(book),
        "## Reported, not judged\n", sections(book, ("unfair", "peak")),
        replay_section(book), HOW, sources_section(book),
        "## Not covered\n", not_covered])
