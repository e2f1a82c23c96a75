#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/values.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/batch_report.h"
#include "app/commands/reports/chart_files.h"
#include "app/prediction/prediction_target.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "app/user/usual_setup.h"
#include "models/config/validity.h"
#include "profiler/planner/plan_row.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <utility>

/// `plan --parallel` and `sweep --parallel`: batches of a built-in model over cards, their number
/// and strategies. Torch's own code trains them on virtual GPUs.
namespace app {
namespace {

using namespace profiler;
using models::Result;

/// A strategy on a number of GPUs.
using Spread = std::pair<models::Parallel, int64_t>;

/// Every strategy of a list on every number of a list, but "none" on one GPU alone, and only it.
Result<std::vector<Spread>> parse_spreads(const std::string& parallel_list,
                                          const std::string& world_sizes) {
    const auto strategies = split_list("--parallel", parallel_list);
    if (!strategies) return tl::unexpected(strategies.error());
    const auto numbers = split_list("--world-size", world_sizes);
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
        parallel_list, world_sizes);
}

/// A row for each workload, spread and GPU of the request.
std::vector<ParallelRow> make_rows(const PlanRequest& request, const PlannerData& data,
                                   const std::vector<Spread>& spreads) {
    std::vector<ParallelRow> rows;
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

/// The name of the batch size in the words of a case.
constexpr const char* kBatchPlaceholder = "BATCH";

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

/// The program that trains the row. None: the row is impossible, and says why.
std::optional<ProgramCase> case_of(ParallelRow& row) {
    if (!row.impossible.empty()) return std::nullopt;
    auto run = built_in_program(row.workload, row.parallel, row.world_size);
    if (!run) {
        row.impossible = run.error().message;
        return std::nullopt;
    }
    run->words.insert(run->words.end(), {"--batch", fmt::format("{{{}}}", kBatchPlaceholder)});
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
        "{} largest batches, by runs of 2 or 3 steps on simulated GPUs: about {} runs, as many "
        "at a time as this machine has cores and memory for",
        cases.size(), expected_runs(cases));
}

/// Finds the largest batch of each row by running it. Errors: no row is possible.
Result<void> search(std::vector<ParallelRow>& rows, BatchOrder order) {
    std::vector<ProgramCase> cases;
    std::vector<ParallelRow*> searched;
    for (ParallelRow& row : rows) {
        auto one = case_of(row);
        if (!one) continue;
        cases.push_back(std::move(*one));
        searched.push_back(&row);
    }
    if (cases.empty()) return models::fail("No row is possible. {}", rows.front().impossible);
    Progress progress;
    if (order == BatchOrder::kGuessed) progress.update(-1, about_runs(cases));
    auto found = find_largest_batches(
        kBatchPlaceholder, cases,
        [&](const ProgramCase& of, const BatchRun& one) {
            progress.update(-1, about_try(of, one));
        },
        order);
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
Result<void> add_closed_terms(std::vector<ParallelRow>& rows, const PlanRequest& request,
                              const PlannerData& data) {
    TraceWorkers workers({&shared_gpu()}, TraceDetail::kForPlan);
    const CancelOnInterrupt cancel(workers);
    RememberedSteps memory(workers.source());
    const StepSource source = [&memory](const StepToTrace& step) { return memory.trace(step); };
    for (ParallelRow& row : rows) {
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

}  // namespace

Outcome run_parallel(const PlanOptions& options, BatchOrder order, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto spreads = parse_spreads(options.parallel, options.world_sizes);
    if (!spreads) return wrong_usage(spreads.error());
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const std::string torch = torch_for(*request->environment); !torch.empty()) {
        return wrong_usage({fmt::format("Many GPUs are planned with the torch of your Python, and "
                                        "not with torch {}: leave the setup out.",
                                        torch),
                            {"setup"}});
    }
    const std::string& chart = options.chart;
    if (!chart.empty()) {
        if (const auto ok = check_chart_file(chart); !ok) return wrong_usage(ok.error());
    }
    for (const std::string& file : {options.output, chart}) {
        if (const auto ok = check_result_file(file); !ok) return tl::unexpected(ok.error());
    }
    const bool is_plan = order == BatchOrder::kGuessed;
    std::vector<ParallelRow> rows = make_rows(*request, *data, *spreads);
    if (const auto ok = search(rows, order); !ok) return failed(ok.error());
    if (is_plan) {
        const auto ok = add_closed_terms(rows, *request, *data);
        if (!ok) return failed(ok.error());
    }
    const Report report = is_plan ? parallel_plan_report(rows) : parallel_sweep_report(rows);
    if (const auto ok = emit(output, report, options.output); !ok) return ok;
    if (!chart.empty()) {
        const auto ok = write_bar_chart(parallel_chart(rows), chart);
        if (!ok) return failed(ok.error());
    }
    return std::ranges::any_of(rows, &ParallelRow::fits) ? ExitCode::kOk : ExitCode::kFailed;
}

Mode parallel_plan_mode(const PlanOptions& options) {
    const auto lacks = sentence("--parallel runs on each GPU and number of GPUs: add {}.");
    return {.bit = kPlanParallel,
            .chosen_by = "--parallel",
            .refuse = sentence("--parallel finds the largest batch of each GPU: leave {} out."),
            .needs = {{"--gpu", lacks}, {"--world-size", lacks}},
            .run = [&options](Output& output) {
                return run_parallel(options, BatchOrder::kGuessed, output);
            }};
}

}  // namespace app
