#include "app/workspace/exports.h"

#include "app/workspace/view_requests.h"

#include <fmt/format.h>

#include <utility>

namespace app {

namespace fs = std::filesystem;

models::Result<void> Exports::start(const fs::path& file, bool dark, Write write) {
    const auto format = profiler::chart_format_of(file);
    if (!format) return tl::unexpected(format.error());
    queue_.start("Exporting",
                 [file, dark, format = *format,
                  write = std::move(write)](const auto&) -> models::Result<std::string> {
                     const auto written =
                         write(dark ? profiler::dark_theme() : profiler::light_theme(),
                               {.format = format});
                     if (!written) return tl::unexpected(written.error());
                     return fmt::format("Wrote {}.", file.string());
                 });
    return {};
}

models::Result<void> Exports::comparison(std::shared_ptr<const profiler::CompareView> view,
                                         const fs::path& file, bool dark) {
    return start(file, dark,
                 [view = std::move(view), file](const auto& theme, const auto& options) {
                     return profiler::write_comparison_chart(*view, theme, options, file);
                 });
}

models::Result<void> Exports::timeline(const Selection& selection, const TimeAxis& time,
                                       const fs::path& file, bool dark) {
    // The copies keep the documents alive from which the request borrows.
    return start(file, dark, [selection, time, file](const auto& theme, const auto& options) {
        TimeWindow shown = time.window;
        shown.width_px = static_cast<int>(options.width);
        const auto view = profiler::build_timeline_view(timeline_request(selection, time, shown));
        return profiler::write_timeline_chart(view, theme, options, file);
    });
}

std::vector<Notice> Exports::take_notices() {
    std::vector<Notice> notices;
    for (const auto& ended : queue_.take()) {
        notices.push_back(ended ? Notice{profiler::Severity::kInfo, *ended}
                                : Notice{profiler::Severity::kError, ended.error().message});
    }
    return notices;
}

}  // namespace app
