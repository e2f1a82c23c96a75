#include "app/commands/bench_request.h"
#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/options/values.h"
#include "app/commands/reports/chart_files.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "profiler/planner/benchmark_prediction.h"
#include "profiler/planner/data/published_benchmarks.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/tables/columns.h"
#include "profiler/view/kernels/bench_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using models::Benchmark;
using models::Result;
using Json = nlohmann::json;
using models::BenchmarkKind;
using BenchColumn = TableColumn<BenchRow>;

// ---- the options -------------------------------------------------------------------------------

constexpr std::array<std::string_view, 5> kWhats{"matmul", "vector", "layer", "model", "charts"};

/// The modes of the command: a bit for each of kWhats, and one for charts that measure nothing.
enum BenchMode : Modes {
    kBenchMatmul = 1,
    kBenchVector = 2,
    kBenchLayer = 4,
    kBenchModel = 8,
    kBenchCharts = 16,
    kBenchPublished = 32,
    kBenchArrays = kBenchMatmul | kBenchVector,
    kBenchLayers = kBenchLayer | kBenchModel | kBenchCharts,
    kBenchTimed = kBenchArrays | kBenchLayers
};

void add_bench_options(Command& command, BenchOptions& options) {
    command.add({.names = "WHAT",
                 .help = "matmul, vector, layer, model, or charts: layers and models beside what "
                         "was published",
                 .is_required = true,
                 .choices = {kWhats.begin(), kWhats.end()}},
                &options.what);
    command.add({"--device",
                 "devices with commas between: cpu, cuda or auto (measured), predict:GPU (with a "
                 "GPU of temposcope plan)",
                 "LIST"},
                &options.device);
    command.add({"--setup", "the software environment of predictions", "NAME"}, &options.setup);
    command.add({"--size", "of matrices (n x n) and vectors (elements)", "LIST"}, &options.sizes,
                kBenchArrays);
    command.add({"--model", "models, with commas between", "LIST"}, &options.models, kBenchLayers);
    command.add({"--head", "of whole models: mlm, squad, lm or layers", "NAME"},
                &options.workload.head, kBenchModel);
    command.add({"--recipe", "recipes, " + about_recipe_list(), "LIST"}, &options.recipes,
                kBenchLayer | kBenchModel);
    command.add({"--precision", list_precisions() + ", with commas between", "LIST"},
                &options.precisions, kBenchTimed);
    command.add({"--seq", "tokens per sequence", "LIST"}, &options.lengths, kBenchLayers);
    command.add({"--batch", "sequences per step, or per micro-batch", "LIST"}, &options.batches,
                kBenchLayers);
    command.add({"--accumulate", "micro-batches of a step", "LIST"}, &options.micro_batches,
                kBenchModel);
    command.add({"--padding", "none, or random lengths with a mask", "NAME"},
                &options.workload.padding, kBenchModel);
    add_model_size_options(command, options.workload, kBenchLayers, kBenchModel);
    command.add({"--seconds", "how long each figure is measured (default: 3)", "S"},
                &options.seconds, kBenchTimed & ~kBenchModel);
    command.add({"--steps", "of a model, after a warm-up step", "N"}, &options.steps, kBenchModel);
    command.add({"--charts", "write bar charts into this folder", "DIR"}, &options.charts.folder);
    command.add(format_option("of the charts: svg, png, pdf, html (default svg)"),
                &options.charts.formats);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options.output);
}

bool measures(const BenchOptions& options) {
    const auto devices = split_list("--device", options.device);
    return !devices || std::ranges::any_of(*devices, [](const std::string& one) {
        return !one.starts_with(kPredict);
    });
}

Modes bench_mode(const BenchOptions& options) {
    const auto place = std::ranges::find(kWhats, options.what) - kWhats.begin();
    const Modes mode = 1U << place;
    return mode == kBenchCharts && !measures(options) ? kBenchPublished : mode;
}

/// Why an option that has a meaning in `modes` has none in what was asked for.
std::string refuse(const std::string& option, Modes modes, const BenchOptions& options) {
    if ((modes & kBenchCharts) != 0 && options.what == "charts") {
        return fmt::format(
            "'bench charts' predicts what was published: leave {} out, or name a device of this "
            "machine.",
            option);
    }
    std::vector<std::string_view> of;
    for (std::size_t i = 0; i < kWhats.size(); ++i) {
        if ((modes >> i & 1U) != 0) of.push_back(kWhats[i]);
    }
    return fmt::format("{} has no effect on 'bench {}', only on {}: leave it out.", option,
                       options.what, fmt::join(of, ", "));
}

// ---- predicted ---------------------------------------------------------------------------------

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
        if (std::ranges::find(gpus, task.gpu) == gpus.end()) gpus.push_back(task.gpu);
    }
    // Environments of published figures are older, and leave the choice to the others.
    std::string torch;
    for (const PredictedTask& task : request.predicted) {
        if (torch.empty()) torch = torch_for(*task.environment);
    }
    TraceWorkers workers(gpus, TraceDetail::kForPlan, torch);
    const CancelOnInterrupt cancel(workers);
    app::Progress progress(std::chrono::seconds(2));  // most predictions take less
    const auto count = static_cast<double>(request.predicted.size());
    double done = 0;
    for (const PredictedTask& task : request.predicted) {
        progress.update(done++ / count,
                        fmt::format("bench: {} on {}", describe(task.benchmark), task.gpu->id));
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

// ---- measured ----------------------------------------------------------------------------------

/// Times each benchmark on a device of this machine, one after the other in `temposcope-worker`,
/// and shows the progress. A benchmark that cannot run does not stop the others.
class Measurements {
public:
    explicit Measurements(const BenchRequest& request) : request_(request) {}

    /// Errors: cancelled; the worker is missing; no benchmark could run.
    tl::expected<std::vector<BenchRow>, Failure> run() {
        const auto count = static_cast<double>(request_.measured.size());
        for (const Benchmark& benchmark : request_.measured) {
            auto row = measure(benchmark, static_cast<double>(rows_.size()) / count);
            if (!row) return tl::unexpected(row.error());
            rows_.push_back(std::move(*row));
        }
        if (device_.empty() && !rows_.empty()) {
            return fail_with(ExitCode::kFailed, "{}", rows_.front().reason);
        }
        for (BenchRow& row : rows_) row.device = device_;
        return std::move(rows_);
    }

private:
    /// A worker that answered with an error is not used again.
    tl::expected<void, Failure> start_worker() {
        if (worker_) return {};
        auto worker = WorkerClient::start();
        if (!worker) return failed(worker.error());
        worker_.emplace(std::move(*worker));
        return {};
    }

    tl::expected<BenchRow, Failure> measure(const Benchmark& benchmark, double done) {
        if (auto ok = start_worker(); !ok) return tl::unexpected(ok.error());
        const CancelOnInterrupt cancel(*worker_);
        progress_.update(done, "bench: " + describe(benchmark));
        const auto outcome = worker_->run({.kind = RequestKind::kBenchmark,
                                           .device = request_.device,
                                           .steps = request_.steps,
                                           .benchmark = to_json(benchmark),
                                           .seconds = request_.seconds});
        BenchRow row{.benchmark = benchmark, .source = BenchSource::kMeasured};
        if (!outcome) {
            const ErrorFrame& error = outcome.error();
            if (error.cancelled) {
                return fail_with(ExitCode::kFailed, "The benchmark was cancelled.");
            }
            worker_.reset();
            row.reason = with_options(error.message, to_error(error).fields);
            return row;
        }
        const auto time = models::benchmark_time_from_json(outcome->summary);
        if (!time) return failed(time.error());
        row.time = *time;
        device_ = outcome->summary.value("device", request_.device);
        if (auto note = outcome->summary.value("note", ""); !note.empty()) {
            row.notes.push_back(std::move(note));
        }
        return row;
    }

    const BenchRequest& request_;
    app::Progress progress_;
    std::optional<WorkerClient> worker_;
    std::vector<BenchRow> rows_;
    std::string device_;  // its name; empty: nothing has run
};

// ---- text, JSON and CSV -------------------------------------------------------------------------

struct BenchDocument {
    std::vector<profiler::BenchRow> rows;
    std::vector<std::string> charts;  // files
};

bool is_model(const BenchRow& row) { return row.benchmark.kind == BenchmarkKind::kModel; }
bool is_layer(const BenchRow& row) { return row.benchmark.kind == BenchmarkKind::kLayer; }

/// What a rate and the time make of the work; none without them.
Cell flop_of(const BenchRow& row, const std::optional<double>& tflops) {
    if (!tflops) return {};
    return static_cast<int64_t>(*tflops * static_cast<double>(row.time.time_ns) * 1e3 + 0.5);
}

/// A value of benchmarks that have a workload.
template <typename Of>
BenchColumn of_workload(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) {
                const bool has_workload = is_model(row) || is_layer(row);
                return has_workload ? Cell(of(row.benchmark.workload)) : Cell();
            }};
}

template <typename Of>
BenchColumn of_model(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) {
                return is_model(row) ? Cell(of(row.benchmark.workload)) : Cell();
            }};
}

template <typename Of>
BenchColumn of_rates(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) { return Cell(of(row, rates_of(row))); }};
}

/// In the order of the CSV's columns.
std::vector<BenchColumn> bench_columns() {
    using Row = const BenchRow&;
    using Rates = const BenchRates&;
    const auto column = [](const char* id, auto value) {
        return BenchColumn{.id = id, .value = value};
    };
    return {
        column("benchmark", [](Row row) { return name_of(row.benchmark.kind); }),
        column("device", &BenchRow::device),
        column("source", [](Row row) { return name_of(row.source); }),
        column("setup", [](Row row) { return known(row.setup); }),
        column("status", [](Row row) { return status_of(row); }),
        column("reason", &BenchRow::reason),
        of_workload("model", [](auto& w) { return w.model.name; }),
        of_model("head", [](auto& w) { return name_of(w.head); }),
        of_workload("recipe", [](auto& w) { return w.recipe_name; }),
        column("precision", [](Row row) { return precision_of(row.benchmark); }),
        of_workload("seq_len", [](auto& w) { return w.seq_len; }),
        of_workload("batch_size", [](auto& w) { return w.batch_size; }),
        of_model("gradient_accumulation_steps",
                 [](auto& w) { return w.gradient_accumulation_steps; }),
        of_model("num_layers", [](auto& w) { return w.model.num_layers; }),
        column("pass",
               [](Row row) { return is_layer(row) ? Cell(pass_of(row.benchmark)) : Cell(); }),
        column("size", [](Row row) { return known(row.benchmark.size); }),
        column("time_ns", [](Row row) { return known(row.time.time_ns); }),
        column("samples", [](Row row) { return known(row.time.samples); }),
        of_rates("model_flop", [](Row row, Rates r) { return flop_of(row, r.model_tflops); }),
        of_rates("hardware_flop", [](Row row, Rates r) { return flop_of(row, r.hardware_tflops); }),
        of_rates("model_tflops", [](Row, Rates r) { return r.model_tflops; }),
        of_rates("hardware_tflops", [](Row, Rates r) { return r.hardware_tflops; }),
        of_rates("bandwidth_bytes_per_s", [](Row, Rates r) { return r.bytes_per_s; }),
        of_rates("throughput_sequences_per_s", [](Row, Rates r) { return r.sequences_per_s; }),
        column("peak_allocated_bytes",
               [](Row row) { return known(row.time.peak_allocated_bytes); }),
    };
}

/// Each sentence once, with the devices that it is about.
std::vector<std::pair<std::string, std::vector<std::string>>> sentences_of(
    const std::vector<BenchRow>& rows,
    const std::function<std::vector<std::string>(const BenchRow&)>& texts_of) {
    std::vector<std::pair<std::string, std::vector<std::string>>> sentences;
    for (const BenchRow& row : rows) {
        for (const std::string& text : texts_of(row)) {
            auto same =
                std::ranges::find_if(sentences, [&](const auto& one) { return one.first == text; });
            if (same == sentences.end()) same = sentences.insert(same, {text, {}});
            std::vector<std::string>& devices = same->second;
            if (std::ranges::find(devices, row.device) == devices.end()) {
                devices.push_back(row.device);
            }
        }
    }
    return sentences;
}

void print_sentences(Output& output, const char* heading, const std::vector<BenchRow>& rows,
                     const std::function<std::vector<std::string>(const BenchRow&)>& texts_of) {
    const auto sentences = sentences_of(rows, texts_of);
    if (sentences.empty()) return;
    output.heading(heading);
    for (const auto& [text, devices] : sentences) {
        output.line(fmt::format("  {}: {}", fmt::join(devices, ", "), text));
    }
}

void print_bench(Output& output, const BenchDocument& document) {
    for (const BenchTable& table : bench_tables(document.rows)) {
        output.heading(table.title);
        output.table(table.table);
    }
    print_sentences(output, "Why not", document.rows, [](const BenchRow& row) {
        return row.reason.empty() ? std::vector<std::string>() : std::vector{row.reason};
    });
    const auto notes_of = [](BenchSource source) {
        return [source](const BenchRow& row) {
            return row.source == source ? row.notes : std::vector<std::string>();
        };
    };
    print_sentences(output, "Measurements", document.rows, notes_of(BenchSource::kMeasured));
    print_sentences(output, "Assumptions", document.rows, notes_of(BenchSource::kPredicted));
    for (const std::string& file : document.charts) output.line("wrote " + file);
}

Json bench_json(const BenchDocument& document) {
    Json rows = json_rows(data_table(bench_columns(), document.rows));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["notes"] = document.rows[i].notes;
    return {{"charts", document.charts}, {"rows", std::move(rows)}};
}

std::string bench_csv(const BenchDocument& document) {
    return to_csv(data_table(bench_columns(), document.rows), Decimals::kAsJson);
}

// ---- the command -------------------------------------------------------------------------------

Outcome run_bench(const BenchOptions& options, Output& output) {
    if (const auto ok = check_formats(options.charts); !ok) return wrong_usage(ok.error());
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_bench_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
    auto rows = Measurements(*request).run();
    if (!rows) return tl::unexpected(rows.error());
    BenchDocument document{.rows = std::move(*rows)};
    if (auto ok = add_predictions(*request, *data, document.rows); !ok) {
        return tl::unexpected(ok.error());
    }
    const bool has_figure =
        std::ranges::any_of(document.rows, [](const BenchRow& row) { return row.reason.empty(); });
    if (!has_figure) return fail_with(ExitCode::kFailed, "{}", document.rows.front().reason);
    if (!options.charts.folder.empty()) {
        auto written = write_bench_charts(document.rows, options.charts);
        if (!written) return failed(written.error());
        document.charts = std::move(*written);
    }
    return emit(output,
                {.json = [&] { return bench_json(document); },
                 .text = [&](Output& text) { print_bench(text, document); },
                 .csv = [&] { return bench_csv(document); }},
                options.output);
}

}  // namespace

void add_bench_command(CommandLine& line) {
    Command& command = line.add_command(
        "bench", "Time matmuls, memory passes, layers and models, here and predicted for GPUs");
    auto options = std::make_shared<BenchOptions>();
    options->workload.head.clear();  // of the model
    add_bench_options(command, *options);
    command.footer(
        list_recipes() +
        "\n"
        "The benchmarks of mli/transformers-benchmarks. Model TFLOPS count three times the\n"
        "matmuls of forward; hardware TFLOPS include recomputation, model TFLOPS do not. If a\n"
        "figure was published for a predicted GPU, it is shown next to the prediction. charts\n"
        "runs the published layers and models of these GPUs.\n\n"
        "Examples:\n"
        "  temposcope bench matmul --device cpu,predict:rtx3090ti\n"
        "  temposcope bench layer --model bert-large --seq 128 --batch 2,16,128 \\\n"
        "      --device predict:rtx3090ti --setup mli-2023\n"
        "  temposcope bench model --model bert-large --seq 512 --batch 8 --accumulate 1,4 \\\n"
        "      --recipe original,checkpoint --device predict:a100-80gb\n"
        "  temposcope bench charts --device auto,predict:rtx3090ti --setup mli-2023 \\\n"
        "      --charts charts\n");
    const auto run = [options, &command](Output& output) {
        options->names_setup = command.is_given("--setup");
        return run_bench(*options, output);
    };
    const auto refuse_option = [options, &command](const std::string& option) {
        return refuse(option, command.modes_of(option), *options);
    };
    command.on_run({{.bit_by_value = [options] { return bench_mode(*options); },
                     .refuse = refuse_option,
                     .run = run}});
}

}  // namespace app
