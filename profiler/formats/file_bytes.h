#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <limits>
#include <string>

/// Files as the readers of this folder take them: whole, in memory.
namespace profiler {

/// At most `limit` bytes of the file.
/// Errors: not there, a folder, not readable: one sentence with the path.
models::Result<std::string> read_file_bytes(
    const std::filesystem::path& path, std::size_t limit = std::numeric_limits<std::size_t>::max());

}  // namespace profiler
