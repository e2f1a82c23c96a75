#include "profiler/view/auto_plan_view.h"

#include <algorithm>
#include <set>

namespace profiler {
namespace {

const std::vector<PlanColumn> kColumns{
    {.id = "recipe", .title = "recipe"},
    {.id = "batch_size", .title = "batch", .unit = PlanUnit::kCount},
    {.id = "peak_allocated_bytes", .title = "allocated", .unit = PlanUnit::kBytes},
    {.id = "step_time_ns", .title = "step", .unit = PlanUnit::kNanoseconds},
    {.id = "throughput_sequences_per_s", .title = "seq/s", .unit = PlanUnit::kSequencesPerSecond},
    {.id = "simulated", .title = "simulated", .unit = PlanUnit::kYesNo},
    {.id = "fits", .title = "fits", .unit = PlanUnit::kYesNo},
    {.id = "chosen", .title = "chosen", .unit = PlanUnit::kYesNo}};

std::vector<PlanCell> cells_of(const FrontierPoint& point) {
    return {point.recipe,
            point.batch_size,
            point.peak_allocated_bytes,
            point.step_time_ns,
            point.sequences_per_s,
            point.is_simulated,
            point.fits ? PlanCell(*point.fits) : PlanCell(),
            point.is_chosen};
}

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

TextTable table_of(const std::vector<FrontierPoint>& frontier) {
    TextTable table{.columns = {{"", Align::kLeft, {}}}};
    for (std::size_t i = 1; i < 5; ++i) {
        table.columns.push_back({kColumns[i].title, Align::kRight, {}});
    }
    table.columns.push_back({"", Align::kLeft, {}});
    table.columns.push_back({kColumns[0].title, Align::kLeft, {}});
    for (const std::size_t i : shown_points(frontier)) {
        const FrontierPoint& point = frontier[i];
        const std::vector<PlanCell> cells = cells_of(point);
        std::vector<std::string>& texts = table.rows.emplace_back();
        texts.push_back(point.is_chosen ? "chosen" : "");
        for (std::size_t c = 1; c < 5; ++c) texts.push_back(text_of(kColumns[c].unit, cells[c]));
        texts.push_back(!point.is_simulated ? "estimate" : *point.fits ? "fits" : "does not fit");
        texts.push_back(point.recipe);
    }
    return table;
}

}  // namespace

FrontierView build_frontier_view(const std::vector<FrontierPoint>& frontier) {
    FrontierView view{.columns = kColumns, .table = table_of(frontier)};
    for (const FrontierPoint& point : frontier) view.points.push_back(cells_of(point));
    return view;
}

PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request) {
    Plan chosen;
    for (const AutoRow& row : plan.rows) chosen.rows.push_back(row.row);
    PlanView view = build_plan_view(chosen, request);
    if (!request.batch_size) view.batch = "the batch that was chosen";
    return view;
}

}  // namespace profiler
