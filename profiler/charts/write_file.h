#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <string_view>

namespace profiler {

/// Writes `bytes` beside `path`, to disk, and renames: `path` holds the whole new content, or what
/// it held before. Errors, in one sentence: a folder that is missing or not writable, a full disk,
/// a path that is a folder.
models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace profiler
