#include "profiler/trace/file/readable_file.h"

#include "profiler/trace/text.h"

#include <unistd.h>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace profiler {
namespace fs = std::filesystem;
namespace {

std::string_view read_remedy(int error_number) {
    switch (error_number) {
        case EACCES:
        case EPERM:
            return "check its permissions and the permissions of its folders";
        case ENOTDIR:
            return "a part of its path is a file; check the name";
        case ELOOP:
            return "it is a link that points to itself; name another file";
        case ENAMETOOLONG:
            return "check the name";
        default:
            return "check the disk, or name another file";
    }
}

}  // namespace

models::Result<void> check_readable(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error.value() == ENOENT) {
        return models::fail("{} does not exist; check the name.", path.string());
    }
    if (error) return cannot_read(path, error.value());
    if (fs::is_directory(status)) {
        return models::fail("{} is a folder; name a file in it.", path.string());
    }
    if (!fs::is_regular_file(status)) {
        return models::fail("{} is not a file; name another.", path.string());
    }
    // To open the file and close it again would release the locks that SQLite holds on it.
    if (::access(path.c_str(), R_OK) != 0) return cannot_read(path, errno);
    return {};
}

std::optional<fs::path> closed_folder(const fs::path& path) {
    fs::path folder;
    for (const fs::path& part : path.parent_path()) {
        folder /= part;
        if (::access(folder.c_str(), X_OK) != 0 && errno == EACCES) return folder;
    }
    return std::nullopt;
}

tl::unexpected<models::Error> cannot_read(const fs::path& path, int error_number) {
    return models::fail("{} cannot be read ({}); {}.", path.string(), reason_of(error_number),
                        read_remedy(error_number));
}

tl::unexpected<models::Error> not_enough_memory(const fs::path& path) {
    return tl::unexpected(models::Error{
        .message = fmt::format("There is not enough memory to read {}: close other programs and "
                               "traces, or raise the limit on memory (ulimit -v).",
                               path.string()),
        .out_of_memory = true});
}

}  // namespace profiler
