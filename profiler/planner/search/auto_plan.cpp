#include "profiler/planner/search/auto_plan.h"

#include "profiler/planner/plan_row.h"
#include "profiler/planner/search/auto_row.h"

#include <algorithm>

namespace profiler {

bool AutoPlan::has_ok_row() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const AutoRow& row) { return row.row.status == PlanStatus::kOk; });
}

AutoPlan make_auto_plan(const AutoRequest& request, const PlannerData& data,
                        const StepSource& source, const PlanProgress& progress) {
    AutoPlan plan;
    const PlanRequest& grid = request.plan;
    const std::size_t total = grid.workloads.size() * grid.gpus.size();
    InterpolationCache interpolations(source);
    for (const models::Workload& workload : grid.workloads) {
        for (const Gpu* gpu : grid.gpus) {
            if (progress) progress(plan.rows.size(), total, workload);
            AutoRow& row =
                plan.rows.emplace_back(AutoRow{.row = start_row(grid, data, workload, *gpu)});
            if (row.row.status != PlanStatus::kOk) continue;
            fill_auto_row(row, request, data, interpolations);
        }
    }
    return plan;
}

}  // namespace profiler
