#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/reports/movement_report.h"
#include "app/user/settings.h"
#include "models/config/names.h"
#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/plan.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace app {
namespace {

using namespace profiler;

struct MovementCommandOptions {
    std::string file;
    std::string by = "op";
    std::string ops = "run";
    std::string scope = "layers";
    std::string gpu;
    std::string charts;                // folder
    std::vector<std::string> formats;  // of the charts; empty: svg
    std::string output;
};

/// CLI11 has checked the names.
template <typename Enum, std::size_t N>
Enum chosen(const std::array<std::string_view, N>& names, const std::string& name) {
    return models::find_name<Enum>(names, name).value_or(Enum{});
}

models::Result<PeaksOfTrace> find_peaks(const Trace& trace, const std::string& gpu) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    if (gpu.empty()) return peaks_of_trace(trace, data->gpus);
    const auto found = find_gpu(data->gpus, gpu);
    if (!found) return tl::unexpected(found.error());
    return peaks_of_trace(trace, data->gpus, *found);
}

bool counts_movement(const Trace& trace) {
    const auto is_counted = [](int64_t count) { return count > 0; };
    return std::ranges::any_of(trace.ops.column<&Op::flop>(), is_counted) ||
           std::ranges::any_of(trace.ops.column<&Op::read_words>(), is_counted) ||
           std::ranges::any_of(trace.ops.column<&Op::written_words>(), is_counted);
}

std::string why_empty(const MovementDocument& document) {
    const std::string& file = document.named.file;
    if (!counts_movement(*document.named.trace)) {
        return fmt::format(
            "{} does not say what its ops read and write: name a capture, a predicted step, or "
            "a program that temposcope run recorded.",
            file);
    }
    if (document.scope == MovementScope::kAll) {
        return fmt::format("{} has no op whose arithmetic or data is counted: name another step.",
                           file);
    }
    return fmt::format(
        "{} has no op in its layers whose arithmetic or data is counted: choose --scope all.",
        file);
}

models::Result<void> fill_report(MovementDocument& document) {
    if (document.ops == MovementOps::kRun) {
        document.report = movement_of(*document.named.trace, document.scope);
        return document.report.rows.empty() ? models::fail("{}", why_empty(document))
                                            : models::Result<void>();
    }
    if (!document.workload) {
        return models::fail(
            "{} does not say which step it ran, so its logical ops are not known: name a capture "
            "or a predicted step, or leave out --ops logical.",
            document.named.file);
    }
    document.report = logical_movement(*document.workload);
    if (document.report.rows.empty()) {
        return models::fail("The logical ops of {} are not known: leave out --ops logical.",
                            document.workload->model.name);
    }
    return {};
}

/// Charts are named in what is printed, but not in the file of -o.
models::Result<void> write_charts(const MovementCommandOptions& options,
                                  MovementDocument& document) {
    if (options.charts.empty()) return {};
    const StepIndex step(*document.named.trace);
    const MovementChartsRequest request{.view = {.steps = {&step},
                                                 .peaks = {document.peaks},
                                                 .ops = document.ops,
                                                 .scope = document.scope},
                                        .folder = options.charts,
                                        .formats = formats_or_svg(options.formats)};
    auto written = write_movement_charts(request);
    if (!written) return tl::unexpected(written.error());
    document.charts = std::move(*written);
    document.files.insert(document.files.end(), document.charts.begin(), document.charts.end());
    return {};
}

/// What the options say that cannot be; empty: nothing.
std::string usage_problem(const MovementCommandOptions& options) {
    if (options.ops == "logical" && options.scope == "all") {
        return "--ops logical counts the layers only: leave out --scope all.";
    }
    if (!options.formats.empty() && options.charts.empty()) {
        return std::string(kFormatWithoutCharts);
    }
    if (const auto ok = check_ending(options.output); !ok) return ok.error().message;
    if (!options.output.empty() && would_replace_a_trace(options.output, {options.file})) {
        return fmt::format("-o {} would replace a trace: name another file.", options.output);
    }
    return {};
}

Outcome run_movement(const MovementCommandOptions& options, Output& output) {
    if (const std::string problem = usage_problem(options); !problem.empty()) {
        return wrong_usage(models::Error{problem});
    }
    auto named = open_trace(options.file);
    if (!named) return failed(named.error());
    MovementDocument document{.named = std::move(*named),
                              .workload = {},
                              .ops = chosen<MovementOps>(kMovementOpsNames, options.ops),
                              .scope = chosen<MovementScope>(kMovementScopeNames, options.scope),
                              .by = chosen<MovementBy>(kMovementByNames, options.by),
                              .peaks = {},
                              .report = {},
                              .charts = {},
                              .files = {}};
    document.workload = workload_of(*document.named.trace);
    auto peaks = find_peaks(*document.named.trace, options.gpu);
    if (!peaks) return options.gpu.empty() ? failed(peaks.error()) : wrong_usage(peaks.error());
    document.peaks = std::move(*peaks);
    if (auto ok = fill_report(document); !ok) return failed(ok.error());
    const Report report{.json = [&] { return movement_json(document); },
                        .text = [&](Output& text) { print_movement(text, document); },
                        .csv = [&] { return movement_csv(document); }};
    if (auto ok = write_report(report, options.output); !ok) return failed(ok.error());
    if (!options.output.empty()) document.files.push_back(options.output);
    if (auto ok = write_charts(options, document); !ok) return failed(ok.error());
    return emit(output, report);
}

}  // namespace

void add_movement_command(CommandLine& line) {
    Command& command = line.add_command(
        "movement",
        "Arithmetic, data movement and limits of each op: is it memory that it waits for?");
    auto options = std::make_shared<MovementCommandOptions>();
    command.add({.names = "FILE", .help = "trace", .is_required = true}, &options->file);
    command.add({.names = "--by",
                 .help = "a row for each op, class or layer",
                 .value_name = "GROUP",
                 .choices = {kMovementByNames.begin(), kMovementByNames.end()}},
                &options->by);
    command.add({.names = "--ops",
                 .help = "the ops that ran, or the logical ones that papers count",
                 .value_name = "OPS",
                 .choices = {kMovementOpsNames.begin(), kMovementOpsNames.end()}},
                &options->ops);
    command.add({.names = "--scope",
                 .help = "in the layers, or all: loss, head and optimizer too",
                 .value_name = "SCOPE",
                 .choices = {kMovementScopeNames.begin(), kMovementScopeNames.end()}},
                &options->scope);
    command.add({"--gpu", "peaks of this GPU (without it: of the one that the trace names)", "ID"},
                &options->gpu);
    command.add({"--charts", "write the roofline and the data-flow graph into this folder", "DIR"},
                &options->charts);
    command.add({.names = "--format",
                 .help = "of the charts: svg (the default), png, pdf, html",
                 .value_name = "LIST",
                 .choices = {"svg", "png", "pdf", "html"}},
                &options->formats);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options->output);
    command.footer(
        "A word is one element, whatever its type. An op moves each element of its inputs and\n"
        "outputs once.\n"
        "MUE, the memory usage efficiency, is (Q / D) (B / B^): Q the bytes that an op has to "
        "move,\n"
        "D those that it moved, B the bandwidth at which it did, B^ the peak. The larger of MUE "
        "and\n"
        "% of peak is bold: it says which limit the op is nearer to.\n\n"
        "Examples:\n"
        "  temposcope movement out/tempo.tscope\n"
        "  temposcope movement out/tempo.tscope --by class\n"
        "  temposcope movement out/original.tscope --ops logical --gpu v100-16gb\n"
        "  temposcope movement out/tempo.tscope --charts charts --format svg,pdf\n");
    command.on_run([options](Output& output) { return run_movement(*options, output); });
}

}  // namespace app
