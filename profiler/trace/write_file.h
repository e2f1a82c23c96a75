#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <string_view>

/// Files that are whole or not there: the one way in which this program replaces a file.
namespace profiler {

/// Writes `bytes` beside `path`, to disk, and renames: `path` holds the whole new content, or what
/// it held before. A device or a pipe is written as it is.
/// Errors, in one sentence: a folder that is missing or not writable, a full disk, a path that is a
/// folder.
models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// Puts the finished file `from` in the place of `to`, in the same folder: first its bytes are on
/// the disk, then its new name is. On an error `from` stays.
models::Result<void> replace_file(const std::filesystem::path& from,
                                  const std::filesystem::path& to);

/// The folder that `path` lies in: "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// What to do about a file that could not be written for this errno: "free some space or choose
/// another folder".
std::string_view write_remedy(int error_number);

/// "Cannot write PATH: REASON; REMEDY."
tl::unexpected<models::Error> cannot_write(const std::filesystem::path& path, int error_number);

}  // namespace profiler
