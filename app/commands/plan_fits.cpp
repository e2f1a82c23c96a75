#include "app/commands/plan_fits.h"

#include "app/commands/batch_report.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
#include "app/commands/fits_report.h"
#include "app/commands/options/list_option.h"
#include "app/commands/options/number_option.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/worker/built_in_program.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/program_target.h"
#include "app/prediction/trace_workers.h"
#include "app/prediction/virtual_cards.h"
#include "app/user/settings.h"
#include "models/config/validity.h"
#include "profiler/planner/plan_row.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::Result;

constexpr const char* kBatch = "BATCH";

/// A strategy on a number of GPUs.
using Spread = std::pair<models::Parallel, int64_t>;

/// Every strategy on every number, but "none" on one GPU alone, and only it.
Result<std::vector<Spread>> parse_spreads(const PlanOptions& options) {
    const auto strategies = split_list("--parallel", options.parallel);
    if (!strategies) return tl::unexpected(strategies.error());
    const auto numbers = split_list("--world-size", options.world_sizes);
    if (!numbers) return tl::unexpected(numbers.error());
    std::vector<Spread> spreads;
    for (const std::string& number : *numbers) {
        const auto world_size = parse_whole_number(number);
        if (!world_size || *world_size < 1 || *world_size > models::kMostRanks) {
            return models::fail(
                "'{}' is not a number of GPUs: write whole numbers up to {}, as 1,8.", number,
                models::kMostRanks);
        }
        for (const std::string& strategy : *strategies) {
            const auto parallel = models::parse_parallel(strategy);
            if (!parallel) return tl::unexpected(parallel.error());
            const bool is_alone = parallel->strategy == models::Strategy::kNone;
            if (is_alone == (*world_size == 1)) spreads.emplace_back(*parallel, *world_size);
        }
    }
    if (!spreads.empty()) return spreads;
    return models::fail(
        "--parallel {} and --world-size {} have no row: none is for 1 GPU, the "
        "others are for 2 or more.",
        options.parallel, options.world_sizes);
}

std::vector<FitRow> make_rows(const PlanRequest& request, const PlannerData& data,
                              const std::vector<Spread>& spreads) {
    std::vector<FitRow> rows;
    for (const models::Workload& workload : request.workloads) {
        for (const auto& [parallel, world_size] : spreads) {
            for (const Gpu* gpu : request.gpus) {
                std::string reason = start_row(request, data, workload, *gpu).reason;
                const auto target = ProgramTarget::find(gpu->id);
                if (reason.empty() && !target) reason = target.error().message;
                rows.push_back({.workload = workload,
                                .gpu = gpu,
                                .parallel = parallel,
                                .world_size = world_size,
                                .impossible = std::move(reason)});
            }
        }
    }
    return rows;
}

/// No tensor of a step may have more than 2^31 elements, which sets a limit of its own.
void limit_by_elements(ProgramCase& one, models::Workload workload) {
    const auto problem_of = [&](int64_t batch_size) {
        workload.batch_size = batch_size;
        return models::validate(workload);
    };
    const auto batches = std::views::iota(int64_t{1}, kMostTriedBatch + 1);
    const auto first_above = std::ranges::partition_point(
        batches, [&](int64_t batch_size) { return problem_of(batch_size).has_value(); });
    if (first_above == batches.end()) return;
    one.most_batch = *first_above - 1;
    one.why_most = fmt::format("At {}: {}", *first_above, problem_of(*first_above).error().message);
}

/// None: the row is impossible.
std::optional<ProgramCase> case_of(FitRow& row) {
    if (!row.impossible.empty()) return std::nullopt;
    auto run = built_in_program(row.workload, row.parallel, row.world_size);
    if (!run) {
        row.impossible = run.error().message;
        return std::nullopt;
    }
    run->words.insert(run->words.end(), {"--batch", fmt::format("{{{}}}", kBatch)});
    // Rank 0 has a full share of everything, but for ZeRO's state and the layers of a stage.
    const models::Strategy strategy = row.parallel.strategy;
    const bool differ =
        strategy == models::Strategy::kZero1 || strategy == models::Strategy::kPipeline;
    if (row.world_size > 1 && !differ) run->ranks = {0};
    ProgramCase one{.gpu = row.gpu->id,
                    .values = {{"GPUs", std::to_string(row.world_size)},
                               {"parallel", models::to_text(row.parallel)}},
                    .run = std::move(*run)};
    limit_by_elements(one, row.workload);
    return one;
}

/// What will run, before it does.
std::string about_runs(const std::vector<ProgramCase>& cases) {
    return fmt::format(
        "{} largest batches, by runs of 2 or 3 steps on virtual cards: about {} runs, as many "
        "at a time as this machine has cores and memory for",
        cases.size(), expected_runs(cases));
}

Result<void> search(std::vector<FitRow>& rows) {
    std::vector<ProgramCase> cases;
    std::vector<FitRow*> searched;
    for (FitRow& row : rows) {
        auto one = case_of(row);
        if (!one) continue;
        cases.push_back(std::move(*one));
        searched.push_back(&row);
    }
    if (cases.empty()) return models::fail("No row is possible. {}", rows.front().impossible);
    Progress progress;
    progress.update(-1, about_runs(cases));
    auto found =
        find_largest_batches(kBatch, cases, [&](const ProgramCase& of, const BatchTry& one) {
            progress.update(-1, about_try(of, one));
        });
    if (!found) return tl::unexpected(found.error());
    for (std::size_t i = 0; i < searched.size(); ++i) {
        LargestBatch& one = (*found)[i];
        if (one.error.empty()) {
            searched[i]->found = std::move(one);
        } else {
            searched[i]->failure = std::move(one.error);
        }
    }
    return {};
}

/// The stage of ZeRO whose closed terms stand for a strategy; -1: none.
int closed_stage_of(models::Strategy strategy) {
    switch (strategy) {
        case models::Strategy::kNone:
        case models::Strategy::kDdp:
            return 0;
        case models::Strategy::kZero1:
            return 1;
        case models::Strategy::kFsdp2:
            return 3;
        default:
            return -1;
    }
}

/// Rows of one workload need the same traces.
class RememberedSteps {
public:
    using Traced = Result<std::shared_ptr<const Trace>>;
    explicit RememberedSteps(StepSource source) : source_(std::move(source)) {}

    Traced trace(const StepToTrace& step) {
        if (const auto known = find(step)) return *known;
        Traced traced = source_(step);  // without the lock: workers trace several steps at a time
        const std::lock_guard lock(mutex_);
        return known_.emplace_back(step, std::move(traced)).second;
    }

private:
    std::optional<Traced> find(const StepToTrace& step) {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(known_, step, &std::pair<StepToTrace, Traced>::first);
        return found == known_.end() ? std::nullopt : std::optional(found->second);
    }

    StepSource source_;
    std::mutex mutex_;  // of known_: plans trace from several threads
    std::vector<std::pair<StepToTrace, Traced>> known_;
};

/// On a GPU without end, since the formulas may need a little more than the runs.
Result<void> add_closed_terms(std::vector<FitRow>& rows, const PlanRequest& request,
                              const PlannerData& data) {
    TraceWorkers workers({&shared_gpu()}, TraceDetail::kForPlan);
    const CancelOnInterrupt cancel(workers);
    RememberedSteps memory(workers.source());
    const StepSource source = [&memory](const StepToTrace& step) { return memory.trace(step); };
    for (FitRow& row : rows) {
        const int stage = closed_stage_of(row.parallel.strategy);
        if (stage < 0 || !row.fits()) continue;
        Gpu endless = *row.gpu;
        endless.usable_memory_bytes.value = static_cast<double>(kEndlessBytes);
        PlanRequest one = request;
        one.traces_each_gpu = false;
        one.workloads = {row.workload};
        one.gpus = {&endless};
        one.batch_size = row.found->largest->batch_size;
        one.parallel = {.num_gpus = row.world_size, .zero_stage = stage};
        const Plan plan = make_plan(one, data, source);
        if (const auto& needed = plan.rows.front().memory) {
            row.closed_terms_bytes = needed->contents.peaks.peak_allocated_bytes;
        }
    }
    if (workers.is_cancelled()) return models::fail("The plan was cancelled.");
    return {};
}

Result<void> write_files(const PlanOptions& options, const std::vector<FitRow>& rows) {
    if (!options.output.empty()) {
        const std::string text =
            options.output.ends_with(".csv") ? fits_csv(rows) : json_text(fits_json(rows));
        if (auto ok = write_file(options.output, text); !ok) return ok;
    }
    return options.chart.empty() ? Result<void>()
                                 : write_bar_chart(fits_chart(rows), options.chart);
}

}  // namespace

Result<void> check_fits_options(const Command& command) {
    constexpr std::array<std::string_view, 20> kMeaningful{"--model",
                                                           "--head",
                                                           "--recipe",
                                                           "--precision",
                                                           "--seq",
                                                           "--padding",
                                                           "--layers",
                                                           "--hidden",
                                                           "--heads",
                                                           "--vocab",
                                                           "--dropout",
                                                           "--intermediate",
                                                           "--gpu",
                                                           "--parallel",
                                                           "--chart",
                                                           "--output",
                                                           "--json",
                                                           "--world-size",
                                                           "--attention-dropout",
                                                           "--accumulate"};
    for (const std::string& name : command.given_options()) {
        if (std::find(kMeaningful.begin(), kMeaningful.end(), name) != kMeaningful.end()) continue;
        return models::fail("--parallel runs the largest batches on whole GPUs: leave {} out.",
                            name);
    }
    for (const char* name : {"--gpu", "--world-size"}) {
        if (command.is_given(name)) continue;
        return models::fail("--parallel runs on each GPU and number of GPUs: add {}.", name);
    }
    return {};
}

Outcome run_fits(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto spreads = parse_spreads(options);
    if (!spreads) return wrong_usage(spreads.error());
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    for (const std::string& file : {options.output, options.chart}) {
        if (const auto ok = check_can_write(file); !ok) return failed(ok.error());
    }
    if (!options.chart.empty()) {
        if (const auto ok = check_chart_file(options.chart); !ok) return wrong_usage(ok.error());
    }
    std::vector<FitRow> rows = make_rows(*request, *data, *spreads);
    if (const auto ok = search(rows); !ok) return failed(ok.error());
    if (const auto ok = add_closed_terms(rows, *request, *data); !ok) return failed(ok.error());
    if (const auto ok = write_files(options, rows); !ok) return failed(ok.error());
    if (output.json()) {
        output.document(fits_json(rows));
    } else {
        print_fits(output, rows);
    }
    const bool any_fits =
        std::any_of(rows.begin(), rows.end(), [](const FitRow& row) { return row.fits(); });
    return any_fits ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace app
