#include "app/commands/command.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "models/config/names.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace app {
namespace {

struct InfoOptions {
    std::string file;
    bool ledger = false;
    bool peak = false;
    bool diagnostics = false;
    bool all = false;
    std::string module_path;
    std::string by = "class";
    bool json = false;
};

/// CLI11 has already checked the name.
profiler::GroupBy group_by(const std::string& name) {
    return profiler::find_group_by(name).value_or(profiler::GroupBy::kClass);
}

/// A single report is the whole document. Several are members of it, by their names.
void write_json(const InfoOptions& options, const profiler::NamedTrace& named, Output& output) {
    nlohmann::json reports = nlohmann::json::object();
    if (options.ledger) {
        reports["ledger"] =
            ledger_json(named, {.include_all = options.all, .module_path = options.module_path});
    }
    if (options.peak) reports["peak"] = peak_json(named, group_by(options.by));
    if (options.diagnostics) reports["health"] = diagnostics_json(named);
    if (reports.empty()) {
        output.document(overview_json(named));
    } else {
        output.document(reports.size() == 1 ? reports.begin().value() : reports);
    }
}

void write_text(const InfoOptions& options, const profiler::NamedTrace& named, Output& output) {
    if (!options.ledger && !options.peak && !options.diagnostics) print_overview(output, named);
    if (options.ledger) {
        print_ledger(output, named,
                     {.include_all = options.all, .module_path = options.module_path});
    }
    if (options.ledger && options.peak) output.line();
    if (options.peak) print_peak(output, named, group_by(options.by));
    if ((options.ledger || options.peak) && options.diagnostics) output.line();
    if (options.diagnostics) print_diagnostics(output, named);
}

/// Errors: the trace has no such module.
models::Result<void> check_module_path(const profiler::NamedTrace& named,
                                       const std::string& module) {
    const profiler::Trace& trace = *named.trace;
    std::vector<std::string_view> paths;
    for (const profiler::StringId path : trace.module_paths.column<&profiler::ModulePath::path>()) {
        paths.push_back(trace.text(path));
        if (paths.back() == module || paths.back().starts_with(module + ".")) return {};
    }
    return models::fail("{} has no module '{}': did you mean {}?", named.file, module,
                        fmt::join(models::nearest_names(module, paths), ", "));
}

Outcome run_info(const InfoOptions& options, Output& output) {
    auto named = open_trace(options.file);
    if (!named) return failed(named.error());
    named->report = report_of(*named);
    if (!options.module_path.empty()) {
        if (auto ok = check_module_path(*named, options.module_path); !ok)
            return failed(ok.error());
    }
    if (options.json) {
        write_json(options, *named, output);
    } else {
        write_text(options, *named, output);
    }
    return ExitCode::kOk;
}

}  // namespace

void add_info_command(CLI::App& program, Chosen& chosen) {
    auto* command = program.add_subcommand(
        "info", "Show what a trace holds: peak, tensors saved for backward, diagnostics");
    auto options = std::make_shared<InfoOptions>();
    command
        ->add_option(
            "FILE", options->file,
            "trace (.tscope, or the .partial of a killed capture) or PyTorch memory snapshot")
        ->required();
    auto* ledger = command->add_flag(
        "--ledger", options->ledger,
        "every tensor saved for backward: the op that saves it, shape, bytes, closed form");
    auto* peak = command->add_flag("--peak", options->peak, "what is allocated at the peak");
    command->add_flag("--health", options->diagnostics,
                      "diagnostics: what is missing from the trace, and what to do");
    command
        ->add_flag("--all", options->all,
                   "with --ledger: also parameters, gradients, optimizer state and inputs")
        ->needs(ledger);
    command
        ->add_option("--scope", options->module_path,
                     "with --ledger: only this module and its submodules")
        ->type_name("MODULE")
        ->needs(ledger);
    command->add_option("--by", options->by, "with --peak: class, layer, op or tensor")
        ->type_name("GROUP")
        ->check(CLI::IsMember({"class", "layer", "op", "tensor"}))
        ->capture_default_str()
        ->needs(peak);
    add_json_option(*command, chosen);
    command->footer(
        "Without --ledger, --peak or --health: an overview.\n\n"
        "Examples:\n"
        "  temposcope info out/tempo.tscope\n"
        "  temposcope info out/tempo.tscope --ledger --scope encoder.layer.1\n"
        "  temposcope info out/tempo.tscope --peak --by layer --json\n"
        "  temposcope info snapshot.pickle\n");
    command->callback([options, &chosen] {
        options->json = chosen.json;
        chosen.run = [options](Output& output) { return run_info(*options, output); };
    });
}

}  // namespace app
