#include "app/user/examples.h"

#include "app/user/settings.h"
#include "profiler/trace/file/write_file.h"

#include <embedded/temposcope_examples.h>

#include <array>
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
    const fs::path folder = user_folder("XDG_CACHE_HOME", ".cache");
    return folder.empty() ? folder : folder / "examples";
}

models::Result<std::vector<fs::path>> write_examples(const fs::path& folder) {
    if (folder.empty()) {
        return models::fail(
            "The examples have no folder, because neither HOME nor XDG_CACHE_HOME is set; set one "
            "of them.");
    }
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
