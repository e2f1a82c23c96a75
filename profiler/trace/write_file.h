#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <string_view>

/// Replaces files so that a file is either complete or missing. All code of this program uses it.
namespace profiler {

/// Writes `bytes` to a new file beside `path`, forces it to disk and renames it. `path` then holds
/// the whole new content, or on an error its old content. A device or a pipe is written directly.
/// Errors, in one sentence: the folder is missing or not writable, the disk is full, `path` is a
/// folder.
models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// Replaces `to` by the finished file `from` in the same folder: forces its bytes to disk, then
/// renames it. On an error `from` stays.
models::Result<void> replace_file(const std::filesystem::path& from,
                                  const std::filesystem::path& to);

/// The folder of `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// What to do when writing a file fails with this errno: "free some space or choose another
/// folder".
std::string_view write_remedy(int error_number);

/// "Cannot write PATH: REASON; REMEDY."
tl::unexpected<models::Error> cannot_write(const std::filesystem::path& path, int error_number);

}  // namespace profiler
