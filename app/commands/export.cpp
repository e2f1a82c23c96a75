#include "app/commands/command.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/reports/reports.h"
#include "models/config/names.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/snapshot/memory_timeline_writer.h"
#include "profiler/formats/snapshot/snapshot_writer.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;

// ---- tables -------------------------------------------------------------------------------------

enum class CsvTable : uint8_t { kAllocations, kLedger, kOps, kKernels, kSteps, kSweep };

constexpr std::array<std::string_view, 6> kCsvTableNames{"allocations", "ledger", "ops",
                                                         "kernels",     "steps",  "sweep"};
/// What the rows of a table are, in the order of CsvTable.
constexpr std::array<std::string_view, 6> kRowNames{
    "allocations", "saved tensors", "ops", "kernels", "steps", "batches of a sweep"};

/// Writes one line of values after the other. A trace has millions of rows, too many for a
/// DataTable.
class CsvWriter {
public:
    template <typename... Cells>
    void row(const Cells&... cells) {
        bool first = true;
        (cell(cells, first), ...);
        text_.push_back('\n');
    }
    std::string take() { return std::move(text_); }

private:
    template <typename T>
    void cell(const T& value, bool& first) {
        if (!first) text_.push_back(',');
        first = false;
        if constexpr (std::is_convertible_v<T, std::string_view>) {
            text_ += csv_cell(value);
        } else {
            fmt::format_to(std::back_inserter(text_), "{}", value);
        }
    }

    std::string text_;
};

std::string_view op_name(const Trace& trace, Id<Op> op) {
    return op.valid() ? trace.text(trace.ops.get<&Op::name>(op)) : std::string_view();
}

std::string_view module_path_of(const Trace& trace, Id<Op> op) {
    if (!op.valid()) return {};
    const Id<ModulePath> module_path = trace.ops.get<&Op::module_path>(op);
    return module_path.valid() ? trace.text(trace.module_paths.get<&ModulePath::path>(module_path))
                               : std::string_view();
}

std::string_view device_name(const Trace& trace, Id<Device> device) {
    return device.valid() ? trace.text(trace.devices.get<&Device::name>(device))
                          : std::string_view();
}

/// The phase in which a block was allocated.
class PhaseOfBlock {
public:
    explicit PhaseOfBlock(const Trace& trace) : trace_(trace), phases_(trace) {
        for (std::size_t i = 0; i < trace.devices.size(); ++i) {
            const Id<Device> device(i);
            devices_.push_back(
                {num_start_events(trace, device), has_numbers_of_phases(trace, device)});
        }
        no_device_ = {num_start_events(trace), true};
    }

    /// Its step and its name; empty outside of phases. Phases have the event numbers of the
    /// profiled device; other devices may count for themselves.
    std::pair<std::string, std::string_view> operator()(const Allocation& block) const {
        const OfDevice& device = of_device(block.device);
        if (block.alloc_event < device.num_start_events) return {};
        if (device.has_numbers) return at(block.alloc_event);
        if (!block.op.valid()) return {};
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(block.op);
        return phase.valid() ? text_of(trace_.phases[phase])
                             : std::pair<std::string, std::string_view>();
    }

private:
    std::pair<std::string, std::string_view> at(int64_t event) const {
        const auto phase = phases_.at(event);
        return phase ? text_of(*phase) : std::pair<std::string, std::string_view>();
    }

    struct OfDevice {
        int64_t num_start_events = 0;
        bool has_numbers = true;
    };
    const OfDevice& of_device(Id<Device> device) const {
        return device.valid() ? devices_[device.index()] : no_device_;
    }

    static std::pair<std::string, std::string_view> text_of(const Phase& phase) {
        return {phase.step.valid() ? fmt::to_string(phase.step.value) : std::string(),
                name_of(phase.kind)};
    }

    const Trace& trace_;
    std::vector<OfDevice> devices_;
    OfDevice no_device_;  // of blocks that name none
    PhasesByEvent phases_;
};

std::string allocations_csv(const Trace& trace, Id<Device> device) {
    CsvWriter csv;
    csv.row("alloc_event", "free_event", "alloc_ns", "free_ns", "requested_bytes", "block_bytes",
            "address", "step", "phase", "role", "tensor", "op", "scope", "freeing_op", "site",
            "role_source", "device");
    const PhaseOfBlock phase_of(trace);
    const std::vector<StringId> names = names_of_storages(trace);
    const CallSites sites(trace);
    const std::string_view role_source = has_inferred_categories(trace) ? "inferred" : "recorded";
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Allocation a = trace.allocations[id];
        if (device.valid() && a.device != device) continue;
        const Category category = category_of_block(trace, id);
        const auto [step, phase] = phase_of(a);
        csv.row(a.alloc_event, a.free_requested_event, a.alloc_ns, a.free_requested_ns,
                a.requested_bytes, a.block_bytes, a.address, step, phase, name_of(category),
                a.storage.valid() ? trace.text(names[a.storage.index()]) : std::string_view(),
                op_name(trace, a.op), module_path_of(trace, a.op), op_name(trace, a.freeing_op),
                a.stack.valid() ? sites.of(a.stack) : std::string(),
                category == Category::kUnknown ? std::string_view() : role_source,
                device_name(trace, a.device));
    }
    return csv.take();
}

std::string ops_csv(const Trace& trace) {
    CsvWriter csv;
    csv.row("name", "scope", "phase", "step", "start_ns", "end_ns", "flop", "read_words",
            "written_words", "class");
    // Files of other tools do not say what ops compute and move.
    const bool is_counted = trace.run().source != Source::kImported;
    const auto counted = [&](int64_t count) {
        return is_counted ? fmt::to_string(count) : std::string();
    };
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        const Phase phase = op.phase.valid() ? trace.phases[op.phase] : Phase{};
        csv.row(trace.text(op.name), module_path_of(trace, Id<Op>(i)),
                op.phase.valid() ? name_of(phase.kind) : std::string_view(), phase.step.value,
                op.start_ns, op.end_ns, counted(op.flop), counted(op.read_words),
                counted(op.written_words), name_of(op.op_class));
    }
    return csv.take();
}

std::string kernels_csv(const Trace& trace, Id<Device> device) {
    CsvWriter csv;
    csv.row("name", "op", "scope", "stream", "start_ns", "end_ns", "grid", "block",
            "registers_per_thread", "shared_memory_bytes", "device");
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const Kernel kernel = trace.kernels[Id<Kernel>(i)];
        const Id<Device> of_kernel = kernel.stream.valid()
                                         ? trace.streams.get<&Stream::device>(kernel.stream)
                                         : Id<Device>();
        if (device.valid() && of_kernel != device) continue;
        csv.row(trace.text(kernel.name), op_name(trace, kernel.op),
                module_path_of(trace, kernel.op), kernel.stream.value, kernel.start_ns,
                kernel.end_ns, fmt::format("{}x{}x{}", kernel.grid_x, kernel.grid_y, kernel.grid_z),
                fmt::format("{}x{}x{}", kernel.block_x, kernel.block_y, kernel.block_z),
                kernel.registers_per_thread, kernel.shared_memory_bytes,
                device_name(trace, of_kernel));
    }
    return csv.take();
}

std::string steps_csv(const Trace& trace) {
    CsvWriter csv;
    csv.row("step", "start_ns", "end_ns", "step_time_ns", "peak_allocated_bytes", "loss");
    const MemoryCurve curve(trace);
    const bool is_predicted = trace.run().source == Source::kPredicted;
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        const auto whole_step = curve.sample(step.start_ns, step.end_ns, 1);
        csv.row(i, step.start_ns, step.end_ns, step.end_ns - step.start_ns,
                whole_step.empty() ? 0 : whole_step.front().allocated_bytes,
                is_predicted || std::isnan(step.loss) ? std::string() : fmt::to_string(step.loss));
    }
    return csv.take();
}

/// RFC 4180, UTF-8, a header line, "\n" line ends: texts instead of ids, exact integers, and a
/// decimal point in every locale. With a device, the rows of allocations and kernels are those of
/// this device only.
std::string table_csv(const Trace& trace, CsvTable table, Id<Device> device) {
    switch (table) {
        case CsvTable::kAllocations:
            return allocations_csv(trace, device);
        case CsvTable::kLedger:
            return to_csv(data_table(ledger_columns(), build_ledger(trace).rows));
        case CsvTable::kOps:
            return ops_csv(trace);
        case CsvTable::kKernels:
            return kernels_csv(trace, device);
        case CsvTable::kSteps:
            return steps_csv(trace);
        case CsvTable::kSweep:
            return to_csv(sweep_data(sweep_curve(trace)));
    }
    return {};
}

const std::vector<std::string> kFormats{"svg", "png",      "pdf",    "html",
                                        "csv", "snapshot", "chrome", "hta"};
const std::vector<std::string> kChartFormats{"svg", "png", "pdf", "html"};

bool is_chart(const std::string& format) {
    return std::ranges::find(kChartFormats, format) != kChartFormats.end();
}

struct ExportOptions {
    std::vector<std::string> files;
    std::string format;
    std::string table;  // empty: not asked for
    std::string output;
    std::string device;
};

void warn_if_empty(const ExportOptions& options, CsvTable table, std::string_view csv) {
    if (csv.find('\n') + 1 < csv.size()) return;
    print_error(fmt::format("{} has no {}: {} holds only a header.", options.files.front(),
                            kRowNames[static_cast<std::size_t>(table)], options.output));
}

models::Result<void> write_table(const ExportOptions& options, const Trace& trace) {
    const CsvTable table =
        models::find_name<CsvTable>(kCsvTableNames, options.table).value_or(CsvTable::kAllocations);
    const auto device = options.device.empty() ? Id<Device>() : profiled_device(trace);
    const std::string csv = table_csv(trace, table, device);
    auto written = write_file(options.output, csv);
    if (written) warn_if_empty(options, table, csv);
    return written;
}

models::Result<void> write(const ExportOptions& options, const std::vector<NamedTrace>& traces) {
    const Trace& trace = *traces.front().trace;
    if (options.format == "csv") return write_table(options, trace);
    if (options.format == "snapshot") return write_snapshot(trace, options.output);
    if (options.format == "chrome") return write_chrome_trace(trace, options.output);
    if (options.format == "hta") return write_memory_timeline(trace, options.output);
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

/// The formats of other profilers may replace files of these profilers, but not the files that are
/// read.
bool replaces_a_trace(const ExportOptions& options) {
    const bool writes_a_trace = options.format == "snapshot" || options.format == "chrome";
    const bool is_ours = options.output.find(".tscope") != std::string::npos;
    if (!writes_a_trace || is_ours) return would_replace_a_trace(options.output, options.files);
    const auto target = target_of(options.output);
    return (target && holds_trace(*target)) || is_one_of(options.output, options.files);
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
    std::vector<NamedTrace> traces;
    for (const std::string& file : options.files) {
        auto named = open_trace(file, options.device);
        if (!named) return failed(named.error());
        traces.push_back(std::move(*named));
    }
    const auto written = write(options, traces);
    if (!written) return failed(written.error());
    output.document(
        {{"files", options.files}, {"format", options.format}, {"output", options.output}});
    std::error_code ignored;
    // Into a pipe or a device, the export itself is what is read.
    if (std::filesystem::is_regular_file(options.output, ignored)) {
        output.line("wrote " + options.output);
    }
    return ExitCode::kOk;
}

}  // namespace

void add_export_command(CommandLine& line) {
    Command& command =
        line.add_command("export", "Write a trace as a chart, a table, or a file for other tools");
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
    command.add({.names = "--table",
                 .help = "with --to csv: allocations (without it), ledger (saved tensors), ops, "
                         "kernels, steps or sweep",
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
