#include "app/prediction/predictor.h"

#include "app/prediction/predict_trace.h"
#include "app/user/settings.h"
#include "models/config/validity.h"
#include "profiler/planner/data/gpu_support.h"

#include <algorithm>
#include <atomic>

namespace app {
namespace {

using namespace profiler;

/// A trace of a large model takes some megabytes.
constexpr std::size_t kMostTraces = 64;
/// A row takes some kilobytes. A step has a few hundred recipes.
constexpr std::size_t kMostRows = 1024;

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

/// Adds a workload for each recipe that can run. Errors: none can.
models::Result<void> add_workloads(const PlanQuestion& question, PlanRequest& request) {
    std::optional<models::Error> first;
    for (const std::string& recipe : question.recipes) {
        auto workload = models::with_recipe(question.workload, recipe);
        if (workload) {
            workload->batch_size = 1;  // the plan finds the largest batch
            const auto valid = models::validate(*workload);
            if (valid) {
                request.workloads.push_back(std::move(*workload));
                continue;
            }
            if (!first) first = valid.error();
        } else if (!first) {
            first = workload.error();
        }
    }
    if (!request.workloads.empty()) return {};
    return tl::unexpected(first.value_or(models::Error{"There is no recipe to plan."}));
}

/// What all rows of a plan have in common.
PlanQuestion without_recipes(PlanQuestion question) {
    question.recipes.clear();
    question.workload = {};  // each row has its own
    question.keeps_traces = true;
    return question;
}

bool any_does_not_fit(const Plan& plan) {
    return std::any_of(plan.rows.begin(), plan.rows.end(),
                       [](const PlanRow& row) { return row.status == PlanStatus::kDoesNotFit; });
}

/// The rows by the order of the workloads; `plan` has one GPU.
Plan in_order_of(const PlanRequest& request, Plan plan) {
    const auto place_of = [&](const PlanRow& row) {
        return std::find(request.workloads.begin(), request.workloads.end(), row.workload);
    };
    if (request.gpus.size() > 1) return plan;
    std::stable_sort(plan.rows.begin(), plan.rows.end(),
                     [&](const PlanRow& x, const PlanRow& y) { return place_of(x) < place_of(y); });
    return plan;
}

}  // namespace

models::Result<PlanRequest> make_plan_request(const PlanQuestion& question,
                                              const PlannerData& data) {
    PlanRequest request{.batch_size = question.batch_size,
                        .budget_bytes = question.budget_bytes,
                        .wants_memory_curve = question.wants_memory_curve};
    if (auto ok = add_workloads(question, request); !ok) return tl::unexpected(ok.error());
    for (const std::string& id : question.gpus) {
        const auto gpu = find_gpu(data.gpus, id);
        if (!gpu) return tl::unexpected(gpu.error());
        request.gpus.push_back(*gpu);
    }
    const auto environment = find_environment(data.environments, question.setup);
    if (!environment) return tl::unexpected(environment.error());
    request.environment = *environment;
    request.parallel.num_gpus = request.environment->num_gpus;
    return request;
}

Predictor::Predictor()
    : data_(load_data(data_error_)),
      for_plans_(all_gpus(data_), TraceDetail::kForPlan),
      for_traces_(all_gpus(data_), TraceDetail::kForCapture) {}

void Predictor::cancel() {
    for_plans_.cancel();
    for_traces_.cancel();
}

models::Result<Plan> Predictor::plan(const PlanQuestion& question, const Report& report,
                                     unsigned busy_cores) {
    if (data_error_) return tl::unexpected(*data_error_);
    auto request = make_plan_request(question, data_);
    if (!request) return tl::unexpected(request.error());
    request->busy_cores = busy_cores;
    PlanRequest unknown = *request;
    Plan known = known_rows(question, unknown);
    if (unknown.workloads.empty()) return in_order_of(*request, std::move(known));
    std::atomic<double> share = 0;
    const PlanProgress progress = [&](std::size_t done, std::size_t total, const auto&) {
        share = static_cast<double>(done) / static_cast<double>(total);
    };
    const StepSource traced = question.keeps_traces ? cached_source() : for_plans_.source();
    const StepSource source = [&](const StepToTrace& step) -> models::Result<TracePointer> {
        if (report && !report(share)) return models::fail("The plan was cancelled.");
        return traced(step);
    };
    Plan plan = make_plan(unknown, data_, source, progress);
    // The advice in a row that does not fit names other rows of its plan.
    if (!known.rows.empty() && any_does_not_fit(plan)) {
        return make_plan(*request, data_, source, progress);
    }
    keep_rows(question, plan);
    for (PlanRow& row : known.rows) plan.rows.push_back(std::move(row));
    return in_order_of(*request, std::move(plan));
}

Plan Predictor::known_plan(const PlanQuestion& question) {
    auto request = make_plan_request(question, data_);
    return request ? known_rows(question, *request) : Plan();
}

/// Takes the workloads of the known rows off the request. With several GPUs no row is known.
Plan Predictor::known_rows(const PlanQuestion& question, PlanRequest& request) {
    Plan plan;
    const PlanQuestion key = without_recipes(question);
    const std::lock_guard lock(mutex_);
    std::erase_if(request.workloads, [&](const models::Workload& workload) {
        const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const KnownRow& known) {
            return known.question == key && known.row.workload == workload;
        });
        if (found == rows_.end()) return false;
        rows_.splice(rows_.begin(), rows_, found);
        plan.rows.push_back(found->row);
        return true;
    });
    return plan;
}

void Predictor::keep_rows(const PlanQuestion& question, const Plan& plan) {
    if (question.gpus.size() != 1) return;
    const std::lock_guard lock(mutex_);
    for (const PlanRow& row : plan.rows) {
        if (row.status == PlanStatus::kOk) rows_.push_front({without_recipes(question), row});
    }
    while (rows_.size() > kMostRows) rows_.pop_back();
}

models::Result<void> Predictor::check(const models::Workload& workload,
                                      const std::string& gpu) const {
    if (data_error_) return tl::unexpected(*data_error_);
    const auto found = find_gpu(data_.gpus, gpu);
    if (!found) return tl::unexpected(found.error());
    return check_gpu_support(workload, **found);
}

models::Result<Trace> Predictor::predict(const models::Workload& workload, const std::string& gpu,
                                         const std::string& setup) {
    if (data_error_) return tl::unexpected(*data_error_);
    const auto target = find_target(data_, gpu, setup);
    if (!target) return tl::unexpected(target.error());
    return predict_trace(workload, *target, data_, for_traces_.source());
}

StepSource Predictor::cached_source() {
    return [this](const StepToTrace& step) { return trace(step); };
}

Predictor::TracePointer Predictor::find(const StepToTrace& step) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(traces_.begin(), traces_.end(),
                                    [&](const auto& one) { return one.first == step; });
    if (found == traces_.end()) return nullptr;
    traces_.splice(traces_.begin(), traces_, found);
    return found->second;
}

models::Result<Predictor::TracePointer> Predictor::trace(const StepToTrace& step) {
    if (TracePointer known = find(step)) return known;
    auto traced = for_plans_.source()(step);
    if (!traced) return traced;
    const std::lock_guard lock(mutex_);
    traces_.emplace_front(step, *traced);
    if (traces_.size() > kMostTraces) traces_.pop_back();
    return traced;
}

}  // namespace app
