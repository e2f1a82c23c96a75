"""Fills the numbers into the findings of docs/dev/validation.md.

It also has the details of the largest batches: Tempo's rows in other software environments, and the
memory of DeepSpeed's rows byte by byte.

The text of a finding has fields such as {error:ID}, {mean:GROUP} or {span:PATTERN}. FIELDS lists
them all. Each number is computed from the rows, so it cannot become stale. GROUP may name several
groups, as in "a+b".
"""

import re
import statistics

import validation_data as data
from validation_book import magnitude, mean_and_worst, number, percent, table

# DeepSpeed published batches of BERT-large.
LAYERS = 24
HEADS = 16
GB = 1e9

BYTES_BEFORE = """The next table takes the first batch of each grid that did not fit in 2020. In
decimal GB it shows the memory that tensors may take, the memory in the plan at its peak
(`plan --batch N --json`), and two terms that the plan lacks. "filled" is the plan and these two
terms together, as a share of what tensors may take. At 100 % they would explain why the batch did
not fit.
"""
BYTES_AFTER = """The two terms that the plan lacks are assumed upper bounds, because no log of that
time records them. They are one tensor of attention scores per layer and gradients of 4 bytes per
parameter.
"""


def row_of(book, key):
    if key not in book.rows:
        raise data.DataError(f"a finding names the row '{key}', but no row has that id")
    return book.rows[key]


def rows_of(book, groups, bits=None):
    """Judged or calibration rows of groups; with `bits`, only 16-bit or only 32-bit rows."""
    rows = book.judged(groups)
    if bits is None:
        return rows
    return [row for row in rows if ("--precision fp16" in row["command"]) == (bits == "16")]


def named(book, row):
    return f"{row['what']} ({percent(book.error(row))})"


def too_high(book, groups, bits=None):
    errors = book.errors(rows_of(book, groups, bits))
    return f"{sum(error > 0 for error in errors)} of {len(errors)}"


def lean(book, groups, bits=None):
    """The mean error with its sign: whether the rows are too high or too low on the whole."""
    return percent(statistics.fmean(book.errors(rows_of(book, groups, bits))))


def beyond(book, groups, limit):
    return ", ".join(named(book, row) for row in book.judged(groups)
                     if abs(book.error(row)) * 100 > float(limit)) or "no row"


def next_worst(book, groups, limit):
    return named(book, max((row for row in book.judged(groups)
                            if abs(book.error(row)) * 100 <= float(limit)),
                           key=lambda row: abs(book.error(row))))


def span(book, pattern):
    """The smallest and the largest error of the rows whose id matches a pattern."""
    errors = book.errors([row for key, row in book.rows.items() if re.fullmatch(pattern, key)])
    if not errors:
        raise data.DataError(f"a finding asks for rows '{pattern}', but no id matches")
    ends = dict.fromkeys([percent(min(errors)), percent(max(errors))])
    return " to ".join(ends)


def by_summaries(book, groups):
    """Mean and worst error against the published summaries, which include start-up."""
    errors = [book.predicted_of(row) / row.get("summary", book.published_of(row)) - 1
              for row in book.judged(groups)]
    return "mean {}, worst {}".format(*map(magnitude, mean_and_worst(errors)))


def left_out_mean(book, name, index):
    one = next(entry for entry in book.published["leave_out"] if entry["id"] == name)
    return magnitude(mean_and_worst(book.left_out(one)[index])[0])


# ---- the largest batches -------------------------------------------------------------------------


def environment_cells(book, row):
    """The largest batches in other software environments, in the order of environment_names."""
    answers = book.predicted["rows"][row["id"]]["environments"]
    return [number(value) for value in answers.values()]


def environment_names(book, rows):
    return list(book.predicted["rows"][rows[0]["id"]]["environments"])


def moved(book, what):
    """How far the environments with this word in their name move one of the batches at most."""
    most = 0
    for row in book.rows.values():
        answer = book.predicted["rows"].get(row["id"], {})
        for name, value in answer.get("environments", {}).items():
            if what in name:
                most = max(most, abs(value - book.predicted_of(row)))
    return str(most)


def missing_bytes(row, at_next):
    """Bytes at the next batch of the grid that were needed in 2020 and that a plan lacks."""
    batch = row["next_batch"]
    seq = int(re.search(r"--seq (\d+)", row["command"]).group(1))
    return {
        "softmax's input": 2 * LAYERS * batch * HEADS * seq * seq,
        # A parameter has 2 bytes here, its accumulated gradient 4.
        "fp32 gradients": 2 * at_next["peak_by_class"]["parameter_bytes"],
    }


def next_batch_rows(book):
    return [row for row in book.rows.values() if "next_batch" in row]


def share_filled(row, at_next):
    """Share of the memory for tensors that a batch fills. The batch is known not to have fit."""
    used = at_next["peak_reserved_bytes"] + sum(missing_bytes(row, at_next).values())
    return used / at_next["capacity_bytes"]


def filled(book, who):
    """Range of share_filled over the rows of one model; their ids end in its letter."""
    shares = [share_filled(row, book.predicted["rows"][row["id"]]["at_next"])
              for row in next_batch_rows(book) if row["id"].endswith("." + who)]
    return " to ".join(dict.fromkeys([magnitude(min(shares)), magnitude(max(shares))]))


def gigabytes(value):
    return f"{value / GB:.2f}"


def bytes_section(book):
    """The memory of DeepSpeed's rows at the next batch of the grid, which did not fit."""
    lines = []
    for row in next_batch_rows(book):
        at_next = book.predicted["rows"][row["id"]]["at_next"]
        classes = at_next["peak_by_class"]
        static = sum(classes[f"{name}_bytes"]
                     for name in ("parameter", "gradient", "optimizer_state"))
        rest = at_next["peak_reserved_bytes"] - static
        missing = missing_bytes(row, at_next).values()
        lines.append([row["what"], str(row["next_batch"]), gigabytes(at_next["capacity_bytes"]),
                      gigabytes(static), gigabytes(rest), *map(gigabytes, missing),
                      magnitude(share_filled(row, at_next))])
    head = ["row", "batch", "tensors may take", "parameters, gradients, optimizer",
            "activations, temporaries, cached", "softmax's input, not in the plan",
            "fp32 gradients, not in the plan", "filled"]
    return f"{BYTES_BEFORE}\n{table(head, lines)}\n{BYTES_AFTER}"


FIELDS = {
    "published": lambda book, key: number(book.published_of(row_of(book, key))),
    "predicted": lambda book, key: number(book.predicted_of(row_of(book, key))),
    "error": lambda book, key: percent(book.error(row_of(book, key))),
    "mean": lambda book, groups: magnitude(mean_and_worst(book.errors(book.judged(groups)))[0]),
    "too_high": too_high,
    "lean": lean,
    "beyond": beyond,
    "next_worst": next_worst,
    "span": span,
    "by_summaries": by_summaries,
    "fitted": lambda book, name: left_out_mean(book, name, 0),
    "without": lambda book, name: left_out_mean(book, name, 1),
    "moved": moved,
    "filled": filled,
}


def filled_in(book, text):
    """The text of a finding with its numbers."""
    def value(field):
        name, *arguments = field.group(1).split(":")
        if name not in FIELDS:
            raise data.DataError(f"a finding has the unknown field '{name}'")
        return FIELDS[name](book, *arguments)
    return re.sub(r"\{(\w+:[^{}]+)\}", value, text)
