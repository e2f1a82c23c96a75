#include "app/prediction/predictor.h"

#include "app/prediction/prediction_target.h"
#include "app/user/settings.h"
#include "app/user/usual_setup.h"
#include "models/config/validity.h"
#include "profiler/planner/data/gpu_support.h"

#include <algorithm>
#include <atomic>

namespace app {
namespace {

using namespace profiler;

/// Each worker sees every GPU of the catalogue as a device of its own.
std::vector<const Gpu*> all_gpus(const PlannerData& data) {
    std::vector<const Gpu*> gpus;
    for (const Gpu& gpu : data.gpus) gpus.push_back(&gpu);
    return gpus;
}

PlannerData load_data(std::optional<models::Error>& error) {
    auto data = load_planner_data(settings_folder());
    if (data) return std::move(*data);
    error = data.error();
    return built_in_planner_data();
}

/// A workload for each recipe that can run. Errors: none can.
models::Result<std::vector<models::Workload>> possible_workloads(const StepPlanRequest& request) {
    std::vector<models::Workload> workloads;
    std::optional<models::Error> first;
    for (const std::string& recipe : request.recipes) {
        auto workload = models::with_recipe(request.workload, recipe);
        if (workload) {
            workload->batch_size = 1;  // the plan finds the largest batch
            const auto valid = models::validate(*workload);
            if (valid) {
                workloads.push_back(std::move(*workload));
                continue;
            }
            if (!first) first = valid.error();
        } else if (!first) {
            first = workload.error();
        }
    }
    if (!workloads.empty()) return workloads;
    return tl::unexpected(first.value_or(models::Error{"There is no recipe to plan."}));
}

/// What the row of one workload depends on.
StepToTrace key_of(const StepPlanRequest& request, models::Workload workload) {
    workload.batch_size = request.batch_size.value_or(0);
    return {.workload = std::move(workload), .gpu = request.gpu};
}

bool any_does_not_fit(const Plan& plan) {
    return std::ranges::any_of(
        plan.rows, [](const PlanRow& row) { return row.status == PlanStatus::kDoesNotFit; });
}

/// The rows by the order of the workloads.
Plan in_order_of(const PlanRequest& request, Plan plan) {
    const auto place_of = [&](const PlanRow& row) {
        return std::ranges::find(request.workloads, row.workload);
    };
    std::ranges::stable_sort(
        plan.rows, [&](const PlanRow& x, const PlanRow& y) { return place_of(x) < place_of(y); });
    return plan;
}

/// Impossible recipes are left out as long as one is possible.
models::Result<PlanRequest> make_plan_request(const StepPlanRequest& request,
                                              const PlannerData& data) {
    auto workloads = possible_workloads(request);
    if (!workloads) return tl::unexpected(workloads.error());
    auto plan_request =
        profiler::make_plan_request(std::move(*workloads), {request.gpu}, usual_setup(), data);
    if (!plan_request) return plan_request;
    plan_request->batch_size = request.batch_size;
    plan_request->wants_memory_curve = true;  // always: then all who ask share the rows
    return plan_request;
}

}  // namespace

Predictor::Predictor()
    : data_(load_data(data_error_)),
      for_plans_(all_gpus(data_), TraceDetail::kForPlan),
      for_traces_(all_gpus(data_), TraceDetail::kForCapture) {}

void Predictor::cancel() {
    for_plans_.cancel();
    for_traces_.cancel();
}

models::Result<Plan> Predictor::plan(const StepPlanRequest& request, const Report& report,
                                     unsigned busy_cores) {
    if (data_error_) return tl::unexpected(*data_error_);
    auto plan_request = make_plan_request(request, data_);
    if (!plan_request) return tl::unexpected(plan_request.error());
    plan_request->busy_cores = busy_cores;
    PlanRequest unknown = *plan_request;
    Plan known = known_rows(request, unknown);
    if (unknown.workloads.empty()) return in_order_of(*plan_request, std::move(known));
    std::atomic<double> share = 0;
    const PlanProgress progress = [&](std::size_t done, std::size_t total, const auto&) {
        share = static_cast<double>(done) / static_cast<double>(total);
    };
    const StepSource fresh = for_plans_.source();
    const StepSource source = [&](const StepToTrace& step) -> models::Result<TracePointer> {
        if (report && !report(share)) return models::fail("The plan was cancelled.");
        if (!request.keeps_traces) return fresh(step);
        if (auto kept = traces_.find(step)) return *kept;
        auto trace = fresh(step);
        if (trace) traces_.add(step, *trace);
        return trace;
    };
    Plan plan = make_plan(unknown, data_, source, progress);
    // The advice in a row that does not fit names other rows of its plan.
    if (!known.rows.empty() && any_does_not_fit(plan)) {
        return make_plan(*plan_request, data_, source, progress);
    }
    keep_rows(request, plan);
    for (PlanRow& row : known.rows) plan.rows.push_back(std::move(row));
    return in_order_of(*plan_request, std::move(plan));
}

Plan Predictor::known_plan(const StepPlanRequest& request) {
    auto plan_request = make_plan_request(request, data_);
    return plan_request ? known_rows(request, *plan_request) : Plan();
}

/// Takes the workloads of the known rows off `plan_request`.
Plan Predictor::known_rows(const StepPlanRequest& request, PlanRequest& plan_request) {
    Plan plan;
    std::erase_if(plan_request.workloads, [&](const models::Workload& workload) {
        auto row = rows_.find(key_of(request, workload));
        if (row) plan.rows.push_back(std::move(*row));
        return row.has_value();
    });
    return plan;
}

void Predictor::keep_rows(const StepPlanRequest& request, const Plan& plan) {
    for (const PlanRow& row : plan.rows) {
        if (row.status == PlanStatus::kOk) rows_.add(key_of(request, row.workload), row);
    }
}

models::Result<void> Predictor::check(const models::Workload& workload,
                                      const std::string& gpu) const {
    if (data_error_) return tl::unexpected(*data_error_);
    const auto found = find_gpu(data_.gpus, gpu);
    if (!found) return tl::unexpected(found.error());
    return check_gpu_support(workload, **found);
}

models::Result<Trace> Predictor::predict(const StepToTrace& step) {
    if (data_error_) return tl::unexpected(*data_error_);
    const auto target = find_target(data_, step.gpu, usual_setup());
    if (!target) return tl::unexpected(target.error());
    return predict_trace(step.workload, *target, data_, for_traces_.source());
}

}  // namespace app
