#include "profiler/trace/write_file.h"

#include "profiler/trace/text.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace profiler {
namespace fs = std::filesystem;
namespace {

/// 0, or the errno of the call that failed.
int write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

/// A file that cannot be synced (a device, a folder of some network file systems) needs no sync.
int sync(int file) { return ::fsync(file) == 0 || errno == EINVAL ? 0 : errno; }

int sync_path(const fs::path& path, int flags) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC);
    if (file < 0) return errno;
    const int error = sync(file);
    ::close(file);
    return error;
}

/// 0, or the errno of the call that failed. Closes the file in any case.
int write_and_close(int file, std::string_view bytes) {
    int error = write_all(file, bytes);
    if (::close(file) != 0 && error == 0) error = errno;
    return error;
}

/// Writes to a device or a pipe. A pipe that nobody reads is an error; it does not wait.
int write_device(const fs::path& path, std::string_view bytes) {
    const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return errno;
    ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return write_and_close(file, bytes);
}

/// Another user of the folder cannot have put a file or a link of that name there. The descriptor,
/// or -1 with errno.
int open_new(const fs::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

}  // namespace

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string_view write_remedy(int error_number) {
    switch (error_number) {
        case EACCES:
        case EPERM:
            return "choose a folder that you can write to, or change its permissions";
        case EROFS:
            return "its file system is read-only; choose another folder";
        case ENOSPC:
        case EDQUOT:
            return "free some space or choose another folder";
        case EFBIG:
            return "raise the limit (ulimit -f) or choose another folder";
        case EEXIST:
            return "remove it or choose another name";
        case ENOENT:
            return "create its folder first";
        case ENOTDIR:
            return "a part of its path is a file; choose another folder";
        case EISDIR:
            return "it is a folder; name a file in it";
        case ENXIO:
            return "nobody reads that pipe; start its reader first";
        case ELOOP:
            return "it is a link that points to itself; choose another name";
        case ENAMETOOLONG:
            return "choose a shorter name";
        default:
            return "check the disk or choose another folder";
    }
}

tl::unexpected<models::Error> cannot_write(const fs::path& path, int error_number) {
    return models::fail("Cannot write {}: {}; {}.", path.string(), reason_of(error_number),
                        write_remedy(error_number));
}

models::Result<void> replace_file(const fs::path& from, const fs::path& to) {
    if (const int error = sync_path(from, O_RDONLY); error != 0) return cannot_write(to, error);
    if (::rename(from.c_str(), to.c_str()) != 0) return cannot_write(to, errno);
    // The file is in place. A folder that cannot be opened for reading cannot be synced.
    sync_path(folder_of(to), O_RDONLY | O_DIRECTORY);
    return {};
}

models::Result<void> write_file(const fs::path& path, std::string_view bytes) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return cannot_write(path, EISDIR);
    // A rename cannot replace a device or a pipe, so it is written directly.
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
        const int error = write_device(path, bytes);
        // EPIPE: the reader closed the pipe because it has seen enough, as `head` does.
        if (error != 0 && error != EPIPE) return cannot_write(path, error);
        return {};
    }
    // A link stays a link: the file it points to is written.
    if (fs::is_symlink(path, ignored)) {
        std::error_code error;
        const fs::path target = fs::weakly_canonical(path, error);
        if (error) return cannot_write(path, error.value());
        if (target != path && !fs::is_symlink(target, ignored)) return write_file(target, bytes);
    }
    auto unfinished = UnfinishedFile::create(path);
    if (!unfinished) return tl::unexpected(unfinished.error());
    const int error = write_and_close(unfinished->take_descriptor(), bytes);
    if (error != 0) return cannot_write(path, error);
    return unfinished->become(path);
}

models::Result<void> check_can_write(const fs::path& path) {
    std::error_code ignored;
    if (path.empty()) return {};
    if (fs::is_directory(path, ignored)) return cannot_write(path, EISDIR);
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) return {};
    const fs::path target =
        fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
    const auto unfinished = UnfinishedFile::create(target);
    if (!unfinished) return tl::unexpected(unfinished.error());
    return {};
}

models::Result<UnfinishedFile> UnfinishedFile::create(const fs::path& path) {
    uint64_t number = 0;  // that nobody can guess
    if (::getentropy(&number, sizeof number) != 0) return cannot_write(path, errno);
    fs::path name = fmt::format("{}.unfinished-{:016x}", path.string(), number);
    const int file = open_new(name);
    if (file < 0) return cannot_write(path, errno);
    return UnfinishedFile(std::move(name), file);
}

UnfinishedFile::UnfinishedFile(UnfinishedFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(other.take_descriptor()) {
    other.name_.clear();
}

UnfinishedFile::~UnfinishedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) ::unlink(name_.c_str());
}

models::Result<void> UnfinishedFile::become(const fs::path& target) {
    auto replaced = replace_file(name_, target);
    if (replaced) name_.clear();
    return replaced;
}

models::Result<void> create_new(const fs::path& path) {
    const int file = open_new(path);
    if (file < 0) return cannot_write(path, errno);
    ::close(file);
    return {};
}

}  // namespace profiler
