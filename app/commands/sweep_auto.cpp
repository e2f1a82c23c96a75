#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/values.h"
#include "app/commands/sweep.h"
#include "app/prediction/prediction_target.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "app/user/usual_setup.h"
#include "models/config/validity.h"
#include "models/config/workload.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/planner/search/measured_search.h"
#include "profiler/planner/search/step_recipes.h"
#include "profiler/protocol/measurements.h"
#include "profiler/protocol/turn_taking.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// `sweep --auto`: searches for the recipe that trains fastest within a memory limit, by
/// AutoTempo's two searches over real steps and by the planner's over predicted ones. What they
/// chose is then measured against each other.
namespace app {
namespace {

using namespace profiler;
using models::LayerRecipes;
using models::Result;
using Clock = std::chrono::steady_clock;

// ---- text, JSON and CSV -------------------------------------------------------------------------

/// One way to choose a recipe, and what came out. The first row of a report is the workload's own
/// recipe, which no search chose.
struct AutoSearchRow {
    std::string mode;                       // "fast", "smart", "predicted"; "none": the first row
    std::string recipe;                     // canonical text; empty: the search failed
    std::optional<int64_t> max_batch_size;  // that fits
    std::optional<int64_t> batch_size;      // with the highest throughput
    std::optional<int64_t> step_time_ns;    // at that batch
    std::optional<double> sequences_per_s;  // at that batch
    std::optional<double> ratio;            // of the throughputs: over that of the first row
    std::optional<int64_t> search_time_ns;  // until the recipe was chosen
    int64_t tried_recipes = 0;              // that were run, or that a layer could have
    int64_t tried_steps = 0;                // batches that were run; 0: none was
    std::string why;                        // one sentence: why this recipe, or why none
};

struct AutoSearchReport {
    models::Workload workload;
    std::string from, to;  // the recipes between which the layers move
    std::string device;    // "cpu", "cuda", "predict:rtx3090"
    int64_t memory_limit_bytes = -1;
    bool ran_in_turn = false;  // the throughputs are from steps that took turns
    std::vector<AutoSearchRow> rows;
};

/// In the order of the CSV's columns.
const std::vector<TableColumn<AutoSearchRow>>& search_columns() {
    using Row = AutoSearchRow;
    const auto gain_text = [](const Row& row) -> std::string {
        return row.ratio ? fmt::format("{:+.1f} %", 100 * (*row.ratio - 1)) : kNoValue;
    };
    const auto rate_text = [](const Row& row) -> std::string {
        return row.sequences_per_s ? fmt::format("{:.3g}", *row.sequences_per_s) : kNoValue;
    };
    const auto steps_text = [](const Row& row) -> std::string {
        return row.tried_steps > 0 ? fmt::format("{}", row.tried_steps) : kNoValue;
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"mode", "mode", Unit::kText, "", &Row::mode},
        {"recipe", "recipe", Unit::kText, "", [](const Row& row) { return known(row.recipe); }},
        {"max_batch_size", "largest batch", Unit::kNumber, "", &Row::max_batch_size},
        {"batch_size", "fastest batch", Unit::kNumber, "", &Row::batch_size},
        {"step_time_ns", "step", Unit::kNanoseconds, "", &Row::step_time_ns},
        {"throughput_ratio", "gain", Unit::kShare, "", &Row::ratio, gain_text},
        {"throughput_sequences_per_s", "seq/s", Unit::kRate, "", &Row::sequences_per_s, rate_text},
        {"search_time_ns", "found in", Unit::kNanoseconds, "", &Row::search_time_ns},
        {"tried_recipes", "recipes", Unit::kNumber, "", &Row::tried_recipes},
        {"tried_batches", "batches run", Unit::kNumber, "", &Row::tried_steps, steps_text},
        {"why", "", Unit::kText, "", &Row::why}};
    return kColumns;
}

void print_auto_search(Output& output, const AutoSearchReport& report) {
    const models::Workload& workload = report.workload;
    const std::string limit =
        report.memory_limit_bytes < 0
            ? std::string()
            : fmt::format(" within {}", format_bytes(report.memory_limit_bytes));
    output.heading(fmt::format("{}, {} layers, sequence length {}, {}, on {}{}: from {} to {}",
                               workload.model.name, workload.model.num_layers, workload.seq_len,
                               models::name_of(workload.precision), report.device, limit,
                               report.from, report.to));
    output.table(text_table(
        pick(search_columns(),
             {"mode", "max_batch_size", "batch_size", "step_time_ns", "throughput_sequences_per_s",
              "throughput_ratio", "search_time_ns", "tried_recipes", "tried_batches", "recipe"}),
        report.rows));
    output.line();
    for (const AutoSearchRow& row : report.rows) {
        if (!row.why.empty()) output.line(fmt::format("{}: {}", row.mode, row.why));
    }
    if (report.ran_in_turn) {
        output.line(
            "The figures of the table are from steps of all rows that took turns after the "
            "searches; the sentences above have the figures that each search saw.");
    }
}

nlohmann::json auto_search_json(const AutoSearchReport& report) {
    const models::Workload& workload = report.workload;
    return {{"model", workload.model.name},
            {"head", models::name_of(workload.head)},
            {"precision", models::name_of(workload.precision)},
            {"seq_len", workload.seq_len},
            {"num_layers", workload.model.num_layers},
            {"from", report.from},
            {"to", report.to},
            {"device", report.device},
            {"memory_limit_bytes", report.memory_limit_bytes},
            {"measured_in_turn", report.ran_in_turn},
            {"rows", json_rows(data_table(search_columns(), report.rows))}};
}

std::string auto_search_csv(const AutoSearchReport& report) {
    return to_csv(data_table(search_columns(), report.rows), Decimals::kAsJson);
}

constexpr std::array<std::string_view, 3> kModes{"fast", "smart", "predicted"};

struct MeasureOptions {
    std::string device = "cpu";  // or "cuda", or "auto"
    int64_t memory_limit_bytes = -1;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
};

/// What all searches have in common.
struct Search {
    models::Workload workload;  // with the recipe from which layers move
    ConversionSpace space;
    std::string gpu;          // predicted; empty: measured
    std::string environment;  // of the prediction
    MeasureOptions measuring;
};

/// Makes steps of many recipes, measured or predicted.
class StepSourceOfSearch {
public:
    StepSourceOfSearch(const Search& search, const PlannerData& data)
        : search_(search), data_(data) {}
    virtual ~StepSourceOfSearch() = default;
    virtual Result<MeasuredRecipe> measure_recipe(const LayerRecipes& recipe, int64_t likely) = 0;
    virtual int64_t num_batches() const { return 0; }  // that were run so far; 0: none is
    /// The plan's request for the device of the steps. Errors: the planner does not know it.
    virtual Result<PlanRequest> plan_request() = 0;
    const PlannerData& data() const { return data_; }

protected:
    void show(const LayerRecipes& recipe) {
        progress_.update(-1, fmt::format("search: {}", models::to_text(recipe)));
    }

    const Search& search_;
    const PlannerData& data_;

private:
    app::Progress progress_;
};

Result<PlanRequest> request_for(const Search& search, const PlannerData& data, const Gpu& gpu) {
    const auto target = find_target(data, gpu.id, search.environment);
    if (!target) return tl::unexpected(target.error());
    PlanRequest request{
        .workloads = {search.workload}, .gpus = {target->gpu}, .environment = target->environment};
    if (search.measuring.memory_limit_bytes >= 0) {
        request.budget_bytes = search.measuring.memory_limit_bytes;
    }
    return request;
}

/// The batch of a request for one batch.
Result<MeasuredBatches> only_batch(const ResultFrame& result) {
    auto tried = measured_batches_from_json(result.summary);
    if (tried && tried->batches.size() != 1) {
        return models::fail("The worker answered for {} batches instead of one.",
                            tried->batches.size());
    }
    return tried;
}

/// The request for steps of a workload at its batch size.
Request measure_request(const models::Workload& workload, const MeasureOptions& options) {
    return {.kind = RequestKind::kTryBatches,
            .workload = models::to_json(workload),
            .device = options.device,
            .memory_limit_bytes = options.memory_limit_bytes,
            .warmup_steps = options.warmup_steps,
            .steps = options.steps,
            .batch_sizes = {workload.batch_size}};
}

/// Trains the steps in one worker.
class MeasuredSteps final : public StepSourceOfSearch {
public:
    MeasuredSteps(const Search& search, const PlannerData& data, WorkerClient worker)
        : StepSourceOfSearch(search, data), worker_(std::move(worker)) {}

    /// The largest batch of a recipe, and the median step time at each batch that was tried.
    Result<MeasuredRecipe> measure_recipe(const LayerRecipes& recipe, int64_t likely) override {
        show(recipe);
        const CancelOnInterrupt cancel(worker_);
        models::Workload workload = with_recipe(search_.workload, recipe);
        const auto measure_one = [&](int64_t batch_size) {
            workload.batch_size = batch_size;
            return measure_batch(workload);
        };
        constexpr int64_t kMostBatch = 4096;  // as a sweep
        return measure_batches(measure_one, likely, kMostBatch);
    }
    int64_t num_batches() const override { return num_batches_; }

    Result<PlanRequest> plan_request() override {
        const Gpu* const gpu = find_gpu_by_name(data_.gpus, device_name_, device_memory_bytes_);
        if (gpu != nullptr) return request_for(search_, data_, *gpu);
        return models::fail(
            "The planner has no figures of {}: measure them with temposcope sweep --calibrate.",
            device_name_.empty() ? "this device" : device_name_);
    }

private:
    Result<std::optional<PlanPoint>> measure_batch(const models::Workload& workload) {
        ++num_batches_;
        const auto outcome = worker_.run(measure_request(workload, search_.measuring));
        if (!outcome) return tl::unexpected(to_error(outcome.error()));
        const auto tried = only_batch(*outcome);
        if (!tried) return tl::unexpected(tried.error());
        if (!tried->device_name.empty()) {
            device_name_ = tried->device_name;
            device_memory_bytes_ = tried->memory_bytes;
        }
        const MeasuredBatch& batch = tried->batches.front();
        if (!batch.fits) return std::nullopt;
        if (batch.median_ns() <= 0) {
            return models::fail("The worker answered without step times: it is of another build.");
        }
        return PlanPoint{.batch_size = workload.batch_size,
                         .step_time_ns = batch.median_ns(),
                         .sequences_per_s = models::sequences_per_s(workload, batch.median_ns())};
    }

    WorkerClient worker_;
    int64_t num_batches_ = 0;
    std::string device_name_;
    int64_t device_memory_bytes_ = 0;  // 0: not known
};

class PredictedSteps final : public StepSourceOfSearch {
public:
    PredictedSteps(const Search& search, const PlannerData& data, PlanRequest request)
        : StepSourceOfSearch(search, data),
          request_(std::move(request)),
          workers_(request_.gpus, TraceDetail::kForPlan, torch_for(*request_.environment)) {}

    Result<MeasuredRecipe> measure_recipe(const LayerRecipes& recipe, int64_t) override {
        show(recipe);
        PlanRequest request = request_;
        request.workloads = {with_recipe(search_.workload, recipe)};
        const CancelOnInterrupt cancel(workers_);
        const Plan plan = make_plan(request, data_, workers_.source());
        const PlanRow& row = plan.rows.front();
        if (workers_.is_cancelled()) return models::fail("The search was cancelled.");
        if (row.status == PlanStatus::kNotSupported) {
            return tl::unexpected(models::Error{row.reason, row.reason_fields});
        }
        if (row.status == PlanStatus::kDoesNotFit) return MeasuredRecipe{};
        MeasuredRecipe measured{.max_batch_size = row.max_batch_size.value_or(0),
                                .curve = row.curve};
        std::ranges::sort(measured.curve, {}, &PlanPoint::batch_size);
        return measured;
    }
    Result<PlanRequest> plan_request() override { return request_; }

private:
    const PlanRequest request_;
    TraceWorkers workers_;
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

void fill_result(const MeasuredRecipe& measured, AutoSearchRow& row) {
    row.max_batch_size = measured.max_batch_size;
    const PlanPoint* const best = measured.best();
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
        const auto measured = steps_.measure_recipe(own, 0);
        if (!measured) return tl::unexpected(measured.error());
        own_batch_ = measured->max_batch_size;
        AutoSearchRow row{.mode = "none",
                          .recipe = models::to_text(own),
                          .tried_recipes = 1,
                          .tried_steps = steps_.num_batches()};
        if (own_batch_ == 0) row.why = "Not even one sequence fits.";
        fill_result(*measured, row);
        rows_.push_back(std::move(row));
        return {};
    }

    Result<void> add(const std::string& mode) {
        if (mode == "predicted") return add_predicted();
        const MeasureRecipe measure_recipe = [&](const LayerRecipes& recipe,
                                                 int64_t likely) -> Result<MeasuredRecipe> {
            // Values that do not go together count as a recipe that does not fit.
            if (!models::validate(with_recipe(search_.workload, recipe))) return MeasuredRecipe{};
            return steps_.measure_recipe(recipe, likely);
        };
        const auto start = Clock::now();
        const int64_t batches_before = steps_.num_batches();
        const auto found = mode == "fast" ? search_fast(search_.space, measure_recipe)
                                          : search_smart(search_.space, measure_recipe);
        if (!found) return tl::unexpected(found.error());
        const MeasuredRecipe& chosen = found->tried[found->chosen];
        const bool has_any = chosen.max_batch_size > 0;
        AutoSearchRow row{
            .mode = mode,
            .recipe = has_any ? models::to_text(chosen.recipe) : std::string(),
            .search_time_ns = ns_since(start),
            .tried_recipes = static_cast<int64_t>(found->tried.size()),
            .tried_steps = steps_.num_batches() - batches_before,
            .why = has_any ? found->why : "Of what was tried, not even one sequence fits."};
        fill_result(chosen, row);
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
        TraceWorkers workers(request->gpus, TraceDetail::kForPlan,
                             torch_for(*request->environment));
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
        const auto measured =
            steps_.measure_recipe(chosen, found.row.max_batch_size.value_or(own_batch_));
        if (!measured) return tl::unexpected(measured.error());
        fill_result(*measured, row);
        return {};
    }

    const Search& search_;
    StepSourceOfSearch& steps_;
    int64_t own_batch_ = 0;
    std::vector<AutoSearchRow> rows_;
};

/// Median step times of several workloads at their batch sizes, in the same order, from steps that
/// take turns: if the machine's speed drifts, it slows all of them alike. Empty: out of memory.
tl::expected<std::vector<std::optional<int64_t>>, Failure> time_in_turn(
    const std::vector<models::Workload>& workloads, const MeasureOptions& options) {
    std::vector<Request> requests;
    for (const models::Workload& workload : workloads) {
        requests.push_back(measure_request(workload, options));
    }
    TurnTaking workers(std::move(requests));
    const CancelOnInterrupt cancel(workers);
    app::Progress progress;
    std::vector<std::optional<int64_t>> times_ns(workloads.size());
    std::optional<models::Error> unclear;
    const auto done =
        workers.run({.progress =
                         [&](std::size_t index, const profiler::Progress&) {
                             progress.update(-1, fmt::format("alternating steps: {}",
                                                             workloads[index].recipe_name));
                         },
                     .ended =
                         [&](std::size_t index, const WorkerOutcome& outcome) {
                             if (!outcome) return;
                             const auto tried = only_batch(*outcome);
                             if (!tried) {
                                 unclear = tried.error();
                             } else if (tried->batches.front().fits) {
                                 times_ns[index] = tried->batches.front().median_ns();
                             }
                         },
                     .split = &print_error});
    if (!done) return failed(to_error(done.error()));
    if (unclear) return failed(*unclear);
    return times_ns;
}

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
        return static_cast<std::size_t>(std::ranges::find(workloads, workload) - workloads.begin());
    };
    for (const AutoSearchRow& row : rows) {
        if (!row.batch_size) continue;
        models::Workload workload = workload_of(row, search.workload);
        if (place_of(workload) == workloads.size()) workloads.push_back(std::move(workload));
    }
    if (workloads.empty()) return {};
    const auto times = time_in_turn(workloads, search.measuring);
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

Result<Search> make_search(const StepForm& options) {
    if (options.recipes.is_all || options.recipes.names.size() != 2) {
        return models::fail(
            "--auto moves layers from one recipe to another: name the two, such as "
            "--recipe original,tempo.");
    }
    StepForm checked = options;
    checked.output = ".";  // no traces are written
    checked.overwrites = true;
    const auto jobs = make_jobs(checked);
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
        .measuring = {.device = jobs->device,
                      .memory_limit_bytes = jobs->memory_limit_bytes,
                      .warmup_steps = options.warmup_steps,
                      .steps = options.steps}};
    if (const auto ok = techniques_of(search.space); !ok) return tl::unexpected(ok.error());
    if (search.gpu.empty() && search.measuring.device == "cpu" && jobs->memory_limit_bytes < 0) {
        return models::fail(
            "On the CPU --auto needs --memory-limit, the memory of the GPU to emulate: without "
            "it a search would fill this machine.");
    }
    return search;
}

Result<std::unique_ptr<StepSourceOfSearch>> make_steps(const Search& search,
                                                       const PlannerData& data) {
    if (search.gpu.empty()) {
        auto worker = WorkerClient::start();
        if (!worker) return tl::unexpected(worker.error());
        return std::make_unique<MeasuredSteps>(search, data, std::move(*worker));
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

Result<std::vector<std::string>> parse_searches(const std::string& list) {
    if (list == "all") return std::vector<std::string>(kModes.begin(), kModes.end());
    auto modes = split_list("--auto", list);
    if (!modes) return modes;
    for (const std::string& mode : *modes) {
        if (std::ranges::find(kModes, mode) != kModes.end()) continue;
        return models::fail("'{}' is not a mode of --auto: choose from {}, or all.", mode,
                            fmt::join(kModes, ", "));
    }
    return modes;
}

/// Runs each search on the same workload, from and to the two recipes of `options`. A search that
/// is not possible is a row that says why.
tl::expected<AutoSearchReport, Failure> search_recipes(const StepForm& options,
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
        .device = search->gpu.empty() ? search->measuring.device : "predict:" + search->gpu,
        .memory_limit_bytes = search->measuring.memory_limit_bytes,
        .ran_in_turn = search->gpu.empty() && search->measuring.device == "cpu"};
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

Outcome run_auto_sweep(const SweepOptions& options, const Command& command, Output& output) {
    StepForm workload = options.workload;
    if (auto ok = check_ending(workload.output, "--auto"); !ok) return wrong_usage(ok.error());
    if (!command.is_given("--recipe")) workload.recipes.names = {"original", "tempo"};
    const auto modes = parse_searches(options.searches);
    if (!modes) return wrong_usage(modes.error());
    if (auto ok = check_result_file(workload.output); !ok) return tl::unexpected(ok.error());
    const auto report = search_recipes(workload, *modes);
    if (!report) return tl::unexpected(report.error());
    return emit(output,
                {.json = [&] { return auto_search_json(*report); },
                 .text = [&](Output& text) { print_auto_search(text, *report); },
                 .csv = [&] { return auto_search_csv(*report); }},
                workload.output);
}

}  // namespace

Mode auto_sweep_mode(const SweepOptions& options, const Command& command) {
    const auto refuse = [&](const std::string& option) {
        if ((command.modes_of(option) & (kMeasureAuto | kPredictAuto)) == 0) {
            return fmt::format("--auto finds the batch itself and writes no traces: leave {} out.",
                               option);
        }
        return options.workload.predicts() ? refuse_in_prediction(option)
                                           : refuse_in_measurement(option);
    };
    return {
        .bit_by_value = [&] { return options.workload.predicts() ? kPredictAuto : kMeasureAuto; },
        .chosen_by = "--auto",
        .refuse = refuse,
        .needs = {{"--model", sentence("A search trains a model: say which with --model.")}},
        .run = [&](Output& output) { return run_auto_sweep(options, command, output); }};
}

}  // namespace app
