#include "app/commands/window.h"

#include "app/window/run_window.h"
#include "profiler/trace/readable_file.h"

#include <filesystem>

namespace app {

Outcome open_window(const std::vector<std::string>& files) {
    WindowOptions options;
    for (const std::string& file : files) {
        std::error_code error;
        if (!std::filesystem::is_directory(file, error)) {
            const auto readable = profiler::check_readable(file);
            if (!readable) return failed(readable.error());
        }
        options.files.emplace_back(file);
    }
    const auto closed = run_window(options);
    if (!closed) return failed(closed.error());
    return ExitCode::kOk;
}

}  // namespace app
