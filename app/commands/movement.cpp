#include "profiler/analysis/ops/movement.h"
#include "app/commands/command.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/chart_files.h"
#include "app/user/settings.h"
#include "models/config/names.h"
#include "models/config/workload.h"
#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/planner/plan.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/movement_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace app {
namespace {

using namespace profiler;

// ---- text, JSON and CSV -------------------------------------------------------------------------

struct MovementDocument {
    NamedTrace named;
    std::optional<models::Workload> workload = workload_of(*named.trace);
    MovementOps ops = MovementOps::kRun;
    MovementScope scope = MovementScope::kLayers;
    MovementBy by = MovementBy::kOp;
    PeaksOfTrace peaks = {};
    MovementReport report = {};
    std::vector<std::string> charts = {};  // files that were written
    std::vector<std::string> files = {};   // all that were written
};

std::optional<int64_t> known_time(const MovementWork& work) {
    return work.time_ns > 0 ? std::optional(work.time_ns) : std::nullopt;
}

nlohmann::json work_json(const MovementWork& work) {
    return {{"flop", work.flop},
            {"read_words", work.words_read},
            {"written_words", work.words_written},
            {"flop_per_word", or_null(rates_of(work, {}).flop_per_word)},
            {"time_ns", or_null(known_time(work))}};
}

/// In the order of the CSV's columns.
DataTable rows_table(const std::vector<MovementViewRow>& rows) {
    return data_table(
        pick(movement_columns(),
             {"phase", "module", "name", "class", "calls", "flop", "read_words", "written_words",
              "bytes", "flop_per_word", "flop_per_byte", "time_ns", "flop_per_s", "peak_share",
              "bandwidth_bytes_per_s", "mue", "compute_limit_ns", "memory_limit_ns", "bound"}),
        rows);
}

MovementWork attention_of_layer(const models::Workload& workload) {
    return attention_of(logical_ops(workload), workload.precision);
}

bool is_logical(const MovementDocument& document) {
    return document.ops == MovementOps::kLogical && document.workload.has_value();
}

std::vector<MovementViewRow> rows_of(const MovementDocument& document) {
    return movement_rows(rows_by(document.report, document.by), document.peaks.peaks,
                         document.peaks.fit_its_times);
}

std::vector<MovementClassRow> classes_of(const MovementDocument& document) {
    return movement_classes(document.report, document.workload ? &*document.workload : nullptr,
                            document.scope);
}

std::optional<double> bound_share(const MovementDocument& document) {
    if (!document.peaks.fit_its_times) return std::nullopt;
    return memory_bound_share(document.report, document.peaks.peaks);
}

const std::vector<std::string>& notes_of(const MovementDocument& document) {
    static const std::vector<std::string> kNone;
    return document.ops == MovementOps::kLogical ? kNone : document.peaks.notes;
}

std::string what_is_listed(const MovementDocument& document) {
    if (document.ops == MovementOps::kLogical) {
        const int64_t num_layers = document.report.num_layers;
        return fmt::format(
            "Logical ops of {}, forward and backward: bias, dropout and residual are passes of "
            "their own, and nothing is recomputed.",
            num_layers == 1 ? "the layer" : fmt::format("all {} layers", num_layers));
    }
    const bool is_predicted = document.named.trace->run().source == Source::kPredicted;
    const std::string times =
        is_predicted ? fmt::format(
                           "Times of kernels and copies are predicted; of steps they are "
                           "±{:.0f} %.",
                           100 * time_error_of(*document.named.trace))
        : document.report.has_device_times ? "Times are of kernels and copies."
                                           : "Times are of calls.";
    return fmt::format("The ops of one {}step, {}. {}", is_predicted ? "predicted " : "",
                       document.scope == MovementScope::kLayers
                           ? "forward and backward in the layers"
                           : "with loss, head and optimizer",
                       times);
}

std::string peaks_sentence(const DevicePeaks& peaks) {
    const std::string bandwidth = format_amount(peaks.bytes_per_s, "B/s");
    if (peaks.flop_per_s <= 0) return fmt::format("Peak of {}: {}.", peaks.name, bandwidth);
    return fmt::format("Peaks of {}: {} and {}.", peaks.name,
                       format_amount(peaks.flop_per_s, "flop/s"), bandwidth);
}

void print_movement(Output& output, const MovementDocument& document) {
    const Trace& trace = *document.named.trace;
    output.line(output.styled(fmt::format("Data movement: {}", document.named.file), Style::kBold));
    output.line(describe_run(trace));
    output.line(what_is_listed(document));
    if (!document.peaks.peaks.name.empty()) output.line(peaks_sentence(document.peaks.peaks));
    output.line();
    output.table(movement_table(rows_of(document), document.by));
    output.line();
    const auto add_sum = [&](const char* what, const MovementWork& work) {
        output.line(fmt::format("{}: {}.", what, sum_text(work)));
    };
    add_sum("Sum", total_of(document.report.rows));
    if (is_logical(document)) {
        add_sum("One layer", work_of_layer(*document.workload));
        add_sum("Its attention, forward", attention_of_layer(*document.workload));
    }
    if (const auto share = bound_share(document)) {
        output.line(fmt::format("Memory-bound ops take {} of the time.", format_percent(*share)));
    }
    if (document.report.other_time_ns > 0) {
        output.line(fmt::format("Ops that are not counted take another {}.",
                                format_duration(document.report.other_time_ns)));
    }
    output.line();
    output.table(movement_class_table(classes_of(document)));
    for (const std::string& note : notes_of(document)) {
        output.line();
        output.line(note);
    }
    if (document.files.empty()) return;
    output.line();
    for (const std::string& file : document.files) output.line("wrote " + file);
}

nlohmann::json movement_json(const MovementDocument& document) {
    nlohmann::json json = describe_trace(document.named);
    const DevicePeaks& peaks = document.peaks.peaks;
    const auto positive = [](double value) {
        return value > 0 ? nlohmann::json(value) : nlohmann::json();
    };
    json["ops"] = kMovementOpsNames[static_cast<std::size_t>(document.ops)];
    json["scope"] = kMovementScopeNames[static_cast<std::size_t>(document.scope)];
    json["by"] = kMovementByNames[static_cast<std::size_t>(document.by)];
    json["gpu"] = peaks.gpu.empty() ? nlohmann::json() : nlohmann::json(peaks.gpu);
    json["peak_flop_per_s"] = positive(peaks.flop_per_s);
    json["peak_bandwidth_bytes_per_s"] = positive(peaks.bytes_per_s);
    json["memory_bound_time_share"] = or_null(bound_share(document));
    json["other_time_ns"] = document.report.other_time_ns;
    json["total"] = work_json(total_of(document.report.rows));
    json["layer"] =
        is_logical(document) ? work_json(work_of_layer(*document.workload)) : nlohmann::json();
    json["attention"] =
        is_logical(document) ? work_json(attention_of_layer(*document.workload)) : nlohmann::json();
    json["classes"] = json_rows(data_table(movement_class_columns(), classes_of(document)));
    json["notes"] = notes_of(document);
    json["charts"] = document.charts;
    json["rows"] = json_rows(rows_table(rows_of(document)));
    return json;
}

std::string movement_csv(const MovementDocument& document) {
    return to_csv(rows_table(rows_of(document)), Decimals::kAsJson);
}

struct MovementCommandOptions {
    std::string file;
    std::string by = "op";
    std::string ops = "run";
    std::string scope = "layers";
    std::string gpu;
    ChartsForm charts;
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
    if (options.charts.folder.empty()) return {};
    const StepIndex step(*document.named.trace);
    auto written = write_movement_charts(
        {.steps = {&step}, .peaks = {document.peaks}, .ops = document.ops, .scope = document.scope},
        options.charts);
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
    if (const auto ok = check_formats(options.charts); !ok) return ok.error().message;
    if (const auto ok = check_ending(options.output); !ok) return ok.error().message;
    return {};
}

Outcome run_movement(const MovementCommandOptions& options, Output& output) {
    if (const std::string problem = usage_problem(options); !problem.empty()) {
        return wrong_usage(models::Error{problem});
    }
    if (const auto ok = check_result_file(options.output, {options.file}); !ok) {
        return tl::unexpected(ok.error());
    }
    auto named = open_trace(options.file);
    if (!named) return failed(named.error());
    MovementDocument document{.named = std::move(*named),
                              .ops = chosen<MovementOps>(kMovementOpsNames, options.ops),
                              .scope = chosen<MovementScope>(kMovementScopeNames, options.scope),
                              .by = chosen<MovementBy>(kMovementByNames, options.by)};
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
        "movement", "Roofline: is each op limited by memory bandwidth or by compute?");
    command.also_called("roofline");
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
    command.add({"--gpu", "peaks of this GPU (default: the GPU that the trace names)", "ID"},
                &options->gpu);
    command.add({"--charts", "write the roofline and the data-flow graph into this folder", "DIR"},
                &options->charts.folder);
    command.add(format_option(), &options->charts.formats);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options->output);
    command.footer(
        "A word is one element, whatever its type. An op moves each element of its inputs and\n"
        "outputs once.\n"
        "MUE, the memory usage efficiency, is minimum bytes / (time x peak bandwidth). The larger\n"
        "of MUE and % of peak is bold: it says which limit the op is nearer to.\n\n"
        "Examples:\n"
        "  temposcope movement out/tempo.tscope\n"
        "  temposcope movement out/tempo.tscope --by class\n"
        "  temposcope movement out/original.tscope --ops logical --gpu v100-16gb\n"
        "  temposcope movement out/tempo.tscope --charts charts --format svg,pdf\n");
    command.on_run([options](Output& output) { return run_movement(*options, output); });
}

}  // namespace app
