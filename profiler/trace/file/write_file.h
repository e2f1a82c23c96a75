#pragma once

#include "models/config/result.h"
#include "profiler/trace/file/temporary_paths.h"

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

/// Replaces files so that a file is either complete or missing. All code of this program uses it.
namespace profiler {

/// A folder with those around it, made where they are missing. What was made is deleted with this
/// object, unless something lies inside.
class MadeFolder {
public:
    /// Errors: "The folder PATH cannot be made: REASON; REMEDY.", or, if it is made for a file,
    /// "Cannot write FILE: the folder PATH cannot be made: REASON; REMEDY."
    static models::Result<MadeFolder> make(const std::filesystem::path& folder,
                                           const std::filesystem::path& file = {});
    MadeFolder(MadeFolder&&) noexcept = default;
    MadeFolder& operator=(MadeFolder&&) = delete;
    ~MadeFolder();

private:
    MadeFolder() = default;

    std::vector<std::filesystem::path> made_;  // the innermost first
};

/// Whether a `.tscope` trace is there, under whatever name.
bool holds_trace(const std::filesystem::path& path);

/// Writes `bytes` to a new file beside `path`, forces it to disk and renames it. `path` then holds
/// the whole new content, or on an error its old content. Its folder is made where it is missing.
/// A device or a pipe is written directly. Errors, in one sentence: the folder cannot be made or
/// written, the disk is full, `path` is a folder, or a trace, which nothing but a trace replaces.
models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// Whether `write_file` can write a file of this name. Call it before long work, so that a wrong
/// path is reported first. An empty path is accepted. Errors as for `write_file`.
models::Result<void> check_can_write(const std::filesystem::path& path);

/// An empty new file beside `path` for bytes that are not complete: PATH.unfinished- and a random
/// number, in the folder of PATH, which is made where it is missing. It has the permissions of the
/// file that it will replace. It is removed with this object, unless it has become another, and by
/// a signal that ends the process.
class UnfinishedFile {
public:
    /// Errors as for `write_file`; also if the file that is there may not be written.
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
    UnfinishedFile(MadeFolder&& folder, std::filesystem::path&& name, RemovedOnSignal&& removed,
                   int descriptor) noexcept
        : folder_(std::move(folder)),
          removed_on_signal_(std::move(removed)),
          name_(std::move(name)),
          descriptor_(descriptor) {}

    MadeFolder folder_;
    RemovedOnSignal removed_on_signal_;
    std::filesystem::path name_;  // empty: it has become another
    int descriptor_ = -1;
};

/// The file that is written for `path`: of a link the file behind it, so that the link stays.
/// Errors: a link that points to itself.
models::Result<std::filesystem::path> target_of(const std::filesystem::path& path);

/// Whether `path` is a device or a pipe, which a rename cannot replace.
bool is_device(const std::filesystem::path& path);

/// Errors: `path` is a device or a pipe, whose place a renamed file would take.
models::Result<void> check_no_device(const std::filesystem::path& path);
/// Opens one for writing. A pipe that nobody reads is an error; it does not wait. Returns the
/// descriptor, or -1 with errno.
int open_device(const std::filesystem::path& path);

/// Writes to a descriptor. Returns 0, or the errno of the call that failed.
int write_all(int descriptor, std::string_view bytes);

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
