#include "profiler/trace/file/write_file.h"

#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <system_error>

namespace profiler {
namespace fs = std::filesystem;
namespace {

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

/// Creates the file; fails if a file or a link has that name. Returns the descriptor, or -1 with
/// errno.
int open_new(const fs::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

/// 0, or why the file that is there may not be replaced. Sets `permissions` to those it has.
int examine_replaced(const fs::path& path, std::optional<mode_t>& permissions) {
    struct stat there {};
    if (::stat(path.c_str(), &there) != 0) return 0;  // nothing is replaced
    if (::access(path.c_str(), W_OK) != 0) return errno;
    permissions = there.st_mode & 0777;
    return 0;
}

tl::unexpected<models::Error> cannot_replace_trace(const fs::path& path) {
    return models::fail("Cannot write {}: it is a trace; choose another name.", path.string());
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
            return "choose another folder";
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

models::Result<fs::path> target_of(const fs::path& path) {
    constexpr int kMostLinks = 40;  // as the kernel follows
    fs::path target = path;
    std::error_code error;
    for (int i = 0; fs::is_symlink(target, error); ++i) {
        if (i == kMostLinks) return cannot_write(path, ELOOP);
        const fs::path behind = fs::read_symlink(target, error);
        if (error) return cannot_write(path, error.value());
        target = folder_of(target) / behind;  // an absolute path replaces the folder
    }
    return target;
}

bool is_device(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored) &&
           !fs::is_directory(path, ignored);
}

models::Result<void> check_no_device(const fs::path& path) {
    if (!is_device(path)) return {};
    return models::fail("Cannot write {}: it is a device or a pipe; name a file.", path.string());
}

int open_device(const fs::path& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
}

int write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

bool holds_trace(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return false;  // to open a pipe would wait
    std::array<char, 16> first{};
    std::ifstream file(path, std::ios::binary);
    file.read(first.data(), first.size());
    return file.gcount() == first.size() && looks_like_trace({first.data(), first.size()});
}

models::Result<void> write_file(const fs::path& path, std::string_view bytes) {
    if (is_device(path)) {
        const int file = open_device(path);
        const int error = file < 0 ? errno : write_and_close(file, bytes);
        // EPIPE: the reader closed the pipe because it has seen enough, as `head` does.
        if (error != 0 && error != EPIPE) return cannot_write(path, error);
        return {};
    }
    const auto target = target_of(path);
    if (!target) return tl::unexpected(target.error());
    if (holds_trace(*target) && !looks_like_trace(bytes)) return cannot_replace_trace(path);
    auto unfinished = UnfinishedFile::create(*target);
    if (!unfinished) return tl::unexpected(unfinished.error());
    const int error = write_and_close(unfinished->take_descriptor(), bytes);
    if (error != 0) return cannot_write(path, error);
    return unfinished->become(*target);
}

models::Result<void> check_can_write(const fs::path& path) {
    if (path.empty() || is_device(path)) return {};
    const auto target = target_of(path);
    if (!target) return tl::unexpected(target.error());
    // Under the name of a trace another trace will be written.
    if (holds_trace(*target) && target->extension() != ".tscope") return cannot_replace_trace(path);
    const auto unfinished = UnfinishedFile::create(*target);
    if (!unfinished) return tl::unexpected(unfinished.error());
    return {};
}

models::Result<MadeFolder> MadeFolder::make(const fs::path& folder, const fs::path& file) {
    MadeFolder made;
    std::error_code error;
    auto missing = fs::absolute(folder, error).lexically_normal();
    if (!missing.has_filename()) missing = missing.parent_path();
    for (; !fs::exists(missing, error); missing = missing.parent_path()) {
        if (!missing.has_relative_path()) break;
        made.made_.push_back(missing);
    }
    fs::create_directories(folder, error);
    if (!error) return made;
    const std::string what =
        file.empty() ? "The" : fmt::format("Cannot write {}: the", file.string());
    return models::fail("{} folder {} cannot be made: {}; {}.", what, folder.string(),
                        reason_of(error.value()), write_remedy(error.value()));
}

MadeFolder::~MadeFolder() {
    for (const fs::path& folder : made_) ::rmdir(folder.c_str());  // leaves files and links
}

models::Result<UnfinishedFile> UnfinishedFile::create(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return cannot_write(path, EISDIR);
    if (const auto ok = check_no_device(path); !ok) return tl::unexpected(ok.error());
    std::optional<mode_t> permissions;
    if (const int error = examine_replaced(path, permissions); error != 0) {
        return cannot_write(path, error);
    }
    auto folder = MadeFolder::make(folder_of(path), path);
    if (!folder) return tl::unexpected(folder.error());
    uint64_t number = 0;  // that nobody can guess
    if (::getentropy(&number, sizeof number) != 0) return cannot_write(path, errno);
    fs::path name = fmt::format("{}.unfinished-{:016x}", path.string(), number);
    RemovedOnSignal removed(name);  // before there is something to remove
    const int file = open_new(name);
    if (file < 0) return cannot_write(path, errno);
    if (permissions) ::fchmod(file, *permissions);
    return UnfinishedFile(std::move(*folder), std::move(name), std::move(removed), file);
}

UnfinishedFile::UnfinishedFile(UnfinishedFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      removed_on_signal_(std::move(other.removed_on_signal_)),
      name_(std::move(other.name_)),
      descriptor_(other.take_descriptor()) {
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
