#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <string_view>
#include <utility>

/// Replaces files so that a file is either complete or missing. All code of this program uses it.
namespace profiler {

/// Writes `bytes` to a new file beside `path`, forces it to disk and renames it. `path` then holds
/// the whole new content, or on an error its old content. A device or a pipe is written directly.
/// Errors, in one sentence: the folder is missing or not writable, the disk is full, `path` is a
/// folder.
models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// Whether `write_file` can write a file of this name. For before long work: whoever waits for it
/// should not lose it to a wrong path. An empty path is no file. Errors as for `write_file`.
models::Result<void> check_can_write(const std::filesystem::path& path);

/// An empty new file beside `path` for bytes that are not complete: PATH.unfinished- and a random
/// number. It is removed with this object, unless it has become another; so nothing stays of it
/// when memory runs out.
class UnfinishedFile {
public:
    /// Errors as for `write_file`.
    static models::Result<UnfinishedFile> create(const std::filesystem::path& path);
    UnfinishedFile(UnfinishedFile&& other) noexcept;
    UnfinishedFile& operator=(UnfinishedFile&&) = delete;
    ~UnfinishedFile();

    const std::filesystem::path& name() const { return name_; }
    /// Open for writing; the caller closes it.
    int take_descriptor() { return std::exchange(descriptor_, -1); }
    /// Replaces `target`. On an error this stays what it is.
    models::Result<void> become(const std::filesystem::path& target);

private:
    UnfinishedFile(std::filesystem::path&& name, int descriptor) noexcept
        : name_(std::move(name)), descriptor_(descriptor) {}

    std::filesystem::path name_;  // empty: it has become another
    int descriptor_ = -1;
};

/// Creates an empty file. A file or a link of that name is an error: it may be another user's.
models::Result<void> create_new(const std::filesystem::path& path);

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
