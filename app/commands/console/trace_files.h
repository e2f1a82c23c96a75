#pragma once

#include "app/commands/console/outcome.h"
#include "profiler/analysis/comparison.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// Traces that a command line names.
namespace app {

/// Files as given; a folder stands for the traces in it (`.tscope` and `.tscope.partial`), by name.
models::Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths);

/// Reads a trace, with a bar on a terminal when it takes long.
models::Result<profiler::NamedTrace> open_trace(const std::string& path);
models::Result<std::vector<profiler::NamedTrace>> open_traces(
    const std::vector<std::string>& paths);

/// What every JSON document about one trace begins with: file, model, head, recipe, precision,
/// batch_size, seq_len, num_layers, source, device, state, steps.
nlohmann::json describe_trace(const profiler::NamedTrace& named);

}  // namespace app
