#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/reports/csv.h"
#include "models/config/names.h"
#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/snapshot/memory_timeline_writer.h"
#include "profiler/formats/snapshot/snapshot_writer.h"
#include "profiler/trace/file/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

namespace app {
namespace {

const std::vector<std::string> kFormats{"svg", "png",      "pdf",    "html",
                                        "csv", "snapshot", "chrome", "hta"};
const std::vector<std::string> kChartFormats{"svg", "png", "pdf", "html"};

bool is_chart(const std::string& format) {
    return std::find(kChartFormats.begin(), kChartFormats.end(), format) != kChartFormats.end();
}

struct ExportOptions {
    std::vector<std::string> files;
    std::string format;
    std::string table;  // empty: not asked for
    std::string output;
    std::string device;
};

CsvTable csv_table(const std::string& name) {
    return models::find_name<CsvTable>(kCsvTableNames, name).value_or(CsvTable::kAllocations);
}

/// What the rows of a table are, in the order of CsvTable.
constexpr std::array<std::string_view, 6> kRowNames{
    "allocations", "saved tensors", "ops", "kernels", "steps", "batches of a sweep"};

void warn_if_empty(const ExportOptions& options, CsvTable table, std::string_view csv) {
    if (csv.find('\n') + 1 < csv.size()) return;
    print_error(fmt::format("{} has no {}: {} holds only a header.", options.files.front(),
                            kRowNames[static_cast<std::size_t>(table)], options.output));
}

models::Result<void> write_table(const ExportOptions& options, const profiler::Trace& trace) {
    const CsvTable table = csv_table(options.table);
    const auto device = options.device.empty() ? profiler::Id<profiler::Device>()
                                               : profiler::profiled_device(trace);
    const std::string csv = to_csv(trace, table, device);
    auto written = profiler::write_file(options.output, csv);
    if (written) warn_if_empty(options, table, csv);
    return written;
}

models::Result<void> write(const ExportOptions& options,
                           const std::vector<profiler::NamedTrace>& traces) {
    const profiler::Trace& trace = *traces.front().trace;
    if (options.format == "csv") return write_table(options, trace);
    if (options.format == "snapshot") return profiler::write_snapshot(trace, options.output);
    if (options.format == "chrome") return profiler::write_chrome_trace(trace, options.output);
    if (options.format == "hta") return profiler::write_memory_timeline(trace, options.output);
    return write_timeline(traces, options.format, options.output);
}

/// The format that the extension of the output names, if it differs from --to; else empty.
std::string promised_format(const ExportOptions& options) {
    const std::string extension = std::filesystem::path(options.output).extension().string();
    for (const std::string& format : kFormats) {
        if (extension == "." + format && format != options.format) return format;
    }
    return {};
}

/// The formats of other profilers may replace files of theirs, but not those that are read.
bool replaces_a_trace(const ExportOptions& options) {
    const bool writes_a_trace = options.format == "snapshot" || options.format == "chrome";
    const bool is_ours = options.output.find(".tscope") != std::string::npos;
    if (!writes_a_trace || is_ours) return would_replace_a_trace(options.output, options.files);
    const auto target = profiler::target_of(options.output);
    return (target && profiler::holds_trace(*target)) || is_one_of(options.output, options.files);
}

/// What the name of the file should end with.
std::string extension_of(const std::string& format) {
    if (format == "snapshot") return "pickle";
    if (format == "chrome") return "pt.trace.json.gz";
    return format == "hta" ? "raw.json.gz" : format;
}

/// The last extensions of files that the format may replace.
std::vector<std::string> replaced_extensions(const std::string& format) {
    if (format == "snapshot") return {".pickle", ".pkl"};
    return {format == "chrome" || format == "hta" ? ".json" : "." + format};
}

/// A name in place of one that is refused.
std::string suggested_name(const ExportOptions& options) {
    const std::filesystem::path refused(options.output);
    const std::string ending = "." + extension_of(options.format);
    const std::string name = refused.stem().string() + ending;
    return name == refused.filename() ? refused.stem().string() + "_2" + ending : name;
}

/// What the options say that cannot be; empty: nothing.
std::string usage_problem(const ExportOptions& options) {
    if (const std::string promised = promised_format(options); !promised.empty()) {
        return fmt::format("--to says {}, but -o {} ends in .{}: make them agree.", options.format,
                           options.output, promised);
    }
    const bool can_be_packed = options.format == "chrome" || options.format == "hta";
    if (!can_be_packed && options.output.ends_with(".gz")) {
        return fmt::format(
            "-o {} ends in .gz, but only --to chrome and --to hta write packed files: leave the "
            "ending out.",
            options.output);
    }
    if (replaces_a_trace(options)) {
        return fmt::format(
            "-o {} names a trace or a part of one, which the export would replace; choose another "
            "name, such as {}.",
            options.output, suggested_name(options));
    }
    if (would_replace_another_kind(options.output, replaced_extensions(options.format))) {
        return fmt::format(
            "{} is there already and does not end as --to {} does; choose another name, such as "
            "{}.",
            replaced_file(options.output), options.format, suggested_name(options));
    }
    if (options.format != "csv" && !options.table.empty()) {
        return fmt::format(
            "--table belongs to --to csv, but --to {} writes no table: leave one of them out.",
            options.format);
    }
    if (!is_chart(options.format) && options.files.size() > 1) {
        return fmt::format("--to {} takes one trace, not {}.", options.format,
                           options.files.size());
    }
    return {};
}

Outcome run_export(const ExportOptions& options, Output& output) {
    if (const std::string problem = usage_problem(options); !problem.empty()) {
        return wrong_usage(models::Error{problem});
    }
    std::vector<profiler::NamedTrace> traces;
    for (const std::string& file : options.files) {
        auto named = open_trace(file, options.device);
        if (!named) return failed(named.error());
        traces.push_back(std::move(*named));
    }
    std::error_code ignored;  // the write reports a folder that cannot be made
    std::filesystem::create_directories(profiler::folder_of(options.output), ignored);
    const auto written = write(options, traces);
    if (!written) return failed(written.error());
    output.document(
        {{"files", options.files}, {"format", options.format}, {"output", options.output}});
    // Into a pipe or a device, the export itself is what is read.
    if (std::filesystem::is_regular_file(options.output, ignored)) {
        output.line("wrote " + options.output);
    }
    return ExitCode::kOk;
}

}  // namespace

void add_export_command(CommandLine& line) {
    Command& command =
        line.add_command("export", "A trace as a chart or as a table for other tools");
    auto options = std::make_shared<ExportOptions>();
    command.add({.names = "FILE",
                 .help = "trace; two for a chart of both, one above the other",
                 .is_required = true,
                 .max_values = 2},
                &options->files);
    command.add({.names = "--to",
                 .help = "svg, png, pdf or html (memory over time), csv (a table), or a file of "
                         "another profiler: snapshot, chrome or hta",
                 .value_name = "FORMAT",
                 .is_required = true,
                 .choices = kFormats},
                &options->format);
    command.add(
        {.names = "--table",
         .help = "with --to csv: allocations (without it), ledger, ops, kernels, steps or sweep",
         .value_name = "NAME",
         .choices = {kCsvTableNames.begin(), kCsvTableNames.end()}},
        &options->table);
    command.add({.names = "-o,--output",
                 .help = "file to write",
                 .value_name = "FILE",
                 .is_required = true},
                &options->output);
    command.add(device_option(), &options->device);
    command.footer(
        "Recipes side by side: temposcope compare ... --charts DIR.\n\n"
        "Examples:\n"
        "  temposcope export out/tempo.tscope --to svg -o tempo.svg\n"
        "  temposcope export out/original.tscope out/tempo.tscope --to pdf -o both.pdf\n"
        "  temposcope export out/tempo.tscope --to csv --table ledger -o ledger.csv\n"
        "  temposcope export out/tempo.tscope --to snapshot -o tempo.pickle\n"
        "  temposcope export out/tempo.tscope --to chrome -o tempo.pt.trace.json.gz\n"
        "  temposcope export out/tempo.tscope --to hta -o tempo.raw.json.gz\n");
    command.on_run([options](Output& output) { return run_export(*options, output); });
}

}  // namespace app
