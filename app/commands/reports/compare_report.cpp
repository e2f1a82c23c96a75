#include "app/commands/reports/compare_report.h"

#include "app/commands/console/json_values.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/compare/prediction_error.h"
#include "profiler/analysis/compare/same_lines.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/programs/compare_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace app {
namespace {

using namespace profiler;

constexpr std::size_t kMaxGroups = 40;

/// A row per figure: its text for each recipe, and beside it the change against the baseline. What
/// no recipe has is left out.
TextTable metric_table(const CompareView& view) {
    TextTable table{.columns = {{"", Align::kLeft}}};
    for (const CompareColumn& column : view.columns) {
        table.columns.push_back({column.recipe, Align::kRight});
        table.columns.push_back({"", Align::kRight});
    }
    for (const CompareFigure& figure : compare_figures()) {
        if (figure.name.empty()) continue;
        std::vector<std::string> cells{figure.name};
        std::vector<Tone> tones{Tone::kNeutral};
        for (const CompareColumn& column : view.columns) {
            const Change change = figure.change ? figure.change(column) : Change();
            cells.push_back(or_no_value(figure.text(column)));
            cells.push_back(change.text);
            tones.push_back(Tone::kNeutral);
            tones.push_back(change.tone);
        }
        const bool says_something =
            std::any_of(cells.begin() + 1, cells.end(),
                        [](const std::string& cell) { return !cell.empty() && cell != kNoValue; });
        if (!says_something) continue;
        table.rows.push_back(std::move(cells));
        table.tones.push_back(std::move(tones));
    }
    return table;
}

Style ratio_style(Tone tone) {
    if (tone == Tone::kNeutral) return Style::kPlain;
    return tone == Tone::kGood ? Style::kGood : Style::kBad;
}

/// A line for each recipe whose steps were measured in turn with those of its baseline.
void print_step_ratios(Output& output, const Comparison& comparison, const CompareView& view) {
    std::vector<std::string> too_few;
    bool has_heading = false;
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const CompareColumn& column = view.columns[i];
        if (!column.was_in_turn) continue;
        if (column.step_ratio_text.empty()) {
            too_few.push_back(column.recipe);
            continue;
        }
        if (!std::exchange(has_heading, true)) {
            output.heading(
                "Ratio of step times, from pairs of steps that ran alternately (below 1: faster)");
        }
        output.line(fmt::format(
            "  {} / {}: {}", column.recipe, view.columns[comparison.columns[i].baseline].recipe,
            output.styled(column.step_ratio_text, ratio_style(column.step_ratio_tone))));
    }
    const bool sentence_says_it = !has_heading && !comparison.sentence.empty();
    if (too_few.empty() || sentence_says_it) return;
    output.line();
    output.line(
        fmt::format("Too few pairs of steps to compare the step times of {}: capture {} "
                    "steps or more (--steps).",
                    join_with_and(too_few), PairedRatio::kFewestPairs));
}

/// The peaks of all columns by group. A group stands where the first column that has it lists it.
struct GroupedPeaks {
    explicit GroupedPeaks(std::size_t num_columns) : columns(num_columns) {}

    std::vector<std::string> names;
    std::vector<std::map<std::string, int64_t>> columns;  // bytes of each group

    void add(std::size_t column, const std::string& name, int64_t bytes) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
        columns[column][name] += bytes;
    }
};

using PeakRows = std::vector<BreakdownRow>;

/// Of a pair the name tells both places: "fa/model.py:13 forward, now fb/model.py:15 forward".
std::string name_of_both(const std::string& before, const std::string& after) {
    const std::string_view short_name = without_folder(before);
    if (before == after) return before;
    return short_name == without_folder(after) ? std::string(short_name)
                                               : fmt::format("{}, now {}", before, after);
}

/// Lines that an edit moved, or a copy to another folder, are one group. A new line may have the
/// number of an old one.
GroupedPeaks group_lines(const std::vector<PeakRows>& columns) {
    GroupedPeaks groups(columns.size());
    std::vector<std::string> names;  // of the first column
    for (const BreakdownRow& row : columns.front()) names.push_back(row.name);
    std::vector<std::vector<std::size_t>> same(columns.size());
    for (std::size_t i = 1; i < columns.size(); ++i) {
        same[i] = find_same_lines(columns.front(), columns[i]);
        for (std::size_t row = 0; columns.size() == 2 && row < same[i].size(); ++row) {
            if (same[i][row] == kNoLine) continue;
            std::string& name = names[same[i][row]];
            name = name_of_both(name, columns[i][row].name);
        }
    }
    for (std::size_t row = 0; row < names.size(); ++row) {
        groups.add(0, names[row], columns.front()[row].size_bytes);
    }
    for (std::size_t i = 1; i < columns.size(); ++i) {
        for (std::size_t row = 0; row < columns[i].size(); ++row) {
            const BreakdownRow& line = columns[i][row];
            const bool is_taken = std::ranges::find(names, line.name) != names.end();
            const std::string own = is_taken ? "now " + line.name : line.name;
            groups.add(i, same[i][row] == kNoLine ? own : names[same[i][row]], line.size_bytes);
        }
    }
    return groups;
}

GroupedPeaks group_peaks(const Comparison& comparison, GroupBy by) {
    std::vector<PeakRows> columns;
    for (const ComparisonColumn& column : comparison.columns) {
        PeakRows& rows = columns.emplace_back();
        if (!column.step_trace) continue;
        rows = break_down(*column.step_trace, find_peak(*column.step_trace), by);
    }
    if (by == GroupBy::kLine) return group_lines(columns);
    GroupedPeaks groups(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
        for (const BreakdownRow& row : columns[i]) groups.add(i, row.name, row.size_bytes);
    }
    return groups;
}

bool has_call_stacks(const Comparison& comparison) {
    return std::ranges::any_of(comparison.columns, [](const auto& c) {
        return c.step_trace && !c.step_trace->stacks.empty();
    });
}

int64_t bytes_of(const GroupedPeaks& groups, std::size_t column, const std::string& name) {
    const auto row = groups.columns[column].find(name);
    return row == groups.columns[column].end() ? 0 : row->second;
}

/// Of two columns the table has the change too, and the largest changes come first.
TextTable group_table(const Comparison& comparison, GroupBy by) {
    GroupedPeaks groups = group_peaks(comparison, by);
    const bool is_pair = groups.columns.size() == 2;
    const auto change = [&](const std::string& name) {
        return bytes_of(groups, 1, name) - bytes_of(groups, 0, name);
    };
    if (is_pair) {
        std::ranges::stable_sort(groups.names, std::greater(),
                                 [&](const std::string& name) { return std::abs(change(name)); });
    }
    TextTable table;
    table.columns.push_back({std::string(name_of(by)), Align::kLeft});
    for (const ComparisonColumn& column : comparison.columns) {
        table.columns.push_back({column.recipe, Align::kRight});
    }
    if (is_pair) table.columns.push_back({"Change", Align::kRight});
    const auto size_text = [](int64_t bytes) {
        return bytes == 0 ? std::string(kNoValue) : format_bytes(bytes);
    };
    const auto add = [&](std::string name, const std::vector<int64_t>& bytes) {
        auto& row = table.rows.emplace_back(1, std::move(name));
        for (const int64_t of_column : bytes) row.push_back(size_text(of_column));
        if (is_pair) row.push_back(change_in_bytes(bytes[1] - bytes[0]));
    };
    std::vector<int64_t> rest(groups.columns.size(), 0), total = rest;
    for (std::size_t i = 0; i < groups.names.size(); ++i) {
        std::vector<int64_t> bytes;
        for (std::size_t column = 0; column < groups.columns.size(); ++column) {
            bytes.push_back(bytes_of(groups, column, groups.names[i]));
            total[column] += bytes.back();
            if (i >= kMaxGroups) rest[column] += bytes.back();
        }
        if (i < kMaxGroups) add(groups.names[i], bytes);
    }
    if (groups.names.size() > kMaxGroups) {
        add(fmt::format("{} more", groups.names.size() - kMaxGroups), rest);
    }
    if (!groups.names.empty()) add("total", total);
    return table;
}

// ---- the peak of each phase ---------------------------------------------------------------------

PhasePeaks peaks_of(const ComparisonColumn& column) {
    if (column.step_trace) return find_phase_peaks(*column.step_trace);
    PhasePeaks none;
    none.fill(-1);
    return none;
}

std::string change_text(int64_t bytes, int64_t baseline_bytes) {
    if (bytes < 0 || baseline_bytes <= 0 || bytes == baseline_bytes) return {};
    const double ratio = static_cast<double>(bytes) / static_cast<double>(baseline_bytes);
    return format_percent(ratio - 1, true);
}

/// The peak of each phase, a column per recipe, with the change against its baseline.
void print_phase_peaks(Output& output, const Comparison& comparison) {
    std::vector<PhasePeaks> peaks;
    TextTable table;
    table.columns.push_back({"phase", Align::kLeft});
    for (const ComparisonColumn& column : comparison.columns) {
        peaks.push_back(peaks_of(column));
        table.columns.push_back({column.recipe, Align::kRight});
        table.columns.push_back({"", Align::kRight});
    }
    for (std::size_t kind = 0; kind < kPhaseKindNames.size(); ++kind) {
        std::vector<std::string> cells{std::string(kPhaseKindNames[kind])};
        for (std::size_t i = 0; i < peaks.size(); ++i) {
            const int64_t bytes = peaks[i][kind];
            const int64_t baseline = peaks[comparison.columns[i].baseline][kind];
            cells.push_back(bytes < 0 ? kNoValue : format_bytes(bytes));
            cells.push_back(change_text(bytes, baseline));
        }
        const bool is_known =
            std::ranges::any_of(peaks, [&](const PhasePeaks& column) { return column[kind] >= 0; });
        if (is_known) table.rows.push_back(std::move(cells));
    }
    output.heading("Peak of each phase");
    if (table.rows.empty()) {
        output.line(
            "No file has phases: a memory snapshot gets them when it is joined with the trace of "
            "the profiler (temposcope import).");
    } else {
        output.table(table);
    }
}

/// {"forward": bytes, ...} of a column; `null` for a phase that it does not have.
nlohmann::json phase_peaks_json(const ComparisonColumn& column) {
    const PhasePeaks peaks = peaks_of(column);
    nlohmann::json json = nlohmann::json::object();
    for (std::size_t kind = 0; kind < peaks.size(); ++kind) {
        json[std::string(kPhaseKindNames[kind])] =
            peaks[kind] < 0 ? nlohmann::json(nullptr) : nlohmann::json(peaks[kind]);
    }
    return json;
}

// ---- the error of predictions -------------------------------------------------------------------

struct Pair {
    const ComparisonColumn* predicted;
    const ComparisonColumn* measured;
    PredictionError result;
};

std::vector<Pair> pairs_of(const Comparison& comparison) {
    std::vector<Pair> pairs;
    for (const ComparisonColumn& predicted : comparison.columns) {
        if (!predicted.step_trace || predicted.source != Source::kPredicted) continue;
        for (const ComparisonColumn& measured : comparison.columns) {
            if (!measured.step_trace || measured.source == Source::kPredicted) continue;
            // Traces of different steps or recipes have no prediction error.
            auto result = explain_prediction_error(*predicted.step_trace, *measured.step_trace);
            if (result) pairs.push_back({&predicted, &measured, std::move(*result)});
        }
    }
    return pairs;
}

TextTable gap_table(const PredictionError& result) {
    TextTable table{.columns = {{"", Align::kLeft},
                                {"predicted", Align::kRight},
                                {"measured", Align::kRight},
                                {"difference", Align::kRight}}};
    const auto add = [&](std::string name, int64_t predicted, int64_t measured) {
        table.rows.push_back({std::move(name), format_bytes(predicted), format_bytes(measured),
                              change_in_bytes(predicted - measured)});
    };
    add(fmt::format("{} tensors of both", format_count(result.matched_count)), result.matched_bytes,
        result.matched_bytes);
    for (std::size_t i = 0; i < result.gaps.size(); ++i) {
        const Gap& gap = result.gaps[i];
        if (gap.predicted_bytes == 0 && gap.measured_bytes == 0) continue;
        add(std::string(kGapCauseNames[i]), gap.predicted_bytes, gap.measured_bytes);
    }
    add(result.of_reserved ? "reserved at most" : "allocated at most", result.predicted_bytes,
        result.measured_bytes);
    return table;
}

TextTable tensor_table(const PredictionError& result) {
    constexpr std::size_t kMostTensors = 10;
    TextTable table{.columns = {{"held by one only", Align::kLeft},
                                {"class", Align::kLeft},
                                {"in", Align::kLeft},
                                {"size", Align::kRight}}};
    for (std::size_t i = 0; i < std::min(result.tensors.size(), kMostTensors); ++i) {
        const UnmatchedTensor& tensor = result.tensors[i];
        table.rows.push_back({tensor.name, std::string(name_of(tensor.category)),
                              tensor.is_predicted ? "prediction" : "measurement",
                              format_bytes(tensor.size_bytes)});
    }
    if (result.tensors.size() > kMostTensors) {
        const auto rest = static_cast<int64_t>(result.tensors.size() - kMostTensors);
        table.rows.push_back({format_count(rest) + " more", "", "", ""});
    }
    return table;
}

/// Prints nothing if no predicted step has a measured one.
void print_prediction_errors(Output& output, const Comparison& comparison) {
    for (const Pair& pair : pairs_of(comparison)) {
        output.heading(fmt::format("{}: {}", pair.predicted->recipe, pair.result.sentence));
        output.table(gap_table(pair.result));
        if (pair.result.tensors.empty()) continue;
        output.line();
        output.table(tensor_table(pair.result));
    }
}

nlohmann::json prediction_errors_json(const Comparison& comparison) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Pair& pair : pairs_of(comparison)) {
        const PredictionError& result = pair.result;
        nlohmann::json gaps = nlohmann::json::object();
        for (std::size_t i = 0; i < result.gaps.size(); ++i) {
            gaps[std::string(kGapCauseNames[i]) + "_bytes"] = result.gaps[i].difference_bytes();
        }
        nlohmann::json tensors = nlohmann::json::array();
        for (const UnmatchedTensor& tensor : result.tensors) {
            tensors.push_back({{"name", tensor.name},
                               {"role", name_of(tensor.category)},
                               {"predicted", tensor.is_predicted},
                               {"size_bytes", tensor.size_bytes}});
        }
        rows.push_back({{"recipe", pair.predicted->recipe},
                        {"predicted_file", pair.predicted->files.front()},
                        {"measured_file", pair.measured->files.front()},
                        {"of_reserved", result.of_reserved},
                        {"predicted_bytes", result.predicted_bytes},
                        {"measured_bytes", result.measured_bytes},
                        {"matched_bytes", result.matched_bytes},
                        {"matched_tensors", result.matched_count},
                        {"gaps", std::move(gaps)},
                        {"tensors", std::move(tensors)},
                        {"sentence", result.sentence}});
    }
    return rows;
}

nlohmann::json ratio_json(const std::optional<PairedRatio>& ratio) {
    if (!ratio) return nullptr;
    return {{"median", ratio->median},
            {"low", ratio->low},
            {"high", ratio->high},
            {"pairs", ratio->pairs}};
}

nlohmann::json column_json(const Comparison& comparison, const ComparisonColumn& column) {
    nlohmann::json json{
        {"recipe", column.recipe},
        {"source", name_of(column.source)},
        {"device", column.device},
        {"baseline", comparison.columns[column.baseline].recipe},
        {"differs_in", column.differs_in},
        {"batch_size", known_size(column.batch_size)},
        {"steps", column.steps},
        {"peak_allocated_bytes", column.peak_allocated_bytes},
        {"peak_reserved_bytes", column.peak_reserved_bytes},
        {"peak_phase",
         column.peak_phase ? nlohmann::json(name_of(*column.peak_phase)) : nlohmann::json(nullptr)},
        {"peak_by_phase", phase_peaks_json(column)},
        {"peak_by_class", by_class_json(column.peak_by_category)},
        {"kept_bytes", saved_bytes_json(column)},
        {"step_time_ns", column.step_time_ns},
        {"step_time_ratio", ratio_json(column.step_ratio)},
        {"throughput_sequences_per_s", known_size(column.sequences_per_s)},
        {"loss", or_null(column.loss)},
        {"best_batch_size", or_null(column.best_batch_size)},
        {"best_throughput_sequences_per_s", or_null(column.best_sequences_per_s)},
        {"memory_limit_bytes", column.memory_limit_bytes},
        {"curve", json_rows(sweep_data(column.curve))},
        {"files", column.files}};
    json.update(max_batch_json(column));
    return json;
}

}  // namespace

void print_comparison(Output& output, const Comparison& comparison, std::optional<GroupBy> by,
                      const std::vector<std::string>& charts, bool shows_phases) {
    const CompareView view = build_compare_view(comparison);
    if (!view.workload.empty()) output.line(output.styled(view.workload, Style::kBold));
    if (!view.source.empty()) output.line(output.styled(view.source, Style::kDim));
    output.line();
    output.table(metric_table(view));
    print_step_ratios(output, comparison, view);
    if (shows_phases) print_phase_peaks(output, comparison);
    if (by) {
        output.heading("At the peak");
        if (*by == GroupBy::kLine && !has_call_stacks(comparison)) {
            output.line(kNoCallStacks);
        } else {
            output.table(group_table(comparison, *by));
        }
    }
    if (!comparison.sentence.empty()) {
        output.line();
        output.line(comparison.sentence);
    }
    print_prediction_errors(output, comparison);
    if (!comparison.notes.empty()) output.line();
    for (const std::string& note : comparison.notes) {
        output.line(output.styled("note: ", Style::kWarning) + note);
    }
    if (!charts.empty()) output.line();
    for (const std::string& chart : charts) output.line("wrote " + chart);
}

nlohmann::json comparison_json(const Comparison& comparison, std::optional<GroupBy> by,
                               const std::vector<std::string>& charts) {
    nlohmann::json json{{"workload", comparison.workload},
                        {"baseline", comparison.columns.front().recipe},
                        {"sentence", comparison.sentence},
                        {"notes", comparison.notes},
                        {"charts", charts},
                        {"reconciliations", prediction_errors_json(comparison)},
                        {"rows", nlohmann::json::array()}};
    for (const ComparisonColumn& column : comparison.columns) {
        nlohmann::json row = column_json(comparison, column);
        if (by) {
            row["groups"] = nlohmann::json::array();
            const auto groups = column.step_trace ? break_down(*column.step_trace,
                                                               find_peak(*column.step_trace), *by)
                                                  : std::vector<BreakdownRow>();
            for (const BreakdownRow& group : groups) row["groups"].push_back(group_json(group));
        }
        json["rows"].push_back(std::move(row));
    }
    return json;
}

}  // namespace app
