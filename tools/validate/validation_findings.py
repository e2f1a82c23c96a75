"""Fills the numbers into the findings of docs/validation.md.

The text of a finding has fields such as {error:ID}, {mean:GROUP} or {span:PATTERN}. FIELDS lists
them all. Each number is computed from the rows, so it cannot become stale. GROUP may name several
groups, as in "a+b".
"""

import re
import statistics

import validation_batches as batches
import validation_data as data
from validation_book import magnitude, mean_and_worst, number, percent


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
    "moved": batches.moved,
    "filled": batches.filled,
}


def filled_in(book, text):
    """The text of a finding with its numbers."""
    def value(field):
        name, *arguments = field.group(1).split(":")
        if name not in FIELDS:
            raise data.DataError(f"a finding has the unknown field '{name}'")
        return FIELDS[name](book, *arguments)
    return re.sub(r"\{(\w+:[^{}]+)\}", value, text)
