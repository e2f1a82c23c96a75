#pragma once

#include "app/commands/console/outcome.h"
#include "profiler/analysis/step/step_report.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// The traces that a command line names, in any format of formats/trace_formats.h.
namespace app {

/// The files as given. A folder stands for the traces in it: presets in the order of --help, then
/// the others by name.
models::Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths);

/// Reads a trace. Its figures are of `device` (--device); empty: of the device that the file names.
/// Shows a bar on a terminal when it takes long.
models::Result<profiler::NamedTrace> open_trace(const std::string& path,
                                                const std::string& device = {});
models::Result<std::vector<profiler::NamedTrace>> open_traces(const std::vector<std::string>& paths,
                                                              const std::string& device = {});

struct FolderTraces {
    std::vector<profiler::NamedTrace> traces;
    std::vector<std::string> left_out;  // files that cannot be read
};

/// The traces in a folder. Says on standard error why it leaves some out. Errors: none can be read.
models::Result<FolderTraces> open_folder(const std::string& folder, const std::string& device = {});

/// Whether `output` is one of the files, under whatever name.
bool is_one_of(const std::string& output, const std::vector<std::string>& files);

/// Whether `output` is one of the files, or any other trace or part of one. What is drawn from a
/// trace never replaces a trace.
bool would_replace_a_trace(const std::string& output, const std::vector<std::string>& files);

/// Whether a table, a chart or a page can be written to `output` (empty: nowhere). How the command
/// ends if not: with wrong usage where `output` would replace one of `inputs`, another trace or a
/// file of another kind; else as check_can_write says.
tl::expected<void, Failure> check_result_file(const std::string& output,
                                              const std::vector<std::string>& inputs = {});

/// Whether `output`, or the file behind a link, is there already and does not end in one of the
/// extensions (with or without a ".gz" behind): a file of another kind, such as the user's own
/// program.
bool would_replace_another_kind(const std::string& output,
                                const std::vector<std::string>& extensions);

/// What `output` replaces, for a sentence: "chart.svg"; "train.py, to which chart.svg leads,"
/// behind a link.
std::string replaced_file(const std::string& output);

/// The keys that begin every JSON document about one trace: file, model, head, recipe, precision,
/// batch_size, seq_len, num_layers, source, device, state, steps.
nlohmann::json describe_trace(const profiler::NamedTrace& named);

}  // namespace app
