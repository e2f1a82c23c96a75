#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <vector>

namespace profiler {

/// Is this the name of a trace: `.tscope`, or the `.tscope.partial` of a capture?
bool is_trace_name(const std::filesystem::path& path);

/// The traces in a folder (not in folders inside it), ordered by name without extension: "tempo"
/// stands before "tempo-packed". May be none.
/// Errors: the folder cannot be read.
models::Result<std::vector<std::filesystem::path>> traces_in(const std::filesystem::path& folder);

}  // namespace profiler
