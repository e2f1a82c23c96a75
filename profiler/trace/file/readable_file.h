#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <optional>

/// What keeps a file from being read, in one sentence. Every reader of traces uses it.
namespace profiler {

/// Finds what is wrong with a path before a reader opens it.
/// Errors: nothing is there, it is a folder, it is a device or a pipe, it may not be read.
models::Result<void> check_readable(const std::filesystem::path& path);

/// The first folder on the way to `path` that this user may not enter, if there is one.
std::optional<std::filesystem::path> closed_folder(const std::filesystem::path& path);

/// "PATH cannot be read (REASON); REMEDY."
tl::unexpected<models::Error> cannot_read(const std::filesystem::path& path, int error_number);

/// For a file that is larger than this machine's memory.
tl::unexpected<models::Error> not_enough_memory(const std::filesystem::path& path);

}  // namespace profiler
