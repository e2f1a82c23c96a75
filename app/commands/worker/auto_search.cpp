#include "app/commands/worker/auto_search.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/options/list_option.h"
#include "app/commands/worker/measured_trials.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "models/config/validity.h"
#include "profiler/planner/data/gpu_name.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/planner/search/step_recipes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::LayerRecipes;
using models::Result;
using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 3> kModes{"fast", "smart", "predicted"};

/// What all modes have in common.
struct Search {
    models::Workload workload;  // with the recipe from which layers move
    ConversionSpace space;
    std::string gpu;          // predicted; empty: measured
    std::string environment;  // of the prediction
    TrialOptions trials;
};

/// Makes steps of many recipes, measured or predicted.
class StepSourceOfSearch {
public:
    virtual ~StepSourceOfSearch() = default;
    virtual Result<RecipeTrial> try_recipe(const LayerRecipes& recipe, int64_t likely) = 0;
    virtual int64_t num_batches() const = 0;  // that were run so far; 0: none is
    /// The plan's request for the device of the steps. Errors: the planner does not know it.
    virtual Result<PlanRequest> plan_request() = 0;
    virtual const PlannerData& data() const = 0;
};

Result<PlanRequest> request_for(const Search& search, const PlannerData& data, const Gpu& gpu) {
    const auto target = find_target(data, gpu.id, search.environment);
    if (!target) return tl::unexpected(target.error());
    PlanRequest request{
        .workloads = {search.workload}, .gpus = {target->gpu}, .environment = target->environment};
    if (search.trials.memory_limit_bytes >= 0) {
        request.budget_bytes = search.trials.memory_limit_bytes;
    }
    return request;
}

class MeasuredSteps final : public StepSourceOfSearch {
public:
    MeasuredSteps(const Search& search, const PlannerData& data, MeasuredTrials trials)
        : search_(search), data_(data), trials_(std::move(trials)) {}

    Result<RecipeTrial> try_recipe(const LayerRecipes& recipe, int64_t likely) override {
        progress_.update(-1, fmt::format("search: {}", models::to_text(recipe)));
        const CancelOnInterrupt cancel(trials_);
        return trials_.try_recipe(recipe, likely);
    }
    int64_t num_batches() const override { return trials_.num_batches(); }
    const PlannerData& data() const override { return data_; }

    Result<PlanRequest> plan_request() override {
        const Gpu* const gpu =
            find_gpu_by_name(data_.gpus, trials_.device_name(), trials_.device_memory_bytes());
        if (gpu != nullptr) return request_for(search_, data_, *gpu);
        return models::fail(
            "The planner has no figures of {}: measure them with temposcope sweep --calibrate.",
            trials_.device_name().empty() ? "this device" : trials_.device_name());
    }

private:
    const Search& search_;
    const PlannerData& data_;
    MeasuredTrials trials_;
    Progress progress_;
};

class PredictedSteps final : public StepSourceOfSearch {
public:
    PredictedSteps(const Search& search, const PlannerData& data, PlanRequest request)
        : search_(search),
          data_(data),
          request_(std::move(request)),
          workers_(request_.gpus, TraceDetail::kForPlan) {}

    Result<RecipeTrial> try_recipe(const LayerRecipes& recipe, int64_t) override {
        progress_.update(-1, fmt::format("search: {}", models::to_text(recipe)));
        PlanRequest request = request_;
        request.workloads = {with_recipe(search_.workload, recipe)};
        const CancelOnInterrupt cancel(workers_);
        const Plan plan = make_plan(request, data_, workers_.source());
        const PlanRow& row = plan.rows.front();
        if (workers_.is_cancelled()) return models::fail("The search was cancelled.");
        if (row.status == PlanStatus::kNotSupported) {
            return tl::unexpected(models::Error{row.reason, row.reason_fields});
        }
        if (row.status == PlanStatus::kDoesNotFit) return RecipeTrial{};
        RecipeTrial trial{.max_batch_size = row.max_batch_size.value_or(0), .curve = row.curve};
        std::sort(
            trial.curve.begin(), trial.curve.end(),
            [](const PlanPoint& a, const PlanPoint& b) { return a.batch_size < b.batch_size; });
        return trial;
    }
    int64_t num_batches() const override { return 0; }
    const PlannerData& data() const override { return data_; }
    Result<PlanRequest> plan_request() override { return request_; }

private:
    const Search& search_;
    const PlannerData& data_;
    const PlanRequest request_;
    TraceWorkers workers_;
    Progress progress_;
};

/// Every combination of the techniques: what the planner may give to a layer.
std::vector<models::Recipe> combinations(const ConversionSpace& space) {
    std::vector<models::Recipe> recipes = recipes_between(space.from, space.to);
    recipes.insert(recipes.begin(), space.from);
    recipes.push_back(space.to);
    return recipes;
}

int64_t ns_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void fill_result(const RecipeTrial& trial, AutoSearchRow& row) {
    row.max_batch_size = trial.max_batch_size;
    const PlanPoint* const best = trial.best();
    if (best == nullptr) return;
    row.batch_size = best->batch_size;
    row.step_time_ns = best->step_time_ns;
    row.sequences_per_s = best->sequences_per_s;
}

class ModeRuns {
public:
    ModeRuns(const Search& search, StepSourceOfSearch& steps) : search_(search), steps_(steps) {}

    Result<void> add_own() {
        const LayerRecipes own{.recipe = search_.space.from, .layers = {}};
        const auto trial = steps_.try_recipe(own, 0);
        if (!trial) return tl::unexpected(trial.error());
        own_batch_ = trial->max_batch_size;
        AutoSearchRow row{.mode = "none",
                          .recipe = models::to_text(own),
                          .tried_recipes = 1,
                          .tried_steps = steps_.num_batches()};
        if (own_batch_ == 0) row.why = "Not even one sequence fits.";
        fill_result(*trial, row);
        rows_.push_back(std::move(row));
        return {};
    }

    Result<void> add(const std::string& mode) {
        if (mode == "predicted") return add_predicted();
        const TryRecipe try_recipe = [&](const LayerRecipes& recipe,
                                         int64_t likely) -> Result<RecipeTrial> {
            // Values that do not go together count as a recipe that does not fit.
            if (!models::validate(with_recipe(search_.workload, recipe))) return RecipeTrial{};
            return steps_.try_recipe(recipe, likely);
        };
        const auto start = Clock::now();
        const int64_t batches_before = steps_.num_batches();
        const auto found = mode == "fast" ? search_fast(search_.space, try_recipe)
                                          : search_smart(search_.space, try_recipe);
        if (!found) return tl::unexpected(found.error());
        const TriedRecipe& chosen = found->tried[found->chosen];
        const bool has_any = chosen.trial.max_batch_size > 0;
        AutoSearchRow row{
            .mode = mode,
            .recipe = has_any ? models::to_text(chosen.recipe) : std::string(),
            .search_time_ns = ns_since(start),
            .tried_recipes = static_cast<int64_t>(found->tried.size()),
            .tried_steps = steps_.num_batches() - batches_before,
            .why = has_any ? found->why : "Of what was tried, not even one sequence fits."};
        fill_result(chosen.trial, row);
        rows_.push_back(std::move(row));
        return {};
    }

    std::vector<AutoSearchRow> take() { return std::move(rows_); }

private:
    /// The planner's search. What it chose is then run like what the other modes chose.
    Result<void> add_predicted() {
        AutoSearchRow& row = rows_.emplace_back(AutoSearchRow{.mode = "predicted"});
        const auto request = steps_.plan_request();
        if (!request) {
            row.why = request.error().message;
            return {};
        }
        const auto start = Clock::now();
        TraceWorkers workers(request->gpus, TraceDetail::kForPlan);
        const AutoPlan plan = [&] {
            const CancelOnInterrupt cancel(workers);
            return make_auto_plan({.plan = *request, .candidates = combinations(search_.space)},
                                  steps_.data(), workers.source());
        }();
        if (workers.is_cancelled()) return models::fail("The search was cancelled.");
        row.search_time_ns = ns_since(start);
        const AutoRow& found = plan.rows.front();
        row.tried_recipes = found.num_candidates;
        if (found.row.status != PlanStatus::kOk) {
            row.why = found.row.reason;
            return {};
        }
        const LayerRecipes chosen = layer_recipes_of(found.row.workload);
        row.recipe = models::to_text(chosen);
        row.why = found.sentence;
        const auto trial = steps_.try_recipe(chosen, found.row.max_batch_size.value_or(own_batch_));
        if (!trial) return tl::unexpected(trial.error());
        fill_result(*trial, row);
        return {};
    }

    const Search& search_;
    StepSourceOfSearch& steps_;
    int64_t own_batch_ = 0;
    std::vector<AutoSearchRow> rows_;
};

/// The workload of a row at its fastest batch.
models::Workload workload_of(const AutoSearchRow& row, const models::Workload& own) {
    auto workload = models::with_recipe(own, row.recipe);
    models::Workload result = workload ? std::move(*workload) : own;  // our own text: it parses
    result.batch_size = row.batch_size.value_or(1);
    return result;
}

/// Runs the steps of all rows again, in turn. Rows with the same recipe and batch get one figure.
tl::expected<void, Failure> time_rows(const Search& search, std::vector<AutoSearchRow>& rows) {
    std::vector<models::Workload> workloads;
    const auto place_of = [&](const models::Workload& workload) {
        return static_cast<std::size_t>(std::find(workloads.begin(), workloads.end(), workload) -
                                        workloads.begin());
    };
    for (const AutoSearchRow& row : rows) {
        if (!row.batch_size) continue;
        models::Workload workload = workload_of(row, search.workload);
        if (place_of(workload) == workloads.size()) workloads.push_back(std::move(workload));
    }
    if (workloads.empty()) return {};
    const auto times = time_in_turn(workloads, search.trials);
    if (!times) return tl::unexpected(times.error());
    for (AutoSearchRow& row : rows) {
        if (!row.batch_size) continue;
        const models::Workload workload = workload_of(row, search.workload);
        const auto time_ns = (*times)[place_of(workload)];
        if (!time_ns) continue;  // out of memory in this turn: the figures of the search stay
        row.step_time_ns = *time_ns;
        row.sequences_per_s = models::sequences_per_s(workload, *time_ns);
    }
    return {};
}

void add_ratios(std::vector<AutoSearchRow>& rows) {
    const auto own = rows.front().sequences_per_s;
    for (AutoSearchRow& row : rows) {
        if (&row != &rows.front() && own && row.sequences_per_s) {
            row.ratio = *row.sequences_per_s / *own;
        }
    }
}

Result<Search> make_search(const WorkloadOptions& options) {
    const std::vector<std::string> recipes = split_recipes(options.recipes);
    if (recipes.size() != 2) {
        return models::fail(
            "--auto moves layers from one recipe to another: name the two, such as "
            "--recipe original,tempo.");
    }
    WorkloadOptions checked = options;
    checked.output = ".";  // no traces are written
    checked.overwrites = true;
    const auto jobs = make_jobs(checked, recipes);
    if (!jobs) return tl::unexpected(jobs.error());
    const models::Workload& from = jobs->jobs.front().workload;
    const models::Workload& to = jobs->jobs.back().workload;
    if (!from.layer_recipes.empty() || !to.layer_recipes.empty()) {
        return models::fail("--auto chooses the layers of a recipe itself: leave out '@'.");
    }
    Search search{
        .workload = from,
        .space = {.from = from.recipe, .to = to.recipe, .num_layers = from.model.num_layers},
        .gpu = jobs->gpu,
        .environment = options.setup,
        .trials = {.device = jobs->device,
                   .memory_limit_bytes = jobs->memory_limit_bytes,
                   .warmup_steps = options.warmup_steps,
                   .steps = options.steps}};
    if (const auto ok = techniques_of(search.space); !ok) return tl::unexpected(ok.error());
    if (search.gpu.empty() && search.trials.device == "cpu" && jobs->memory_limit_bytes < 0) {
        return models::fail(
            "On the CPU --auto needs --memory-limit, the memory of the GPU to stand for: without "
            "it a search would fill this machine.");
    }
    return search;
}

Result<std::unique_ptr<StepSourceOfSearch>> make_steps(const Search& search,
                                                       const PlannerData& data) {
    if (search.gpu.empty()) {
        auto trials = MeasuredTrials::start(search.workload, search.trials);
        if (!trials) return tl::unexpected(trials.error());
        return std::make_unique<MeasuredSteps>(search, data, std::move(*trials));
    }
    const auto gpu = find_gpu(data.gpus, search.gpu);
    if (!gpu) return tl::unexpected(gpu.error());
    if (!(*gpu)->no_kernel_model.empty()) {
        return models::fail_fields({"device"}, "{} has no modelled times: {}.", (*gpu)->id,
                                   (*gpu)->no_kernel_model);
    }
    if (const auto ok = check_gpu_support(search.workload, **gpu); !ok) {
        return tl::unexpected(ok.error());
    }
    auto request = request_for(search, data, **gpu);
    if (!request) return tl::unexpected(request.error());
    return std::make_unique<PredictedSteps>(search, data, std::move(*request));
}

}  // namespace

Result<std::vector<std::string>> search_modes(const std::string& list) {
    if (list == "all") return std::vector<std::string>(kModes.begin(), kModes.end());
    auto modes = split_list("--auto", list);
    if (!modes) return modes;
    for (const std::string& mode : *modes) {
        if (std::find(kModes.begin(), kModes.end(), mode) != kModes.end()) continue;
        return models::fail("'{}' is not a mode of --auto: choose from {}, or all.", mode,
                            fmt::join(kModes, ", "));
    }
    return modes;
}

tl::expected<AutoSearchReport, Failure> search_recipes(const WorkloadOptions& options,
                                                       const std::vector<std::string>& modes) {
    const auto search = make_search(options);
    if (!search) return wrong_usage(search.error());
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    if (const auto gpu = find_gpu(data->gpus, search->gpu); !search->gpu.empty() && !gpu) {
        return wrong_usage(gpu.error());
    }
    AutoSearchReport report{
        .workload = search->workload,
        .from = models::to_text(search->space.from),
        .to = models::to_text(search->space.to),
        .device = search->gpu.empty() ? search->trials.device : "predict:" + search->gpu,
        .memory_limit_bytes = search->trials.memory_limit_bytes,
        .ran_in_turn = search->gpu.empty() && search->trials.device == "cpu"};
    {
        const auto steps = make_steps(*search, *data);
        if (!steps) return failed(steps.error());
        ModeRuns runs(*search, **steps);
        if (const auto ok = runs.add_own(); !ok) return failed(ok.error());
        for (const std::string& mode : modes) {
            if (const auto ok = runs.add(mode); !ok) return failed(ok.error());
        }
        report.rows = runs.take();
    }
    if (search->gpu.empty()) {
        const auto ok = time_rows(*search, report.rows);
        if (!ok) return tl::unexpected(ok.error());
    }
    add_ratios(report.rows);
    return report;
}

}  // namespace app
