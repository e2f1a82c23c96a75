"""Checks a trace of measured steps with SQL queries (docs/trace_format.md)."""

import json
import pathlib
import sqlite3

ERROR = 2  # of trace.h's Severity: records are missing or contradict each other
# CUPTI converts times of the GPU to times of the host by interpolation.
TOLERANCE_NS = 100_000


def read_only(path) -> sqlite3.Connection:
    return sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True)


def text_table(db: sqlite3.Connection) -> dict:
    return dict(db.execute("SELECT id, text FROM string"))


def step_times_ns(db: sqlite3.Connection) -> list:
    return [end - start for start, end in db.execute("SELECT start_ns, end_ns FROM step")]


def notes(db: sqlite3.Connection) -> dict:
    """code -> severity, count and explanation of the trace's diagnostics."""
    texts = text_table(db)
    rows = db.execute("SELECT code, severity, count, explanation FROM health")
    return {
        texts[code]: {"severity": severity, "count": count, "explanation": texts[explanation]}
        for code, severity, count, explanation in rows
    }


def software(db: sqlite3.Connection) -> dict:
    """Versions, and the calls that CUPTI refused with their return codes (`cupti_refused`)."""
    query = "SELECT s.text FROM run JOIN string s ON s.id = run.software"
    return json.loads((db.execute(query).fetchone() or ["{}"])[0])


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
    kernels, with_op, time_ns = db.execute(
        "SELECT count(*), count(op), coalesce(sum(end_ns - start_ns), 0) FROM kernel"
    ).fetchone()
    (copies,) = db.execute("SELECT count(*) FROM memcpy").fetchone()
    (calls,) = db.execute("SELECT count(*) FROM api").fetchone()
    # A step ends when its loss is known. All of its kernels have run by then.
    (inside,) = db.execute(
        "SELECT count(*) FROM kernel k WHERE EXISTS (SELECT 1 FROM step s"
        " WHERE k.start_ns >= s.start_ns - ? AND k.end_ns <= s.end_ns + ?)",
        (TOLERANCE_NS, TOLERANCE_NS),
    ).fetchone()
    (before_op,) = db.execute(
        "SELECT count(*) FROM kernel k JOIN op o ON k.op = o.id WHERE k.start_ns < o.start_ns - ?",
        (TOLERANCE_NS,),
    ).fetchone()
    return {
        "kernels": kernels,
        "kernels_with_op": with_op,
        "kernel_time_ns": time_ns,
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
        "software": software(db),
    }
    db.close()
    return found


def rows_of(path, query: str) -> list:
    """The rows of a query as dicts."""
    db = read_only(path)
    db.row_factory = sqlite3.Row
    rows = [dict(row) for row in db.execute(query)]
    db.close()
    return rows


def workspaces(path) -> list:
    """The workspaces of cuBLAS and cuBLASLt: for whom, on which stream, how large, and during which
    phase and op they were allocated."""
    return rows_of(
        path,
        "SELECT t.name, a.stream, a.block_bytes, o.phase_kind, a.op_name, a.address"
        " FROM v_allocation a JOIN v_tensor t ON t.storage = a.storage"
        " LEFT JOIN v_op o ON o.id = a.op WHERE a.role = 'workspace' ORDER BY a.alloc_event",
    )


def attention_outputs(path) -> list:
    """What the ops of scaled_dot_product_attention write, such as logsumexp and the state of their
    random numbers."""
    return rows_of(
        path,
        "SELECT DISTINCT op_name, tensor_name, shape, dtype FROM v_op_tensor"
        " WHERE access = 'write' AND op_name LIKE '%scaled_dot_product%'",
    )


def problems(found: dict) -> list:
    """Sentences about what is wrong with a summary. An empty list means that nothing is."""
    wrong = [
        f"the diagnostics report {code} ({note['count']} times)"
        for code, note in sorted(found["notes"].items())
        if note["severity"] >= ERROR
    ]
    if len(set(found["live_bytes_at_step_ends"][1:])) > 1:
        wrong.append("live bytes differ between the ends of the steps")
    if not found["allocations"]:
        wrong.append("the trace has no allocation")
    if not found["kernels"]:
        reason = found["notes"].get("kernels_missing", {}).get("explanation", "")
        wrong.append(f"the trace has no kernel{': ' if reason else ''}{reason}")
    if outside := found["kernels"] - found["kernels_inside_a_step"]:
        wrong.append(f"{outside} kernels ran outside every step")
    # An interpolation may be worse for a few kernels.
    if found["kernels_before_their_op"] > found["kernels"] / 100:
        wrong.append("some kernels begin before the op that launched them")
    return wrong
