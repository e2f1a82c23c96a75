#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <limits>
#include <string>

namespace profiler {

/// Reads a file into memory, at most `limit` bytes.
/// Errors: as check_readable (trace/readable_file.h). Throws std::bad_alloc.
models::Result<std::string> read_file_bytes(
    const std::filesystem::path& path, std::size_t limit = std::numeric_limits<std::size_t>::max());

}  // namespace profiler
