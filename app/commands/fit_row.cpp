#include "app/commands/fit_row.h"

#include "app/commands/batch_report.h"
#include "app/commands/console/progress.h"
#include "app/commands/options/list_option.h"
#include "app/commands/options/number_option.h"
#include "app/commands/worker/built_in_program.h"
#include "app/prediction/program_target.h"
#include "models/config/validity.h"
#include "profiler/analysis/throughput.h"
#include "profiler/planner/plan_row.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace app {

using namespace profiler;

namespace {

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
std::optional<ProgramCase> case_of(FitRow& row) {
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
        "{} largest batches, by runs of 2 or 3 steps on virtual cards: about {} runs, as many "
        "at a time as this machine has cores and memory for",
        cases.size(), expected_runs(cases));
}

}  // namespace

std::string FitRow::gpus() const { return fmt::format("{} x {}", world_size, gpu->id); }

int64_t FitRow::sequences_per_step(const BatchTry& at) const {
    models::Workload at_batch = workload;
    at_batch.batch_size = at.batch_size;
    return models::sequences_per_step(at_batch, parallel, world_size);
}

std::optional<double> FitRow::sequences_per_s(const BatchTry& at) const {
    if (at.step_time_ns <= 0) return std::nullopt;
    return profiler::sequences_per_s(sequences_per_step(at), at.step_time_ns);
}

models::Result<std::vector<Spread>> parse_spreads(const std::string& parallel_list,
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

std::vector<FitRow> make_fit_rows(const PlanRequest& request, const PlannerData& data,
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

models::Result<void> search_fits(std::vector<FitRow>& rows, BatchOrder order) {
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
    if (order == BatchOrder::kGuessed) progress.update(-1, about_runs(cases));
    auto found = find_largest_batches(
        kBatchPlaceholder, cases,
        [&](const ProgramCase& of, const BatchTry& one) {
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

std::string why_none(const FitRow& row) {
    if (!row.impossible.empty()) return "impossible";
    return row.failure.empty() ? "does not fit" : "failed";
}

}  // namespace app
