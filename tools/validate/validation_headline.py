"""The headline of docs/accuracy.md: one statement of the error, and a table of hits and misses.

README.md repeats the statement. Both follow the data, so neither can promise more than the rows.
"""

import re

import validation_data as data
from validation_book import Book, magnitude, mean_and_worst, table

NEAR = 0.20


def near(errors):
    return sum(abs(error) <= NEAR for error in errors)


def accuracy_rows():
    return data.read(data.ROOT / "assets" / "calibration.json")["accuracy"]


def interval_of(row):
    """What temposcope says beside every step time that it predicts on this row's GPU."""
    gpu = re.search(r"--gpu (\S+)", row["command"]).group(1)
    return [one["error"] for one in accuracy_rows() if gpu in one.get("gpus", [gpu])][-1]


def within_interval(book, rows):
    return sum(abs(book.error(row)) <= interval_of(row) for row in rows)


def intervals():
    """"±10 % to ±25 %": of all GPUs."""
    errors = [one["error"] for one in accuracy_rows()]
    return f"±{100 * min(errors):.0f} % to ±{100 * max(errors):.0f} %"


def statement(published, predicted):
    """The one statement of the error, which README.md repeats."""
    book = Book(published, predicted)
    memory = book.errors(book.standing("h200_memory", "judged"))
    mean, worst = mean_and_worst(memory)
    rows = book.judged("rate")
    times = book.standing("h200_time", "judged")
    gpus = {gpu for row in rows for gpu in re.findall(r"--gpu (\S+)", row["command"])}
    return (
        f"**Peak memory** is off by {magnitude(mean)} on average and by {magnitude(worst)} at "
        f"worst, in {len(memory)} figures of two layers of BERT-large on an H200.\n"
        f"**Times**: each comes with its interval, {intervals()} by whose kernels tell the rates "
        f"of the GPU. Of {len(rows)} published BERT runs on {len(gpus)} kinds of GPUs, "
        f"{within_interval(book, rows)} are within it, and {within_interval(book, times)} of "
        f"{len(times)} GPU-bound steps on the H200."
    )


def matching(book, pattern, standing="reported"):
    return [row for key, row in book.rows.items()
            if row["standing"] == standing and re.fullmatch(pattern, key)]


def groups(book):
    """(what is predicted, what it is compared with, rows) of each line of the table."""
    h200 = book.standing("h200_memory", "judged")
    steps = "30 steps of two layers of BERT-large, measured on an H200"

    def of(figure):
        return [row for row in h200 if row["value"] == f"plan.{figure}"]

    yield "peak allocated", steps, of("peak_allocated_bytes")
    yield "peak reserved", steps, of("peak_reserved_bytes")
    yield "largest batch", "the same model under limits of 3 and 6 GiB", of("max_batch_size")
    yield ("step time, limited by the GPU", "the steps on the H200 whose kernels run at least 93 % "
           "of the time", book.standing("h200_time", "judged"))
    yield ("step time, limited by the CPU", "the other steps on the H200; the CPU model is not of "
           "that machine", book.standing("h200_time", "reported"))
    yield "throughput", "published BERT runs, no constant fitted", book.judged("rate")
    yield ("16-bit over 32-bit throughput", "the same runs, in pairs", book.judged("ratio16"))
    yield ("attention of separate ops", "a published chart, no constant fitted",
           book.judged("attention"))
    yield ("throughput and times", "published figures that constants were fitted on: what remains "
           "after the fit", book.standing("fit_rate+fit_layer", "calibration"))
    yield ("single matmuls and memory passes", "published, fitted on the largest of them",
           book.standing("fit_kernel", "calibration"))
    yield ("FlashAttention-2 and xFormers alone", "published, 2048 tokens; fitted at 512 tokens",
           matching(book, "flash[.].*"))
    yield ("single layers", "published for GPUs and models that no constant was fitted on",
           matching(book, "mli[.].*[.](fwd|both)"))
    yield ("two GPUs, throughput", "published Megatron runs; the speed of the link is not known",
           book.standing("two_gpus", "reported"))
    yield ("peak memory", "published; each figure contains a counter of CPU memory",
           book.standing("peak", "reported"))
    yield ("largest batch", "Tempo's four; the software environment was chosen with them in view",
           book.standing("batch", "calibration"))
    yield ("largest batch", "DeepSpeed's of 2020, read from charts; not every buffer of that "
           "version is known", book.standing("old_batch", "reported"))


def headline(published, predicted):
    """The statement and the table. `{page}` is left for the link to all rows."""
    book = Book(published, predicted)
    lines = []
    for what, compared, rows in groups(book):
        errors = book.errors(rows)
        mean, worst = mean_and_worst(errors)
        lines.append([what, compared, str(len(errors)), str(sum(error == 0 for error in errors)),
                      str(near(errors)), magnitude(mean), magnitude(worst), f"`{rows[0]['id']}`"])
    head = ["predicted", "compared with", "rows", "exact", "within 20 %", "mean error",
            "worst error", "a row to run again"]
    return (f"{statement(published, predicted)}\n\n{table(head, lines)}\n"
            "[All rows]({page}), with the conditions of each.")
