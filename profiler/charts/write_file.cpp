#include "profiler/charts/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace profiler {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

/// 0, or the error number of the call that failed.
int write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

models::Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        return models::fail("{} is a folder; name a file in it.", path.string());
    }
    // A device or a pipe cannot be replaced by a rename; it is written as it is.
    const bool is_special =
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
    const std::string partial =
        is_special ? path.string() : fmt::format("{}.partial-{}", path.string(), ::getpid());
    const int flags = is_special ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    const int file = ::open(partial.c_str(), flags, 0666);
    if (file < 0) {
        return models::fail("{} cannot be written ({}); choose another folder or its permissions.",
                            path.string(), reason_of(errno));
    }
    int error = write_all(file, bytes);
    if (::close(file) != 0 && error == 0) error = errno;
    if (error == 0 && !is_special && ::rename(partial.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return {};
    if (!is_special) ::unlink(partial.c_str());
    return models::fail(
        "{} could not be written ({}); nothing was left behind, make room and retry.",
        path.string(), reason_of(error));
}

}  // namespace profiler
