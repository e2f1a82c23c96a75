#include "app/commands/reports/auto_plan_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/reports/plan_report.h"
#include "profiler/view/auto_plan_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

Json frontier_json(const FrontierView& frontier) {
    Json json = Json::array();
    for (const std::vector<PlanCell>& point : frontier.points) {
        Json& object = json.emplace_back();
        for (std::size_t i = 0; i < point.size(); ++i) {
            object[frontier.columns[i].id] = json_of(point[i]);
        }
    }
    return json;
}

}  // namespace

void print_auto_plan(Output& output, const AutoPlan& plan, const PlanView& view) {
    print_plan(output, view);
    for (const AutoRow& row : plan.rows) {
        if (row.sentence.empty()) continue;
        const PlanRow& chosen = row.row;
        output.heading(fmt::format(
            "{}, {}, {}, sequence length {}", chosen.gpu->id, chosen.workload.model.name,
            models::name_of(chosen.workload.precision), chosen.workload.seq_len));
        output.line(fmt::format("  {}", row.sentence));
        output.line(fmt::format("  {}", row.why));
        const TextTable table = build_frontier_view(row.frontier).table;
        const bool is_whole = table.rows.size() == row.frontier.size();
        output.heading(fmt::format("{}: recipes that no other recipe beats{}", chosen.gpu->id,
                                   is_whole ? ""
                                            : fmt::format(" ({} of {}; --json has all)",
                                                          table.rows.size(), row.frontier.size())));
        output.table(table);
    }
}

Json auto_plan_json(const AutoPlan& plan, const PlanView& view) {
    Json json = plan_json(view);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        const AutoRow& row = plan.rows[i];
        json["rows"][i]["sentence"] = row.sentence;
        json["rows"][i]["why"] = row.why;
        json["rows"][i]["candidates"] = row.num_candidates;
        json["rows"][i]["frontier"] = frontier_json(build_frontier_view(row.frontier));
    }
    return json;
}

std::string auto_plan_csv(const AutoPlan& plan, const PlanView& view) {
    constexpr std::array kRowColumns{"model",     "head",    "gpu",    "setup",
                                     "precision", "seq_len", "status", "reason"};
    std::vector<std::string> header(kRowColumns.begin(), kRowColumns.end());
    const FrontierView none = build_frontier_view({});
    for (const PlanColumn& column : none.columns) header.push_back(column.id);
    CsvWriter csv;
    csv.row(header);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        std::vector<std::string> row;
        for (const char* id : kRowColumns) row.push_back(csv_of(view.cell(i, id)));
        FrontierView frontier = build_frontier_view(plan.rows[i].frontier);
        if (frontier.points.empty()) {  // the recipe alone
            frontier.points.emplace_back(frontier.columns.size());
            frontier.points.front().front() = view.cell(i, "recipe");
        }
        for (const std::vector<PlanCell>& point : frontier.points) {
            std::vector<std::string> cells = row;
            for (const PlanCell& cell : point) cells.push_back(csv_of(cell));
            csv.row(cells);
        }
    }
    return csv.take();
}

}  // namespace app
