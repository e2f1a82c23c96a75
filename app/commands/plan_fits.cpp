#include "app/commands/plan_fits.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/fits_report.h"
#include "app/commands/reports/chart_files.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/trace_workers.h"
#include "app/prediction/virtual_cards.h"
#include "app/user/settings.h"
#include "profiler/planner/plan_row.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::Result;

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
    constexpr std::array<std::string_view, 21> kMeaningful{
        "--model",     "--positions", "--head",         "--recipe",     "--precision",
        "--seq",       "--padding",   "--layers",       "--hidden",     "--heads",
        "--vocab",     "--dropout",   "--intermediate", "--gpu",        "--parallel",
        "--chart",     "--output",    "--json",         "--world-size", "--attention-dropout",
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
    const auto spreads = parse_spreads(options.parallel, options.world_sizes);
    if (!spreads) return wrong_usage(spreads.error());
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (!options.chart.empty()) {
        if (const auto ok = check_chart_file(options.chart); !ok) return wrong_usage(ok.error());
    }
    for (const std::string& file : {options.output, options.chart}) {
        if (const auto ok = check_result_file(file); !ok) return failed(ok.error());
    }
    std::vector<FitRow> rows = make_fit_rows(*request, *data, *spreads);
    if (const auto ok = search_fits(rows); !ok) return failed(ok.error());
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
