"""Published and predicted figures side by side: their values, their errors and their text form."""

import statistics

import validation_data as data

# A predicted largest batch agrees with the published one if it is off by at most this.
BATCH_STEP = 1


def percent(value):
    """A share as a percentage with its sign, or "0.0 %" without one."""
    rounded = round(value * 100, 1)
    return f"{rounded:+.1f} %" if rounded else "0.0 %"


def magnitude(value):
    return f"{abs(value) * 100:.1f} %"


def number(value):
    """Four significant digits; whole numbers and numbers from 1000 on without decimals."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


def mean_and_worst(errors):
    sizes = [abs(error) for error in errors]
    return statistics.fmean(sizes), max(sizes)


def table(head, lines):
    rule = "|".join(["---"] * len(head))
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|",
                      *(f"| {' | '.join(cells)} |" for cells in lines)]) + "\n"


class Book:
    """Every row with what was published, what is predicted, and the error."""

    def __init__(self, published, predicted):
        self.published = published
        self.predicted = predicted
        self.rows = {row["id"]: row for row in data.all_rows(published)}

    def published_of(self, row):
        return data.published_value(row, self.rows)

    def predicted_of(self, row):
        """The predicted value, or None if the batch does not fit."""
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

    def standing(self, groups, *standings):
        """Rows of one group, or of several as in "a+b", that have one of the standings."""
        return [row for name in groups.split("+") for row in self.group(name)["rows"]
                if row["standing"] in standings]

    def judged(self, groups):
        """The judged or calibration rows of groups, without those that have no prediction."""
        return [row for row in self.standing(groups, "judged", "calibration")
                if self.error(row) is not None]

    def batch_is_near(self, row):
        return abs(self.predicted_of(row) - row["published"]) <= BATCH_STEP

    def ran(self):
        """One row for each batch that others ran: a published step of that size on that GPU."""
        by_command = {row["command"]: row for row in self.rows.values()
                      if row["value"].startswith("plan.") and "--batch" in row["command"]
                      and "ran_elsewhere" not in row and row["source"] != data.OURS}
        return list(by_command.values())

    def left_out(self, one):
        """Errors of a source's rows, as fitted and with some of its constants replaced."""
        answers = {key: value for key, value in self.predicted["left_out"][one["id"]].items()
                   if value is not None}
        fitted = self.errors([self.rows[key] for key in answers])
        without = [value / self.rows[key]["published"] - 1 for key, value in answers.items()]
        return fitted, without
