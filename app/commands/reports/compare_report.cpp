#include "app/commands/reports/compare_report.h"

#include "app/commands/console/json_values.h"
#include "app/commands/reports/phase_report.h"
#include "app/commands/reports/prediction_error_report.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/blocks/block_match.h"
#include "profiler/tables/signed_text.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/programs/compare_view.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace app {
namespace {

using namespace profiler;

constexpr std::size_t kMaxGroups = 40;

/// A row per metric: its text for each recipe, and beside it the change against the baseline.
class MetricTable {
public:
    explicit MetricTable(const CompareView& view) : view_(view) {
        table.columns.push_back({"", Align::kLeft});
        for (const CompareColumn& column : view.columns) {
            table.columns.push_back({column.recipe, Align::kRight});
            table.columns.push_back({"", Align::kRight});
        }
    }

    template <typename Text, typename ChangeOf>
    void add(std::string name, Text text, ChangeOf change) {
        std::vector<std::string> cells{std::move(name)};
        std::vector<Tone> tones{Tone::kNeutral};
        for (const CompareColumn& column : view_.columns) {
            const Change from_baseline = std::invoke(change, column);
            cells.push_back(or_no_value(std::invoke(text, column)));
            cells.push_back(from_baseline.text);
            tones.push_back(Tone::kNeutral);
            tones.push_back(from_baseline.tone);
        }
        const bool says_something =
            std::any_of(cells.begin() + 1, cells.end(),
                        [](const std::string& cell) { return !cell.empty() && cell != "–"; });
        if (!says_something) return;
        table.rows.push_back(std::move(cells));
        table.tones.push_back(std::move(tones));
    }

    TextTable table;

private:
    const CompareView& view_;
};

TextTable metric_table(const CompareView& view) {
    using Column = CompareColumn;
    const auto no_change = [](const Column&) { return Change{}; };
    // Of steps that were measured in turn, only the ratio of pairs is a change: print_step_ratios.
    const auto rate_change = [](const Column& column) {
        return column.was_in_turn ? Change{} : column.throughput_change;
    };
    MetricTable metrics(view);
    metrics.add("batch of the step", &Column::batch_text, no_change);
    metrics.add("peak allocated", &Column::peak_text, &Column::peak_change);
    metrics.add("peak lies in", &Column::peak_phase_text, no_change);
    metrics.add("saved for backward", &Column::saved_text, &Column::saved_change);
    metrics.add("step time", &Column::step_time_text, &Column::step_time_change);
    metrics.add("sequences/s", &Column::throughput_text, rate_change);
    metrics.add("largest batch", &Column::max_batch_text, &Column::max_batch_change);
    metrics.add("best sequences/s", &Column::best_text, &Column::best_change);
    return std::move(metrics.table);
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
                "Ratio of step times, from pairs of steps that ran in turn (below 1: faster)");
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
/// A site that an edit moved to another line is the same group, if no other site could be meant.
struct GroupedPeaks {
    std::vector<std::string> names;
    std::vector<std::map<std::string, BreakdownRow>> columns;
};

/// Groups that only the column `own` has, by their name without its line.
std::map<std::string, std::vector<std::string>> only_in(const GroupedPeaks& groups,
                                                        std::size_t own) {
    std::map<std::string, std::vector<std::string>> found;
    for (const auto& [name, row] : groups.columns[own]) {
        if (!groups.columns[1 - own].contains(name)) found[without_line(name)].push_back(name);
    }
    return found;
}

void join_moved_sites(GroupedPeaks& groups) {
    const auto before = only_in(groups, 0), after = only_in(groups, 1);
    for (const auto& [site, names] : before) {
        const auto moved = after.find(site);
        if (names.size() != 1 || moved == after.end() || moved->second.size() != 1) continue;
        const std::string& old_name = names.front();
        const std::string& new_name = moved->second.front();
        const std::string name = fmt::format("{}, now {}", old_name, new_name);
        for (std::size_t column = 0; column < 2; ++column) {
            auto row = groups.columns[column].extract(column == 0 ? old_name : new_name);
            row.key() = name;
            groups.columns[column].insert(std::move(row));
        }
        std::erase(groups.names, new_name);
        std::ranges::replace(groups.names, old_name, name);
    }
}

GroupedPeaks group_peaks(const Comparison& comparison, GroupBy by) {
    GroupedPeaks groups;
    for (const ComparisonColumn& column : comparison.columns) {
        auto& rows = groups.columns.emplace_back();
        if (!column.step_trace) continue;
        for (BreakdownRow& row :
             break_down(*column.step_trace, find_peak(*column.step_trace), by)) {
            if (std::find(groups.names.begin(), groups.names.end(), row.name) ==
                groups.names.end()) {
                groups.names.push_back(row.name);
            }
            rows.emplace(row.name, std::move(row));
        }
    }
    if (by == GroupBy::kLine && groups.columns.size() == 2) join_moved_sites(groups);
    return groups;
}

bool has_call_stacks(const Comparison& comparison) {
    return std::any_of(comparison.columns.begin(), comparison.columns.end(),
                       [](const auto& c) { return c.step_trace && !c.step_trace->stacks.empty(); });
}

int64_t bytes_of(const GroupedPeaks& groups, std::size_t column, const std::string& name) {
    const auto row = groups.columns[column].find(name);
    return row == groups.columns[column].end() ? 0 : row->second.size_bytes;
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
        return bytes == 0 ? std::string("–") : format_bytes(bytes);
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
            for (const BreakdownRow& group : groups) {
                row["groups"].push_back({{"name", group.name},
                                         {"size_bytes", group.size_bytes},
                                         {"count", group.count}});
            }
        }
        json["rows"].push_back(std::move(row));
    }
    return json;
}

}  // namespace app
