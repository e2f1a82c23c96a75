#include "app/commands/reports/auto_plan_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/reports/plan_report.h"
#include "app/commands/reports/reports.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

Plan plan_of(const AutoPlan& searched) {
    Plan plan;
    for (const AutoRow& row : searched.rows) plan.rows.push_back(row.row);
    return plan;
}

Json frontier_json(const std::vector<FrontierPoint>& frontier) {
    Json json = Json::array();
    for (const FrontierPoint& point : frontier) {
        json.push_back({{"recipe", point.recipe},
                        {"batch_size", point.batch_size},
                        {"peak_allocated_bytes", point.peak_allocated_bytes},
                        {"step_time_ns", point.step_time_ns},
                        {"throughput_sequences_per_s", point.sequences_per_s},
                        {"simulated", point.is_simulated},
                        {"fits", point.fits ? Json(*point.fits) : Json()},
                        {"chosen", point.is_chosen}});
    }
    return json;
}

/// The places that people see: the ends, the chosen point and its neighbours, and some between.
std::set<std::size_t> shown_points(const std::vector<FrontierPoint>& frontier) {
    constexpr std::size_t kShown = 10;
    std::set<std::size_t> shown;
    if (frontier.empty()) return shown;
    for (std::size_t i = 0; i < kShown; ++i) {
        shown.insert(i * (frontier.size() - 1) / (kShown - 1));
    }
    for (std::size_t i = 0; i < frontier.size(); ++i) {
        if (!frontier[i].is_chosen) continue;
        for (std::size_t j = i - std::min<std::size_t>(i, 1); j < frontier.size() && j <= i + 1;) {
            shown.insert(j++);
        }
    }
    return shown;
}

void print_frontier(Output& output, const AutoRow& row) {
    const std::set<std::size_t> shown = shown_points(row.frontier);
    output.heading(fmt::format(
        "{}: recipes that no other one beats{}", row.row.gpu->id,
        shown.size() < row.frontier.size()
            ? fmt::format(" ({} of {}; all with --json)", shown.size(), row.frontier.size())
            : ""));
    TextTable table{.columns = {{"", Align::kLeft, {}},
                                {"batch", Align::kRight, {}},
                                {"allocated", Align::kRight, {}},
                                {"step", Align::kRight, {}},
                                {"seq/s", Align::kRight, {}},
                                {"", Align::kLeft, {}},
                                {"recipe", Align::kLeft, {}}}};
    for (const std::size_t i : shown) {
        const FrontierPoint& point = row.frontier[i];
        table.rows.push_back({point.is_chosen ? "chosen" : "", format_count(point.batch_size),
                              format_bytes(point.peak_allocated_bytes),
                              format_duration(point.step_time_ns),
                              fmt::format("{:.1f}", point.sequences_per_s),
                              !point.is_simulated ? "estimate"
                              : *point.fits       ? "fits"
                                                  : "does not fit",
                              point.recipe});
    }
    output.table(table);
}

}  // namespace

void print_auto_plan(Output& output, const AutoPlan& plan) {
    print_plan(output, plan_of(plan));
    for (const AutoRow& row : plan.rows) {
        if (row.sentence.empty()) continue;
        output.heading(fmt::format(
            "{}, {}, {}, sequence length {}", row.row.gpu->id, row.row.workload.model.name,
            models::name_of(row.row.workload.precision), row.row.workload.seq_len));
        output.line(fmt::format("  {}", row.sentence));
        output.line(fmt::format("  {}", row.why));
        print_frontier(output, row);
    }
}

Json auto_plan_json(const AutoPlan& plan, const PlanRequest& request) {
    Json json = plan_json(plan_of(plan), request);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        const AutoRow& row = plan.rows[i];
        json["rows"][i]["sentence"] = row.sentence;
        json["rows"][i]["why"] = row.why;
        json["rows"][i]["candidates"] = row.num_candidates;
        json["rows"][i]["frontier"] = frontier_json(row.frontier);
    }
    return json;
}

std::string auto_plan_csv(const AutoPlan& plan) {
    CsvWriter csv;
    csv.row("model", "head", "gpu", "setup", "precision", "seq_len", "status", "reason", "recipe",
            "batch_size", "peak_allocated_bytes", "step_time_ns", "throughput_sequences_per_s",
            "simulated", "fits", "chosen");
    const auto yes_or_no = [](bool value) { return value ? "true" : "false"; };
    for (const AutoRow& searched : plan.rows) {
        const PlanRow& row = searched.row;
        const auto line = [&](const auto&... cells) {
            csv.row(row.workload.model.name, models::name_of(row.workload.head), row.gpu->id,
                    row.setup->id, models::name_of(row.workload.precision), row.workload.seq_len,
                    name_of(row.status), row.reason, cells...);
        };
        if (searched.frontier.empty()) {
            line(row.workload.recipe_name, "", "", "", "", "", "", "");
        }
        for (const FrontierPoint& point : searched.frontier) {
            line(point.recipe, point.batch_size, point.peak_allocated_bytes, point.step_time_ns,
                 point.sequences_per_s, yes_or_no(point.is_simulated),
                 point.fits ? yes_or_no(*point.fits) : "", yes_or_no(point.is_chosen));
        }
    }
    return csv.take();
}

}  // namespace app
