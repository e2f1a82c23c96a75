#include "profiler/formats/file_bytes.h"

#include <algorithm>
#include <fstream>

namespace profiler {

namespace fs = std::filesystem;

models::Result<std::string> read_file_bytes(const fs::path& path, std::size_t limit) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
        return models::fail("{} does not exist; check the name.", path.string());
    if (fs::is_directory(status))
        return models::fail("{} is a folder; name a file in it.", path.string());
    if (!fs::is_regular_file(status))
        return models::fail("{} is not a file; name another.", path.string());
    const auto size = std::min<std::uintmax_t>(fs::file_size(path, error), limit);
    std::ifstream file(path, std::ios::binary);
    if (error || !file)
        return models::fail("{} cannot be read; check its permissions.", path.string());
    std::string bytes(static_cast<std::size_t>(size), '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return bytes;
}

}  // namespace profiler
