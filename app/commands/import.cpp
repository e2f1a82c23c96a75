#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "profiler/formats/join/joined_trace.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace app {
namespace {

namespace fs = std::filesystem;
using namespace profiler;

constexpr int kMostFiles = 1024;  // ranks of a run

struct ImportOptions {
    std::vector<std::string> files;
    std::string output;
    std::string device;
    bool overwrites = false;
};

/// The snapshot and the profiler's trace, in whichever order they were named.
models::Result<Trace> join(const NamedTrace& a, const NamedTrace& b) {
    const bool is_first = is_memory_only(*a.trace);
    const NamedTrace& memory = is_first ? a : b;
    const NamedTrace& profile = is_first ? b : a;
    return join_traces({*memory.trace, memory.file}, {*profile.trace, profile.file});
}

models::Result<Trace> read(const std::vector<std::string>& files, const std::string& device) {
    std::vector<NamedTrace> traces;
    std::vector<JoinInput> inputs;
    for (const std::string& file : files) {
        auto trace = open_trace(file, device);
        if (!trace) return tl::unexpected(trace.error());
        traces.push_back(std::move(*trace));
    }
    if (traces.size() == 1) return Trace(*traces[0].trace);
    for (const NamedTrace& named : traces) inputs.push_back({*named.trace, named.file});
    const bool has_snapshot =
        std::ranges::any_of(traces, [](const auto& named) { return is_memory_only(*named.trace); });
    return has_snapshot && traces.size() == 2 ? join(traces[0], traces[1]) : join_ranks(inputs);
}

Outcome run_import(ImportOptions& options, Output& output) {
    auto files = expand_paths(options.files);
    if (!files) return failed(files.error());
    options.files = std::move(*files);
    if (fs::path(options.output).extension() != ".tscope") {
        return fail_with(ExitCode::kUsage,
                         "-o {} does not end in .tscope: an import writes a Temposcope trace; for "
                         "other formats use export.",
                         options.output);
    }
    if (is_one_of(options.output, options.files)) {
        return fail_with(ExitCode::kUsage, "-o {} is the file to read: choose another name.",
                         options.output);
    }
    if (!options.device.empty() && options.files.size() > 1) {
        return fail_with(ExitCode::kUsage,
                         "--device chooses a GPU of one file, but {} are to be joined: leave it "
                         "out, and choose when you look at {}.",
                         options.files.size(), options.output);
    }
    std::error_code error;
    if (!options.overwrites && fs::exists(options.output, error)) {
        return fail_with(ExitCode::kUsage,
                         "{} exists already: choose another name, or pass --overwrite.",
                         options.output);
    }
    if (const auto ok = check_no_device(options.output); !ok) return failed(ok.error());
    if (const auto ok = check_can_write(options.output); !ok) return failed(ok.error());
    const auto trace = read(options.files, options.device);
    if (!trace) return failed(trace.error());
    const auto written = write_trace(*trace, options.output);
    if (!written) return failed(written.error());
    output.document({{"files", options.files},
                     {"output", options.output},
                     {"allocations", trace->allocations.size()},
                     {"ops", trace->ops.size()},
                     {"kernels", trace->kernels.size()}});
    output.line("wrote " + options.output);
    for (std::size_t i = 0; options.files.size() > 1 && i < trace->diagnostics.size(); ++i) {
        const auto note = trace->diagnostics[Id<Diagnostic>(i)];
        const bool of_ranks = trace->text(note.code) == kJoinedRanks;
        if (!of_ranks && trace->text(note.code) != kJoined) continue;
        output.line(fmt::format("{} {}: {}", format_count(note.count),
                                of_ranks ? "ranks" : "blocks", trace->text(note.explanation)));
    }
    const bool has_memory = !trace->allocations.empty();
    const std::string next =
        fmt::format("info {}{}", shell_word(options.output), has_memory ? " --peak" : "");
    output.line(output.styled(next_line(next), Style::kDim));
    return ExitCode::kOk;
}

}  // namespace

void add_import_command(CommandLine& line) {
    Command& command =
        line.add_command("import", "Make one trace of the files of PyTorch's profilers");
    auto options = std::make_shared<ImportOptions>();
    command.add({.names = "FILE",
                 .help = "a trace in any format; or, to join, a memory snapshot and a PyTorch "
                         "profiler trace of one run, or the profiler traces of all its ranks",
                 .is_required = true,
                 .max_values = kMostFiles},
                &options->files);
    command.add({.names = "-o,--output",
                 .help = "trace to write: NAME.tscope",
                 .value_name = "FILE",
                 .is_required = true},
                &options->output);
    command.add(device_option(), &options->device);
    command.add({"--overwrite", "replace a trace that is there already"}, &options->overwrites);
    command.footer(
        "Examples:\n"
        "  temposcope import snapshot.pickle -o snapshot.tscope\n"
        "  temposcope import snapshot.pickle trace.json.gz -o run.tscope\n"
        "  temposcope import rank*.pt.trace.json.gz -o run.tscope\n");
    command.on_run([options](Output& output) { return run_import(*options, output); });
}

}  // namespace app
