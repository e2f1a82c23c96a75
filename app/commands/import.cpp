#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "profiler/formats/joined_trace.h"
#include "profiler/trace/trace_file.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace app {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
    std::vector<std::string> files;
    std::string output;
};

/// The snapshot and the profiler's trace, in whichever order they were named.
models::Result<profiler::Trace> join(const profiler::NamedTrace& a, const profiler::NamedTrace& b) {
    const bool is_first = profiler::is_memory_only(*a.trace);
    const profiler::NamedTrace& memory = is_first ? a : b;
    const profiler::NamedTrace& profile = is_first ? b : a;
    return profiler::join_traces({*memory.trace, memory.file}, {*profile.trace, profile.file});
}

models::Result<profiler::Trace> read(const std::vector<std::string>& files) {
    const auto first = open_trace(files[0]);
    if (!first) return tl::unexpected(first.error());
    if (files.size() == 1) return profiler::Trace(*first->trace);
    const auto second = open_trace(files[1]);
    if (!second) return tl::unexpected(second.error());
    return join(*first, *second);
}

Outcome run_import(const ImportOptions& options, Output& output) {
    if (fs::path(options.output).extension() != ".tscope") {
        return fail_with(ExitCode::kUsage,
                         "-o {} does not end in .tscope: an import writes a Temposcope trace; for "
                         "other formats use export.",
                         options.output);
    }
    for (const std::string& file : options.files) {
        std::error_code error;
        if (fs::equivalent(file, options.output, error) && !error) {
            return fail_with(ExitCode::kUsage, "-o {} is the file to read: choose another name.",
                             options.output);
        }
    }
    std::error_code ignored;  // the write reports a folder that cannot be made
    fs::create_directories(profiler::folder_of(options.output), ignored);
    if (const auto ok = profiler::check_can_write(options.output); !ok) return failed(ok.error());
    const auto trace = read(options.files);
    if (!trace) return failed(trace.error());
    const auto written = profiler::write_trace(*trace, options.output);
    if (!written) return failed(written.error());
    output.document({{"files", options.files},
                     {"output", options.output},
                     {"allocations", trace->allocations.size()},
                     {"ops", trace->ops.size()},
                     {"kernels", trace->kernels.size()}});
    output.line("wrote " + options.output);
    for (std::size_t i = 0; options.files.size() > 1 && i < trace->diagnostics.size(); ++i) {
        const auto note = trace->diagnostics[profiler::Id<profiler::Diagnostic>(i)];
        if (trace->text(note.code) != "joined") continue;
        output.line(profiler::format_count(note.count) +
                    " blocks: " + std::string(trace->text(note.explanation)));
    }
    return ExitCode::kOk;
}

}  // namespace

void add_import_command(CommandLine& line) {
    Command& command =
        line.add_command("import", "Files of the PyTorch profilers as one Temposcope trace");
    auto options = std::make_shared<ImportOptions>();
    command.add({.names = "FILE",
                 .help = "a trace in any format that is read; or a memory snapshot and a trace of "
                         "the PyTorch profiler of one run, to join",
                 .is_required = true,
                 .max_values = 2},
                &options->files);
    command.add({.names = "-o,--output",
                 .help = "trace to write: NAME.tscope",
                 .value_name = "FILE",
                 .is_required = true},
                &options->output);
    command.footer(
        "Examples:\n"
        "  temposcope import snapshot.pickle -o snapshot.tscope\n"
        "  temposcope import snapshot.pickle trace.json.gz -o run.tscope\n");
    command.on_run([options](Output& output) { return run_import(*options, output); });
}

}  // namespace app
