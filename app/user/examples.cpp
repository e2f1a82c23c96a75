#include "app/user/examples.h"

#include "profiler/trace/write_file.h"

#include <embedded/temposcope_examples.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;

struct Example {
    std::string_view name;
    std::string_view bytes;
};

bool holds(const fs::path& file, std::string_view bytes) {
    std::error_code error;
    if (fs::file_size(file, error) != bytes.size() || error) return false;
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {}) == bytes;
}

}  // namespace

fs::path examples_folder() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
        return fs::path(cache) / "temposcope" / "examples";
    }
    if (const char* home = std::getenv("HOME"); home && *home) {
        return fs::path(home) / ".cache" / "temposcope" / "examples";
    }
    std::error_code ignored;
    return fs::temp_directory_path(ignored) / "temposcope-examples";
}

models::Result<std::vector<fs::path>> write_examples(const fs::path& folder) {
    const std::array examples{Example{"original.tscope", embedded::original()},
                              Example{"tempo.tscope", embedded::tempo()}};
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        return models::fail("The folder {} for the examples cannot be created ({}).",
                            folder.string(), error.message());
    }
    std::vector<fs::path> files;
    for (const Example& example : examples) {
        files.push_back(folder / example.name);
        if (holds(files.back(), example.bytes)) continue;
        if (const auto written = profiler::write_file(files.back(), example.bytes); !written) {
            return tl::unexpected(written.error());
        }
    }
    return files;
}

}  // namespace app
