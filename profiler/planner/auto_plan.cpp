#include "profiler/planner/auto_plan.h"

#include "profiler/planner/auto_row.h"
#include "profiler/planner/plan_row.h"

#include <algorithm>
#include <utility>

namespace profiler {

bool AutoPlan::has_ok_row() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const AutoRow& row) { return row.row.status == PlanStatus::kOk; });
}

AutoPlan make_auto_plan(const AutoRequest& request, const PlannerData& data,
                        const MetaTraceSource& source, const PlanProgress& progress) {
    AutoPlan plan;
    const PlanRequest& grid = request.plan;
    const std::size_t total = grid.workloads.size() * grid.gpus.size();
    // Cards under setups whose optimizers allocate the same share one traced step.
    std::vector<std::pair<models::Workload, StepFamily>> families;
    for (const models::Workload& workload : grid.workloads) {
        for (const Gpu* gpu : grid.gpus) {
            if (progress) progress(plan.rows.size(), total, workload);
            AutoRow& row =
                plan.rows.emplace_back(AutoRow{.row = start_row(grid, data, workload, *gpu)});
            if (row.row.status != PlanStatus::kOk) continue;
            models::Workload traced = traced_workload(workload, *row.row.setup, data.calibration);
            auto known = std::find_if(families.begin(), families.end(),
                                      [&](const auto& one) { return one.first == traced; });
            if (known == families.end()) {
                auto family = StepFamily::trace(traced, source);
                if (!family) {
                    row.row.status = PlanStatus::kNotSupported;
                    row.row.reason = family.error().message;
                    continue;
                }
                known = families.insert(families.end(), {std::move(traced), std::move(*family)});
            }
            fill_auto_row(row, request, data, source, known->second);
        }
    }
    return plan;
}

}  // namespace profiler
