#include "app/commands/bench_request.h"
#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/bench_report.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/worker/measure_benchmarks.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "profiler/planner/benchmark_prediction.h"
#include "profiler/planner/data/published_benchmarks.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::Result;

/// The published figure that stands beside a prediction, if there is one.
std::optional<BenchRow> published_row(const PredictedTask& task) {
    const PublishedBenchmark* published =
        find_published(published_benchmarks(), task.benchmark, task.gpu->id, task.published_setup);
    if (published == nullptr) return std::nullopt;
    BenchRow row{.benchmark = task.benchmark,
                 .device = task.gpu->id,
                 .source = BenchSource::kPublished,
                 .setup = task.published_setup};
    row.time.time_ns = time_ns_of(*published).value_or(0);
    row.time.peak_allocated_bytes = published->peak_bytes.value_or(-1);
    return row;
}

Result<BenchRow> predicted_row(const PredictedTask& task, const PlannerData& data,
                               const StepSource& source) {
    BenchRow row{.benchmark = task.benchmark,
                 .device = task.gpu->id,
                 .source = BenchSource::kPredicted,
                 .setup = task.published_setup};
    auto predicted = predict_benchmark(task.benchmark, *task.gpu, *task.environment, data, source);
    if (predicted) {
        row.time = predicted->time;
        row.notes = std::move(predicted->notes);
        return row;
    }
    if (predicted.error().out_of_memory) return tl::unexpected(predicted.error());
    row.reason = with_options(predicted.error().message, predicted.error().fields);
    return row;
}

/// Adds a row for each prediction, and the published row beside it.
tl::expected<void, Failure> add_predictions(const BenchRequest& request, const PlannerData& data,
                                            std::vector<BenchRow>& rows) {
    if (request.predicted.empty()) return {};
    std::vector<const Gpu*> gpus;
    for (const PredictedTask& task : request.predicted) {
        if (std::find(gpus.begin(), gpus.end(), task.gpu) == gpus.end()) gpus.push_back(task.gpu);
    }
    TraceWorkers workers(gpus, TraceDetail::kForPlan);
    const CancelOnInterrupt cancel(workers);
    Progress progress;
    constexpr std::chrono::seconds kDelay{2};  // most predictions take less
    const auto start = std::chrono::steady_clock::now();
    const auto count = static_cast<double>(request.predicted.size());
    double done = 0;
    for (const PredictedTask& task : request.predicted) {
        const double share = done++ / count;
        if (std::chrono::steady_clock::now() - start > kDelay) {
            progress.update(share,
                            fmt::format("bench: {} on {}", describe(task.benchmark), task.gpu->id));
        }
        auto row = predicted_row(task, data, workers.source());
        if (workers.is_cancelled()) {
            return fail_with(ExitCode::kFailed, "The benchmark was cancelled.");
        }
        if (!row) return failed(row.error());
        rows.push_back(std::move(*row));
        if (auto published = published_row(task)) rows.push_back(std::move(*published));
    }
    return {};
}

tl::expected<void, Failure> add_measurements(const BenchRequest& request,
                                             const BenchOptions& options,
                                             std::vector<BenchRow>& rows) {
    if (request.measured.empty()) return {};
    auto measured = measure_benchmarks(
        request.measured,
        {.device = request.device, .seconds = request.seconds, .steps = options.steps});
    if (!measured) return tl::unexpected(measured.error());
    for (std::size_t i = 0; i < request.measured.size(); ++i) {
        rows.push_back({.benchmark = request.measured[i],
                        .device = measured->device,
                        .source = BenchSource::kMeasured,
                        .time = measured->rows[i].time,
                        .reason = std::move(measured->rows[i].reason),
                        .notes = {}});
        std::string& note = measured->rows[i].note;
        if (!note.empty()) rows.back().notes.push_back(std::move(note));
    }
    return {};
}

Result<void> write_files(const BenchOptions& options, BenchDocument& document) {
    if (!options.charts.empty()) {
        auto written = write_bench_charts(document.rows, options.charts, options.formats);
        if (!written) return tl::unexpected(written.error());
        document.charts = std::move(*written);
    }
    if (options.output.empty()) return {};
    return write_file(options.output, options.output.ends_with(".csv")
                                          ? bench_csv(document)
                                          : json_text(bench_json(document)));
}

Outcome run_bench(const BenchOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_bench_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    BenchDocument document;
    if (auto ok = add_measurements(*request, options, document.rows); !ok) {
        return tl::unexpected(ok.error());
    }
    if (auto ok = add_predictions(*request, *data, document.rows); !ok) {
        return tl::unexpected(ok.error());
    }
    const bool has_figure = std::any_of(document.rows.begin(), document.rows.end(),
                                        [](const BenchRow& row) { return row.reason.empty(); });
    if (!has_figure) return fail_with(ExitCode::kFailed, "{}", document.rows.front().reason);
    if (auto ok = write_files(options, document); !ok) return failed(ok.error());
    if (output.json()) {
        output.document(bench_json(document));
    } else {
        print_bench(output, document);
    }
    return ExitCode::kOk;
}

}  // namespace

void add_bench_command(CommandLine& line) {
    Command& command = line.add_command(
        "bench",
        "Time products, passes over memory, layers and models: here, and predicted for GPUs");
    auto options = std::make_shared<BenchOptions>();
    options->workload.head.clear();  // of the model
    add_bench_options(command, *options);
    command.footer(
        list_recipes() +
        "\n"
        "The benchmarks of mli/transformers-benchmarks. Model TFLOPS count three times the\n"
        "products of forward; hardware TFLOPS count every product that runs, so what is computed\n"
        "again counts in them alone. Where a figure was published for a predicted GPU, it stands\n"
        "beside the prediction. charts runs the published layers and models of these GPUs.\n\n"
        "Examples:\n"
        "  temposcope bench matmul --device cpu,predict:rtx3090ti\n"
        "  temposcope bench layer --model bert-large --seq 128 --batch 2,16,128 \\\n"
        "      --device predict:rtx3090ti --setup mli-2023\n"
        "  temposcope bench model --model bert-large --seq 512 --batch 8 --accumulate 1,4 \\\n"
        "      --recipe original,checkpoint --device predict:a100-80gb\n"
        "  temposcope bench charts --device auto,predict:rtx3090ti --setup mli-2023 \\\n"
        "      --charts charts\n");
    command.on_run([options, &command](Output& output) -> Outcome {
        if (const auto ok = check_bench_options(command, *options); !ok) {
            return wrong_usage(ok.error());
        }
        options->names_setup = command.is_given("--setup");
        return run_bench(*options, output);
    });
}

}  // namespace app
