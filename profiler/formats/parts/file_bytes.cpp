#include "profiler/formats/parts/file_bytes.h"

#include "profiler/trace/file/readable_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace profiler {

namespace fs = std::filesystem;

models::Result<std::string> read_file_bytes(const fs::path& path, std::size_t limit) {
    if (auto readable = check_readable(path); !readable) {
        return tl::unexpected(readable.error());
    }
    std::error_code error;
    const auto size = std::min<std::uintmax_t>(fs::file_size(path, error), limit);
    std::ifstream file(path, std::ios::binary);
    if (error || !file) return cannot_read(path, error ? error.value() : errno);
    constexpr std::size_t kPadding = 64;  // that a parser may want behind the end
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(size) + kPadding);
    bytes.resize(static_cast<std::size_t>(size));
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (file.bad()) return cannot_read(path, errno);
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return bytes;
}

}  // namespace profiler
