"""Reads the published and the predicted figures, and checks the rules that they must follow."""

import hashlib
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "tests" / "validation"
PUBLISHED = FOLDER / "published.json"
PREDICTED = FOLDER / "predicted.json"
STANDINGS = ("judged", "calibration", "closed form", "reported")
ASSETS = ("gpus.json", "setups.json", "calibration.json")
CHANGELOG = ROOT / "CHANGELOG.md"
KINDS = ("batch", "time", "memory", "ratio")
OURS = "gpu_check"  # the source of what we measured ourselves


class DataError(Exception):
    """One sentence about what is wrong with the data."""


def read(path):
    """The content of a JSON file. Raises DataError if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path.name}: {error.strerror}; run tools/validate/validate") from error
    except ValueError as error:
        raise DataError(f"{path.name}: {error}") from error


def all_rows(published):
    return [row for group in published["groups"] for row in group["rows"]]


def published_value(row, by_id):
    """The published figure of a row. For a ratio it is computed from its two rows."""
    if row["value"] != "ratio":
        return row["published"]
    top, bottom = row["of"]
    return by_id[top]["published"] / by_id[bottom]["published"]


def command_of(row):
    """The commands that predict a row. A ratio has none: its two rows have them."""
    if row["value"] == "ratio":
        return []
    return [row["command"]] if isinstance(row["command"], str) else row["command"]


def assets_sources():
    """The sources of all constants, from calibration.json and setups.json: key -> text."""
    sources = {}
    for name in ("calibration.json", "setups.json"):
        sources.update(read(ROOT / "assets" / name)["sources"])
    return sources


def environment_fields():
    """Fields of the software environments in setups.json, as ENVIRONMENT.FIELD."""
    return {f"{setup['id']}.{field}" for setup in read(ROOT / "assets" / "setups.json")["setups"]
            for field in setup}


def constant_name(table, row):
    """Names a row of constants by its table and by the fields that select it, without its value."""
    selectors = ("tier", "gpus", "min_compute_capability", "max_memory_bus_bits", "type", "name",
                 "m", "n", "batched_of", "kernel", "kernel_set", "min_columns", "min_l2_mib",
                 "implementation", "state")
    parts = [row[key] for key in selectors if key in row]
    return " ".join([table, *(" ".join(one) if isinstance(one, list) else str(one)
                              for one in parts)])


def constants():
    """(name, source) of every constant in calibration.json and of every figure in setups.json."""
    found = []
    for table, entry in read(ROOT / "assets" / "calibration.json").items():
        if isinstance(entry, list):
            found += [(constant_name(table, row), row["source"]) for row in entry]
        elif "value" in entry:
            found.append((table, entry["source"]))
        elif table != "sources":
            found += [(f"{table}.{key}", one["source"]) for key, one in entry.items()]
    for setup in read(ROOT / "assets" / "setups.json")["setups"]:
        found += [(field, one["source"]) for field, one in setup.items()
                  if isinstance(one, dict) and "source" in one]
        found += [("context", one["source"]) for one in setup["context"]]
    return list(dict.fromkeys(found))


def left_out_constants(published, one):
    """Names of the constants that were fitted on a source: (replaced ones, ones that stay)."""
    by_id = {row["id"]: row for row in all_rows(published)}

    def is_from(key):
        return any(name in one["sources"] or by_id.get(name, {}).get("source") in one["sources"]
                   for name in published["calibrated_by"].get(key, []))

    replaced = {constant_name(table, row) for table, rows in one["calibration"].items()
                for row in rows}
    fixed = [name for name, source in constants() if is_from(source)]
    # A replacement that names no GPU holds for every GPU.
    gone = [name for name in fixed if name in replaced
            or any(name.endswith(" " + other.partition(" ")[2]) for other in replaced
                   if other.startswith("efficiencies "))]
    fitted = published["calibrated_by"].keys() & environment_fields()
    choices = [key for key in fitted if is_from(key)]
    return gone, [name for name in fixed if name not in gone] + sorted(choices)


def row_problems(row, published, by_id):
    """Sentences about what is wrong with one row."""
    problems = []

    def report(sentence):
        problems.append(f"{row.get('id', row)}: {sentence}")

    if row.get("source") not in published["sources"]:
        report(f"names the source '{row.get('source')}', which is not in 'sources'")
    if row.get("standing") not in STANDINGS:
        report(f"has the standing '{row.get('standing')}'; allowed are {', '.join(STANDINGS)}")
    if (row.get("standing") == "reported") != bool(row.get("why")):
        report("a reported row needs 'why', and no other row may have it")
    for field in ("what", "unit", "value"):
        if not row.get(field):
            report(f"has no '{field}'")
    if row.get("value") == "ratio":
        for part in row.get("of", []):
            if part not in by_id:
                report(f"is a ratio of '{part}', but no row has that id")
        if len(row.get("of", [])) != 2:
            report("a ratio needs exactly two rows in 'of'")
    else:
        if not row.get("command"):
            report("has no command")
        if not isinstance(row.get("published"), (int, float)) or row["published"] <= 0:
            report("has no published figure")
    return problems


def calibration_problems(published, by_id):
    """Checks that every constant's source lists the rows it was fitted on, and that none of them is
    judged."""
    problems = []
    used_by = published["calibrated_by"]
    texts = assets_sources()
    for key in sorted(texts.keys() - used_by.keys()):
        problems.append(
            f"calibrated_by lacks '{key}' of assets/; list the rows it was fitted on"
        )
    for key in sorted(used_by.keys() - texts.keys() - environment_fields()):
        problems.append(f"calibrated_by has '{key}', which is neither the source of a constant in "
                        "assets/ nor a field of a software environment in setups.json")
    used = {name for names in used_by.values() for name in names}
    for name in sorted(used - published["sources"].keys() - by_id.keys()):
        problems.append(f"calibrated_by names '{name}', which is neither a source nor a row")
    for key, text in texts.items():
        for source, about in published["sources"].items():
            rows = [n for n in used_by.get(key, []) if by_id.get(n, {}).get("source") == source]
            speaks_of = re.search(rf"\b{re.escape(about['name'])}\b", text)
            if speaks_of and source not in used_by.get(key, []) and not rows:
                problems.append(f"the constant source '{key}' names {about['name']}, but "
                                f"calibrated_by does not list '{source}' for it")
    for row in by_id.values():
        parts = [by_id[part] for part in row.get("of", []) if part in by_id] + [row]
        fitted = any(part["id"] in used or part["source"] in used for part in parts)
        if row["standing"] == "judged" and fitted:
            problems.append(f"{row['id']}: is judged, but a constant was fitted on it")
        if row["standing"] == "calibration" and not fitted:
            problems.append(f"{row['id']}: is a calibration row, but no constant was fitted on it")
    return problems


def published_problems(published):
    """Sentences about everything that is wrong with the published figures."""
    problems = []
    rows = all_rows(published)
    by_id = {row["id"]: row for row in rows}
    if len(by_id) != len(rows):
        problems.append("two rows have the same id")
    for group in published["groups"]:
        if group.get("kind") not in KINDS:
            problems.append(f"{group['id']}: its kind must be one of {', '.join(KINDS)}")
        if len({row["standing"] for row in group["rows"]} & {"judged", "calibration"}) > 1:
            problems.append(f"{group['id']}: has both judged and calibration rows; use two groups")
    for row in rows:
        problems += row_problems(row, published, by_id)
    for key, source in published["sources"].items():
        problems += [f"{key}: has no '{field}'" for field in ("name", "title", "set_up")
                     if not source.get(field)]
    return problems or calibration_problems(published, by_id)


def assets_hash(name):
    """Hash of the values in a file of assets/. The layout of the file and the texts of its sources
    do not count, because they change no prediction."""
    values = {**read(ROOT / "assets" / name), "sources": None}
    content = json.dumps(values, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def project_version():
    """The program's version, from CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(temposcope VERSION (\S+)", text).group(1)


def made_with_now():
    return {"version": project_version(), **{name: assets_hash(name) for name in ASSETS}}


def made_with_problems(predicted):
    """Sentences about what has changed since the rows were predicted."""
    then = predicted.get("made_with", {})
    problems = []
    for name, now in made_with_now().items():
        if then.get(name) != now:
            what = "the version of the program" if name == "version" else f"assets/{name}"
            problems.append(f"{what} has changed since the rows were predicted ({then.get(name)}, "
                            f"now {now}); run tools/validate/validate")
    return problems


def published_count(published):
    """How many figures others have published, without ratios of them and without closed forms."""
    return sum(row["value"] != "ratio" and row["standing"] != "closed form"
               and row["source"] != OURS for row in all_rows(published))


def changelog_problems(published):
    """Checks that the changelog states the right number of published figures."""
    sentence = f"{published_count(published)} published figures"
    if sentence in CHANGELOG.read_text(encoding="utf-8"):
        return []
    return [f"CHANGELOG.md must say '{sentence}'"]


def predicted_problems(published, predicted):
    """Sentences about rows that have no prediction, or one that another command made."""
    problems = []
    rows = {row["id"]: row for row in all_rows(published) if row["value"] != "ratio"}
    for key in sorted(rows.keys() - predicted["rows"].keys()):
        problems.append(f"{key}: has no prediction; run tools/validate/validate")
    for key in sorted(predicted["rows"].keys() - rows.keys()):
        problems.append(
            f"{key}: has a prediction but no published row; run tools/validate/validate")
    for key in rows.keys() & predicted["rows"].keys():
        if predicted["rows"][key]["fingerprint"] != fingerprint(rows[key]):
            problems.append(f"{key}: was predicted by another command; run tools/validate/validate")
    return problems


def fingerprint(row):
    """Hash of what a prediction depends on besides the program: the commands of the row, and the
    fields that say what is read from their answers."""
    parts = [*command_of(row), row["value"]]
    for field in ("select", "scale", "tflop", "interval", "environments", "next_batch"):
        if field in row:
            parts.append(f"{field}={json.dumps(row[field], sort_keys=True)}")
    return hashlib.sha256("; ".join(parts).encode()).hexdigest()[:12]
