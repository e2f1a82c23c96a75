"""Checks a trace of measured steps with SQL queries (docs/trace_format.md)."""

import json
import pathlib
import sqlite3

# Diagnostic notes that do not mean missing or assumed records.
HARMLESS_NOTES = {"capture_memory", "layer_norm_keeps_normalized", "machine_busy"}


def read_only(path) -> sqlite3.Connection:
    return sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True)


def text_table(db: sqlite3.Connection) -> dict:
    return dict(db.execute("SELECT id, text FROM string"))


def step_times_ns(db: sqlite3.Connection) -> list:
    return [end - start for start, end in db.execute("SELECT start_ns, end_ns FROM step")]


def notes(db: sqlite3.Connection) -> dict:
    texts = text_table(db)
    return {texts[code]: count for code, count in db.execute("SELECT code, count FROM health")}


def last_counters(db: sqlite3.Connection) -> dict:
    texts = text_table(db)
    rows = db.execute("SELECT name, value FROM counter ORDER BY rowid")
    return {texts[name]: value for name, value in rows}


def peak_allocated_bytes(db: sqlite3.Connection) -> int:
    return db.execute("SELECT max(allocated_bytes) FROM v_memory").fetchone()[0] or 0


def peak_reserved_bytes(db: sqlite3.Connection) -> int:
    """The peak of all segments together. The actions are trace.h's AllocatorAction."""
    growth = "CASE action WHEN 0 THEN size_bytes WHEN 2 THEN size_bytes ELSE -size_bytes END"
    query = (
        f"SELECT max(held) FROM (SELECT sum({growth}) OVER (ORDER BY event) AS held"
        " FROM allocator_event WHERE action < 4)"
    )
    return db.execute(query).fetchone()[0] or 0


def workload(db: sqlite3.Connection) -> dict:
    query = "SELECT s.text FROM run JOIN string s ON s.id = run.workload"
    return json.loads((db.execute(query).fetchone() or ["{}"])[0])


def losses(db: sqlite3.Connection) -> list:
    return [loss for (loss,) in db.execute("SELECT loss FROM step")]


def live_at_step_ends(db: sqlite3.Connection) -> list:
    """Live bytes at the end of each step. If they grow, something leaks."""
    live = []
    for (end,) in db.execute("SELECT last_event FROM step").fetchall():
        query = (
            "SELECT coalesce(sum(block_bytes), 0) FROM allocation WHERE alloc_event < ?"
            " AND (free_requested_event IS NULL OR free_requested_event >= ?)"
        )
        live.append(db.execute(query, (end, end)).fetchone()[0])
    return live


def kernel_summary(db: sqlite3.Connection) -> dict:
    kernels, with_op = db.execute("SELECT count(*), count(op) FROM kernel").fetchone()
    (copies,) = db.execute("SELECT count(*) FROM memcpy").fetchone()
    (calls,) = db.execute("SELECT count(*) FROM api").fetchone()
    # A step ends when its loss is known. All of its kernels have run by then.
    (inside,) = db.execute(
        "SELECT count(*) FROM kernel k WHERE EXISTS (SELECT 1 FROM step s"
        " WHERE k.start_ns >= s.start_ns AND k.end_ns <= s.end_ns)"
    ).fetchone()
    (before_op,) = db.execute(
        "SELECT count(*) FROM kernel k JOIN op o ON k.op = o.id WHERE k.start_ns < o.start_ns"
    ).fetchone()
    return {
        "kernels": kernels,
        "kernels_with_op": with_op,
        "kernels_inside_a_step": inside,
        "kernels_before_their_op": before_op,
        "copies": copies,
        "api_calls": calls,
    }


def summary(path) -> dict:
    db = read_only(path)
    found = kernel_summary(db) | {
        "steps": len(step_times_ns(db)),
        "step_times_ns": step_times_ns(db),
        "allocations": db.execute("SELECT count(*) FROM allocation").fetchone()[0],
        "allocator_events": db.execute("SELECT count(*) FROM allocator_event").fetchone()[0],
        "workload": workload(db),
        "losses": losses(db),
        "peak_allocated_bytes": peak_allocated_bytes(db),
        "peak_reserved_bytes": peak_reserved_bytes(db),
        "live_bytes_at_step_ends": live_at_step_ends(db),
        "counters": last_counters(db),
        "notes": notes(db),
    }
    db.close()
    return found


def problems(found: dict, with_kernels: bool) -> list:
    """Sentences about what is wrong with a summary. An empty list means that nothing is."""
    wrong = [
        f"the diagnostics report {code} ({count} times)"
        for code, count in sorted(found["notes"].items())
        if code not in HARMLESS_NOTES
    ]
    if len(set(found["live_bytes_at_step_ends"][1:])) > 1:
        wrong.append("live bytes differ between the ends of the steps")
    if not found["allocations"]:
        wrong.append("the trace has no allocation")
    if with_kernels:
        if not found["kernels"]:
            wrong.append("the trace has no kernel")
        if found["kernels_inside_a_step"] < found["kernels"]:
            wrong.append("some kernels ran outside every step")
        # CUPTI converts GPU times to CPU times by interpolation, so a few kernels may be off.
        if found["kernels_before_their_op"] > found["kernels"] / 100:
            wrong.append("some kernels begin before the op that launched them")
    return wrong
