#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/reports.h"
#include "models/config/names.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;

struct InfoOptions {
    std::string file;
    bool ledger = false;
    bool peak = false;
    bool growth = false;
    bool ops = false;
    bool diagnostics = false;
    bool all = false;
    std::string module_path;
    std::string by;
    std::string device;
};

LedgerOptions ledger_options(const InfoOptions& options) {
    return {.include_all = options.all, .module_path = options.module_path};
}

/// CLI11 has already checked the name.
GroupBy peak_group(const InfoOptions& options, const NamedTrace& named) {
    const auto chosen = find_group_by(options.by);
    return chosen ? *chosen : default_group_by(*named.trace);
}

/// A single report is the whole document. Several are members of it, by their names.
nlohmann::json reports_json(const InfoOptions& options, const NamedTrace& named) {
    nlohmann::json reports = nlohmann::json::object();
    if (options.ledger) {
        const auto by = find_group_by(options.by);
        reports["ledger"] = by ? saved_by_json(named, ledger_options(options), *by)
                               : ledger_json(named, ledger_options(options));
    }
    if (options.peak) reports["peak"] = peak_json(named, peak_group(options, named));
    if (options.growth) reports["growth"] = growth_json(named);
    if (options.ops) reports["ops"] = ops_json(named);
    if (options.diagnostics) reports["health"] = diagnostics_json(named);
    if (reports.empty()) return overview_json(named);
    return reports.size() == 1 ? reports.begin().value() : reports;
}

void print_reports(const InfoOptions& options, const NamedTrace& named, Output& output) {
    bool is_first = true;
    const auto print = [&](bool is_asked_for, const auto& report) {
        if (!is_asked_for) return;
        if (!std::exchange(is_first, false)) output.line();
        report();
    };
    print(options.ledger, [&] {
        const auto by = find_group_by(options.by);
        if (by) return print_saved_by(output, named, ledger_options(options), *by);
        print_ledger(output, named, ledger_options(options));
    });
    print(options.peak, [&] { print_peak(output, named, peak_group(options, named)); });
    print(options.growth, [&] { print_growth(output, named); });
    print(options.ops, [&] { print_ops(output, named); });
    print(options.diagnostics, [&] { print_diagnostics(output, named); });
    if (is_first) print_overview(output, named);
}

/// Errors: the trace has no such module.
models::Result<void> check_module_path(const NamedTrace& named, const std::string& module) {
    const Trace& trace = *named.trace;
    std::vector<std::string_view> paths;
    for (const StringId path : trace.module_paths.column<&ModulePath::path>()) {
        paths.push_back(trace.text(path));
        if (paths.back() == module || paths.back().starts_with(module + ".")) return {};
    }
    if (paths.empty()) {
        return models::fail("{} records no modules: leave out --scope.", named.file);
    }
    return models::fail("{} has no module '{}': did you mean {}?", named.file, module,
                        fmt::join(models::nearest_names(module, paths), ", "));
}

Outcome show_trace(const InfoOptions& options, NamedTrace named, Output& output) {
    named.report = report_of(named);
    if (!options.module_path.empty()) {
        if (auto ok = check_module_path(named, options.module_path); !ok) return failed(ok.error());
    }
    return emit(output, {.json = [&] { return reports_json(options, named); },
                         .text = [&](Output& text) { print_reports(options, named, text); }});
}

/// A folder with the traces of several ranks.
Outcome show_ranks(const InfoOptions& options, Output& output) {
    const auto ranks = open_folder(options.file, options.device);
    if (!ranks) return failed(ranks.error());
    const std::vector<NamedTrace>& traces = ranks->traces;
    const Run first = traces.front().trace->run();
    const bool is_one_import =
        traces.size() == 1 && first.world_size <= 1 && first.source == Source::kImported;
    if (is_one_import) return show_trace(options, traces.front(), output);
    if (options.ledger || options.peak || options.growth || options.ops || options.diagnostics) {
        return wrong_usage({fmt::format(
            "{} is a folder, of which info shows the ranks: name the trace of one for its reports.",
            options.file)});
    }
    const auto run = summarize_ranks(traces);
    if (!run) return failed(run.error());
    return emit(output, {.json = [&] { return ranks_json(*run, ranks->left_out); },
                         .text = [&](Output& text) { print_ranks(text, *run); }});
}

Outcome run_info(const InfoOptions& options, Output& output) {
    if (!options.by.empty() && !options.peak && !options.ledger) {
        return wrong_usage({"--by groups what a report lists: add --peak or --saved."});
    }
    std::error_code error;
    if (std::filesystem::is_directory(options.file, error)) return show_ranks(options, output);
    const auto named = open_trace(options.file, options.device);
    if (!named) return failed(named.error());
    return show_trace(options, *named, output);
}

}  // namespace

void add_info_command(CommandLine& line) {
    Command& command = line.add_command(
        "info", "Show one trace: its peak, the tensors saved for backward, diagnostics");
    auto options = std::make_shared<InfoOptions>();
    command.add({.names = "FILE",
                 .help = "trace (.tscope, or the .partial of a capture that was killed), PyTorch "
                         "memory snapshot, or a folder with the traces of a run's ranks",
                 .is_required = true},
                &options->file);
    command.add({"--saved,--ledger",
                 "every tensor saved for backward: which op saves it, shape, bytes, formula"},
                &options->ledger);
    command.add({"--peak", "what lives when most memory is in use"}, &options->peak);
    command.add(
        {"--growth", "which lines of code keep more memory after each step, and who holds it"},
        &options->growth);
    command.add({"--ops", "what each op runs: its calls, time, kernels and scratch"},
                &options->ops);
    command.add({"--health", "what the capture could not see, and what to do"},
                &options->diagnostics);
    command.add({.names = "--all",
                 .help = "with --saved: parameters, gradients, optimizer state and inputs too",
                 .needs = "--ledger"},
                &options->all);
    command.add({.names = "--scope",
                 .help = "with --saved: only this module and the modules inside it",
                 .value_name = "MODULE",
                 .needs = "--ledger"},
                &options->module_path);
    command.add({.names = "--by",
                 .help = "sums of --peak or --saved: by class, layer, module (a path without its "
                         "numbers), module-type, op, tensor, or line of code. --peak alone: by "
                         "class, or by line for a snapshot with call stacks",
                 .value_name = "GROUP",
                 .choices = {kGroupByNames.begin(), kGroupByNames.end()}},
                &options->by);
    command.add(device_option(), &options->device);
    command.footer(
        "Without --saved, --peak, --growth, --ops or --health: an overview.\n\n"
        "Examples:\n"
        "  temposcope info out/tempo.tscope\n"
        "  temposcope info out/tempo.tscope --saved --scope encoder.layer.1\n"
        "  temposcope info out/tempo.tscope --saved --by module-type\n"
        "  temposcope info out/tempo.tscope --peak --by layer --json\n"
        "  temposcope info snapshot.pickle\n");
    command.on_run([options](Output& output) { return run_info(*options, output); });
}

}  // namespace app
