"""Details of the largest batches: Tempo's rows in other software environments, and the memory of
DeepSpeed's rows byte by byte."""

import re

from validation_book import magnitude, number, table

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
