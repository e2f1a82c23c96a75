#include "profiler/trace/trace_folder.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <tuple>

namespace profiler {
namespace fs = std::filesystem;

bool is_trace_name(const fs::path& path) {
    const std::string name = path.filename().string();
    return name.ends_with(".tscope") || name.ends_with(".tscope.partial");
}

models::Result<std::vector<fs::path>> traces_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    // Not a range-based loop: its ++ throws when the folder goes away or the disk fails.
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (is_trace_name(entry->path())) files.push_back(entry->path());
    }
    if (error) {
        return models::fail("The folder {} cannot be read ({}): check its name and permissions.",
                            folder.string(), error.message());
    }
    std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
        return std::tuple(a.stem(), a) < std::tuple(b.stem(), b);
    });
    return files;
}

}  // namespace profiler
