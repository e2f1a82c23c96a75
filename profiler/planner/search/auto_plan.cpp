#include "profiler/planner/search/auto_plan.h"

#include "profiler/planner/plan_row.h"
#include "profiler/planner/search/auto_row.h"

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
    // GPUs under setups whose optimizers allocate the same share one traced step.
    std::vector<std::pair<models::Workload, BatchInterpolation>> interpolations;
    for (const models::Workload& workload : grid.workloads) {
        for (const Gpu* gpu : grid.gpus) {
            if (progress) progress(plan.rows.size(), total, workload);
            AutoRow& row =
                plan.rows.emplace_back(AutoRow{.row = start_row(grid, data, workload, *gpu)});
            if (row.row.status != PlanStatus::kOk) continue;
            models::Workload traced = traced_workload(workload, *row.row.setup, data.calibration);
            auto known = std::find_if(interpolations.begin(), interpolations.end(),
                                      [&](const auto& one) { return one.first == traced; });
            if (known == interpolations.end()) {
                auto interpolation = BatchInterpolation::trace(traced, source);
                if (!interpolation) {
                    row.row.status = PlanStatus::kNotSupported;
                    row.row.reason = interpolation.error().message;
                    continue;
                }
                known = interpolations.insert(interpolations.end(),
                                              {std::move(traced), std::move(*interpolation)});
            }
            fill_auto_row(row, request, data, source, known->second);
        }
    }
    return plan;
}

}  // namespace profiler
