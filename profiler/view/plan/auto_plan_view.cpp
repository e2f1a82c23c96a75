#include "profiler/view/plan/auto_plan_view.h"

#include <algorithm>
#include <set>

namespace profiler {
namespace {

/// The points of the table, by index.
std::set<std::size_t> shown_points(const std::vector<FrontierPoint>& frontier) {
    constexpr std::size_t kShown = 6;
    std::set<std::size_t> shown;
    if (frontier.empty()) return shown;
    for (std::size_t i = 0; i < kShown; ++i) shown.insert(i * (frontier.size() - 1) / (kShown - 1));
    for (std::size_t i = 0; i < frontier.size(); ++i) {
        if (!frontier[i].is_chosen) continue;
        const std::size_t last = std::min(i + 1, frontier.size() - 1);
        for (std::size_t j = i - std::min<std::size_t>(i, 1); j <= last; ++j) shown.insert(j);
    }
    return shown;
}

}  // namespace

const std::vector<TableColumn<FrontierPoint>>& frontier_columns() {
    using Row = FrontierPoint;
    static const std::vector<TableColumn<Row>> kColumns{
        {"recipe", "recipe", Unit::kText, "", &Row::recipe},
        {"batch_size", "batch", Unit::kCount, "", &Row::batch_size},
        {"peak_allocated_bytes", "allocated", Unit::kBytes, "", &Row::peak_allocated_bytes},
        {"step_time_ns", "step", Unit::kNanoseconds, "", &Row::step_time_ns},
        {"throughput_sequences_per_s", "seq/s", Unit::kRate, "", &Row::sequences_per_s},
        {"simulated", "simulated", Unit::kYesNo, "", &Row::is_simulated},
        {"fits", "fits", Unit::kYesNo, "", &Row::fits},
        {"chosen", "chosen", Unit::kYesNo, "", &Row::is_chosen}};
    return kColumns;
}

TextTable frontier_table(const std::vector<FrontierPoint>& frontier) {
    using Row = FrontierPoint;
    const TableColumn<Row> chosen{
        .value = [](const Row& point) { return point.is_chosen ? "chosen" : ""; }};
    const TableColumn<Row> fits{.value = [](const Row& point) {
        return !point.is_simulated ? "estimate" : *point.fits ? "fits" : "does not fit";
    }};
    std::vector<Row> shown;
    for (const std::size_t i : shown_points(frontier)) shown.push_back(frontier[i]);
    const auto figures = pick(frontier_columns(), {"batch_size", "peak_allocated_bytes",
                                                   "step_time_ns", "throughput_sequences_per_s"});
    return text_table(join<Row>({{chosen}, figures, {fits}, pick(frontier_columns(), {"recipe"})}),
                      shown);
}

PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request) {
    Plan chosen;
    for (const AutoRow& row : plan.rows) chosen.rows.push_back(row.row);
    PlanView view = build_plan_view(chosen, request);
    if (!request.batch_size) view.batch = "the batch that was chosen";
    return view;
}

}  // namespace profiler
