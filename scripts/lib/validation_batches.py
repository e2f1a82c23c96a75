"""What the largest batches rest on: other set-ups of Tempo's rows, and the bytes of DeepSpeed's."""

import re

from validation_book import magnitude, number, table

# BERT-large, whose batches DeepSpeed published.
LAYERS = 24
HEADS = 16
GB = 1e9

BYTES_BEFORE = """At the next batch of each grid, which did not fit then, in decimal GB: what
tensors may take, what the plan has at its peak (`plan --batch N --json`), and what it does not
have. The last column is all of them over the first: at 100 % the published batch is explained.
"""
BYTES_AFTER = """The terms that are not planned are upper bounds, and assumed: no log of that time
tells them. One tensor of scores a layer, and gradients of 4 bytes a parameter.
"""


def set_up_cells(book, row):
    """Batches under other set-ups, in the order of set_up_names."""
    answers = book.predicted["rows"][row["id"]]["set_ups"]
    return [number(value) for value in answers.values()]


def set_up_names(book, rows):
    return list(book.predicted["rows"][rows[0]["id"]]["set_ups"])


def moved(book, what):
    """The most that a choice of that name moves one of the batches."""
    most = 0
    for row in book.rows.values():
        for name, value in book.predicted["rows"].get(row["id"], {}).get("set_ups", {}).items():
            if what in name:
                most = max(most, abs(value - book.predicted_of(row)))
    return str(most)


def missing_bytes(row, at_next):
    """Terms of 2020 that a plan does not have, at the next batch of the grid."""
    batch = row["next_batch"]
    seq = int(re.search(r"--seq (\d+)", row["command"]).group(1))
    return {
        "softmax's input": 2 * LAYERS * batch * HEADS * seq * seq,
        # Parameters are of 2 bytes here, their accumulated gradients of 4.
        "fp32 gradients": 2 * at_next["peak_by_class"]["parameter_bytes"],
    }


def next_batch_rows(book):
    return [row for row in book.rows.values() if "next_batch" in row]


def share_filled(row, at_next):
    """Of what tensors may take, at a batch that is known to have failed."""
    used = at_next["peak_reserved_bytes"] + sum(missing_bytes(row, at_next).values())
    return used / at_next["capacity_bytes"]


def filled(book, who):
    """Shares of one publisher's rows, whose ids end in its letter."""
    shares = [share_filled(row, book.predicted["rows"][row["id"]]["at_next"])
              for row in next_batch_rows(book) if row["id"].endswith("." + who)]
    return " to ".join(dict.fromkeys([magnitude(min(shares)), magnitude(max(shares))]))


def gigabytes(value):
    return f"{value / GB:.2f}"


def bytes_section(book):
    """DeepSpeed's batches, byte by byte, where the next one failed."""
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
            "activations, temporaries, cached", "softmax's input, not planned",
            "fp32 gradients, not planned", "filled"]
    return f"{BYTES_BEFORE}\n{table(head, lines)}\n{BYTES_AFTER}"
