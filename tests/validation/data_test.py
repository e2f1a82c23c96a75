"""Published figures follow their rules, no judged row calibrates, and the page matches the data.

Each rule is also broken on purpose: a rule that catches nothing fails its test.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "validate"))

import validation_data as data  # noqa: E402
import validation_findings as findings  # noqa: E402
import validation_headline  # noqa: E402
import validation_page as page  # noqa: E402
import validation_run as run  # noqa: E402
from validation_book import Book  # noqa: E402


class Repository(unittest.TestCase):
    def test_data_and_page_are_in_order(self):
        result = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "validate" / "validate"), "--check"],
            capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)


class Benchmarks(unittest.TestCase):
    """The published figures that `temposcope bench` shows are those of this page."""

    @staticmethod
    def options_of(row):
        command = row["command"] if isinstance(row["command"], str) else row["command"][0]
        words = command.split()
        return {word[2:]: words[i + 1] for i, word in enumerate(words[:-1])
                if word.startswith("--")}

    # A field of the asset, the option that asks for it, and what it is without the option.
    FIELDS = (("size", "size", ""), ("model", "model", ""), ("seq_len", "seq", ""),
              ("batch_size", "batch", ""), ("gradient_accumulation_steps", "accumulate", "1"),
              ("precision", "precision", ""), ("setup", "setup", ""))
    FIGURES = {"bench.tflops": "tflops", "bench.gb_per_s": "gb_per_s",
               "bench.forward": "forward_tflops", "bench.training": "training_tflops",
               "plan.throughput_sequences_per_s": "sequences_per_s",
               "plan.peak_allocated_bytes": "peak_gb"}

    def test_agree_with_the_rows_of_the_page(self):
        asset = json.loads((ROOT / "assets" / "published_benchmarks.json").read_text())
        compared = set()
        for row in data.all_rows(data.read(data.PUBLISHED)):
            if row["source"] != "mli" or row["value"] not in self.FIGURES:
                continue
            words = row["command"].split()
            kind = words[1] if words[0] == "bench" else "model"
            options = self.options_of(row)
            gpu = options.get("gpu") or options["device"].removeprefix("predict:")
            same = [i for i, one in enumerate(asset[kind]) if one["gpu"] == gpu and all(
                str(one[field]) == options.get(option, default)
                for field, option, default in self.FIELDS if field in one)]
            self.assertEqual(len(same), 1, row["id"])
            figure = self.FIGURES[row["value"]]
            self.assertEqual(asset[kind][same[0]][figure], row["published"], row["id"])
            compared.add((kind, same[0], figure))
        figures = {(kind, i, figure) for kind, rows in asset.items() if kind != "sources"
                   for i, one in enumerate(rows) for figure in self.FIGURES.values()
                   if figure in one}
        self.assertEqual(figures - compared, set(), "not on the page")


class Rules(unittest.TestCase):
    def setUp(self):
        self.published = copy.deepcopy(data.read(data.PUBLISHED))
        self.predicted = copy.deepcopy(data.read(data.PREDICTED))

    def row(self, standing):
        return next(row for row in data.all_rows(self.published)
                    if row["standing"] == standing and "command" in row)

    def assert_reported(self, sentence):
        self.assertIn(sentence, "\n".join(data.published_problems(self.published)))

    def test_a_row_needs_a_source_a_standing_and_a_command(self):
        row = self.row("judged")
        row.update(source="hearsay", standing="good", command="")
        self.assert_reported("which is not in 'sources'")
        self.assert_reported("has the standing 'good'")
        self.assert_reported("has no command")

    def test_a_row_that_is_not_judged_says_why(self):
        del self.row("reported")["why"]
        self.assert_reported("a reported row needs 'why'")

    def test_no_row_is_judged_that_a_constant_was_fitted_on(self):
        row = self.row("judged")
        self.published["calibrated_by"]["mli_matmul"].append(row["id"])
        self.assert_reported(f"{row['id']}: is judged, but a constant was fitted on it")

    def test_no_row_is_judged_if_a_constant_was_fitted_on_its_source(self):
        row = self.row("judged")
        row["source"] = "mli"
        self.assert_reported(f"{row['id']}: is judged, but a constant was fitted on it")

    def test_a_ratio_is_judged_only_if_both_rows_may_be(self):
        ratio = next(row for row in data.all_rows(self.published) if row["value"] == "ratio")
        ratio.update(standing="judged", of=["mli.bert128.bf16.rate", "mli.bert128.tf32.rate"])
        self.assert_reported(f"{ratio['id']}: is judged, but a constant was fitted on it")

    def test_every_source_of_a_constant_says_which_rows_it_used(self):
        del self.published["calibrated_by"]["mli_class"]
        self.assert_reported("calibrated_by lacks 'mli_class' of assets/")

    def test_a_constant_cannot_hide_a_source_that_its_text_names(self):
        self.published["calibrated_by"]["mli_class"] = []
        self.assert_reported("the constant source 'mli_class' names mli")

    def test_no_flag_makes_a_fitted_row_judged(self):
        row = self.row("judged")
        row.update(source="ivanov", exact="counted, not fitted")
        self.assert_reported(f"{row['id']}: is judged, but a constant was fitted on it")

    def test_a_row_that_an_environment_was_chosen_to_match_is_not_judged(self):
        row = self.row("judged")
        self.published["calibrated_by"]["tempo-2022.ddp_buckets"].append(row["id"])
        self.assert_reported(f"{row['id']}: is judged, but a constant was fitted on it")

    def test_a_choice_must_be_a_field_of_an_existing_environment(self):
        self.published["calibrated_by"]["tempo-2022.colour"] = []
        self.assert_reported("calibrated_by has 'tempo-2022.colour'")

    def test_judged_and_calibration_rows_are_in_groups_of_their_own(self):
        group = next(one for one in self.published["groups"] if one["id"] == "rate")
        group["rows"].append(self.row("calibration"))
        self.assert_reported("rate: has both judged and calibration rows")

    def test_a_changed_command_needs_a_new_prediction(self):
        self.row("judged")["command"] += " --budget 8GiB"
        problems = data.predicted_problems(self.published, self.predicted)
        self.assertIn("was predicted by another command", "\n".join(problems))

    def test_changed_assets_or_another_version_need_new_predictions(self):
        self.assertEqual(data.made_with_problems(self.predicted), [])
        for name in ("version", *data.ASSETS):
            changed = copy.deepcopy(self.predicted)
            changed["made_with"][name] = "0"
            self.assertIn(name if name != "version" else "version of the program",
                          "\n".join(data.made_with_problems(changed)))

    def test_ratios_and_closed_forms_do_not_count_as_published_figures(self):
        rows = data.all_rows(self.published)
        count = data.published_count(self.published)
        self.assertLess(count, len(rows))
        self.row("closed form")["standing"] = "reported"
        self.assertEqual(data.published_count(self.published), count + 1)
        self.assertIn("CHANGELOG.md must say",
                      "\n".join(data.changelog_problems(self.published)))

    def test_every_constant_of_a_source_is_replaced_or_listed_as_not_replaced(self):
        mli = next(one for one in self.published["leave_out"] if one["id"] == "mli")
        gone, stays = data.left_out_constants(self.published, mli)
        self.assertIn("bandwidth rtx3090ti", gone)
        self.assertIn("efficiencies column_reduction", stays)
        del mli["calibration"]["bandwidth"]
        self.assertIn("bandwidth rtx3090ti", data.left_out_constants(self.published, mli)[1])

    def test_the_goal_is_missed_if_a_batch_that_ran_is_predicted_not_to_fit(self):
        book = Book(self.published, self.predicted)
        self.assertIn("tempo.fp32.tempo.rate", [row["id"] for row in book.ran()])
        for row in book.ran():
            self.predicted["rows"][row["id"]]["value"] = 1.0
        row = book.ran()[0]
        self.assertEqual(self.fit_line()[3], "met")
        self.predicted["rows"][row["id"]]["value"] = None
        result = f"{len(book.ran()) - 1} of {len(book.ran())}; not {row['what']}"
        self.assertEqual(self.fit_line()[2:], (result, "**missed**"))

    def fit_line(self):
        return list(page.memory_lines(Book(self.published, self.predicted)))[1]

    def test_goals_without_judged_rows_are_not_judged(self):
        verdicts = {line[0]: line[3] for line in page.goal_lines(Book(self.published,
                                                                      self.predicted))}
        for begin in ("Largest batch", "Peak memory", "The same, without the constants of"):
            name = next(one for one in verdicts if one.startswith(begin))
            self.assertEqual(verdicts[name], "not judged")

    def test_errors_of_times_are_as_planner_md_says(self):
        """It says "typically within 10 %, at worst 30 %" of judged and calibration rows."""
        book = Book(self.published, self.predicted)
        sizes = sorted(abs(error) for error in book.errors(book.judged("rate+fit_rate+fit_layer")))
        self.assertLess(sizes[len(sizes) // 2], 0.10)
        self.assertLess(sizes[-1], 0.30)
        for name in ("docs/dev/planner.md",):
            text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
            self.assertIn("typically within 10 %, at worst 30 %, of published ones", text)

    def test_larger_errors_of_rows_without_a_judgement_are_as_planner_md_says(self):
        book = Book(self.published, self.predicted)

        def worst(pattern):
            errors = book.errors([row for key, row in book.rows.items()
                                  if row["standing"] == "reported" and re.fullmatch(pattern, key)])
            return f"{max(map(abs, errors)) * 100:.0f} %"

        sentence = (f"up to {worst('flash[.].*')} for FlashAttention-2, "
                    f"{worst('mli[.].*[.](fwd|both)')} for layers on an A100 and "
                    f"{worst('ds[.].*')} for DeepSpeed's largest batches of 2020")
        for name in ("docs/dev/planner.md",):
            text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
            self.assertIn(sentence, text)

    def test_the_readme_has_the_one_statement_of_the_error(self):
        said = validation_headline.statement(self.published, self.predicted)
        text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        self.assertIn(" ".join(said.split()), text)

    def test_the_headline_follows_the_predictions(self):
        book = Book(self.published, self.predicted)
        rows = book.judged("rate")
        within = validation_headline.within_interval(book, rows)
        near = validation_headline.near(book.errors(rows))
        self.assertIn(f"{within} are within it",
                      validation_headline.headline(self.published, self.predicted))
        row = next(one for one in rows
                   if abs(book.error(one)) <= validation_headline.interval_of(one))
        self.predicted["rows"][row["id"]]["value"] = row["published"] * 1.5
        after = validation_headline.headline(self.published, self.predicted)
        self.assertIn(f"{within - 1} are within it", after)
        self.assertIn(f"| 41 | 0 | {near - 1} |", after)

    def test_a_ratio_with_a_goal_of_its_own_is_in_no_mean(self):
        book = Book(self.published, self.predicted)
        line = next(one for one in page.goal_lines(book) if one[0].startswith("Ratios between"))
        count = line[2].split(" ")[0]
        section = page.group_section(book, book.group("fit_ratio"))
        self.assertIn(f"{count} calibration rows except checkpointing: mean", section)

    def test_numbers_in_findings_follow_the_predictions(self):
        text = "{too_high:rate:16} {worst:x}"
        with self.assertRaisesRegex(data.DataError, "the unknown field 'worst'"):
            findings.filled_in(Book(self.published, self.predicted), text)
        with self.assertRaisesRegex(data.DataError, "the row 'x'"):
            findings.filled_in(Book(self.published, self.predicted), "{error:x}")
        for row in next(one for one in self.published["groups"] if one["id"] == "rate")["rows"]:
            self.predicted["rows"][row["id"]]["value"] = row["published"] * 1.5
        book = Book(self.published, self.predicted)
        rows = findings.rows_of(book, "rate", "16")
        self.assertEqual(findings.filled_in(book, "{too_high:rate:16}, {lean:rate:16}"),
                         f"{len(rows)} of {len(rows)}, +50.0 %")
        self.assertEqual(findings.filled_in(book, "{span:lambda[.]a10[.].*}"), "+50.0 %")

    def test_the_page_follows_the_predictions(self):
        row = self.row("judged")
        before = page.render(self.published, self.predicted)
        self.predicted["rows"][row["id"]]["value"] = row["published"] * 2
        self.assertNotEqual(page.render(self.published, self.predicted), before)


def op(name, start, end, **fields):
    return {"name": name, "scope": "h.0.attn.c_attn", "phase": "backward", "class": "contraction",
            "start_ns": str(start), "end_ns": str(end), "flop": "10", "read_words": "4",
            "written_words": "2", **fields}


class Reading(unittest.TestCase):
    def test_time_of_an_op_inside_another_one_counts_once(self):
        self.assertEqual(run.covered_ns([op("a", 0, 10), op("b", 2, 8), op("c", 20, 25)]), 15)

    def test_an_op_without_work_of_its_own_is_left_out(self):
        table = [op("dx", 0, 10), op("dw", 10, 30),
                 op("parent", 0, 30, flop="0", read_words="0", written_words="0")]
        select = {"phases": ["backward"], "parts": [{"scope": "h.0"}]}
        row = {"id": "x", "value": "ops.ms", "select": select, "scale": 0.5}
        self.assertEqual([one["name"] for one in run.selected_ops(row, table)], ["dx", "dw"])
        self.assertAlmostEqual(run.from_ops(row, table), 15e-6, places=4)

    def test_a_module_does_not_include_one_whose_name_begins_the_same(self):
        row = {"select": {"phases": ["backward"], "parts": [{"scope": "h.0.attn.c"}]}}
        self.assertEqual(list(run.selected_ops(row, [op("a", 0, 1)])), [])

    def test_selecting_no_op_is_an_error(self):
        row = {"id": "x", "value": "ops.ms", "select": {"phases": ["loss"], "parts": []}}
        with self.assertRaises(run.RunError):
            run.from_ops(row, [op("a", 0, 1)])

    def test_a_benchmark_of_a_layer_has_a_figure_for_each_pass(self):
        rows = [{"source": source, "pass": one, "model_tflops": tflops}
                for source, one, tflops in (("predicted", "forward", 10),
                                            ("published", "forward", 11),
                                            ("predicted", "forward and backward", 12))]
        for value, tflops in (("bench.forward", 10), ("bench.training", 12)):
            self.assertEqual(run.from_bench({"id": "x", "value": value}, {"rows": rows}), tflops)
        with self.assertRaisesRegex(run.RunError, "0 figures"):
            run.from_bench({"id": "x", "value": "bench.tflops"}, {"rows": rows})


class Running(unittest.TestCase):
    """Runs a program that always fails."""

    def predict(self, status, exit_code=1, **changes):
        """The prediction when the program fails and its plan file has this status."""
        plan = '{"rows": [{"status": "%s", "reason": "Batch 28 needs 2 GiB; batch 27 fits."}]}'
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            written = f"echo '{plan % status}' > plan.json\n" if status else ""
            program.write_text(f"#!/bin/sh\n{written}echo 'it needs more than fits' >&2\n"
                               f"exit {exit_code}\n")
            program.chmod(0o755)
            row = {"id": "x", "value": "plan.max_batch_size", "command": "plan", **changes}
            return run.Runner(str(program), 1).predict([row])["x"]

    def test_a_batch_that_does_not_fit_is_a_result(self):
        answer = self.predict("does_not_fit")
        self.assertIsNone(answer["value"])
        self.assertEqual(answer["note"], "Batch 28 needs 2 GiB; batch 27 fits.")

    def test_a_captured_step_that_runs_out_of_memory_is_a_result(self):
        rank = {"value": "rank.peak_allocated_bytes", "command": ["capture", "info"]}
        answer = self.predict(None, exit_code=3, **rank)
        self.assertIsNone(answer["value"])
        self.assertEqual(answer["note"], "the step needs more memory than the GPU has")
        with self.assertRaisesRegex(run.RunError, "it needs more than fits"):
            self.predict(None, exit_code=1, **rank)

    def test_any_other_failure_is_an_error_whatever_its_text(self):
        for status in ("not_supported", None):
            with self.assertRaisesRegex(run.RunError, "it needs more than fits"):
                self.predict(status)


if __name__ == "__main__":
    unittest.main()
