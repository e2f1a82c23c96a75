#include "app/workspace/exports.h"

#include "app/workspace/jobs/wake.h"
#include "app/workspace/view_orders.h"
#include "profiler/trace/file/write_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace app {

namespace fs = std::filesystem;

void Exports::start(const fs::path& file, const ChartStyle& style, Write write) {
    const auto format = profiler::chart_format_of(file);
    if (!format) return refuse(format.error().message);
    queue_.start("Exporting",
                 [file, style, format = *format,
                  write = std::move(write)](const auto&) -> models::Result<Done> {
                     const auto written =
                         write(style.dark ? profiler::dark_theme() : profiler::light_theme(),
                               {.format = format, .png_scale = style.png_scale});
                     if (!written) return tl::unexpected(written.error());
                     return Done{fmt::format("Wrote {}.", file.string())};
                 });
}

void Exports::comparison(std::shared_ptr<const profiler::CompareView> view, const fs::path& file,
                         const ChartStyle& style) {
    start(file, style, [view = std::move(view), file](const auto& theme, const auto& options) {
        return profiler::write_comparison_chart(*view, theme, options, file);
    });
}

void Exports::timeline(const Selection& selection, const TimeAxis& time, const fs::path& file,
                       const ChartStyle& style) {
    // The copies keep the documents alive from which the request borrows.
    start(file, style, [selection, time, file](const auto& theme, const auto& options) {
        TimeWindow shown = time.window;
        shown.width_px = static_cast<int>(options.width);
        const auto view = profiler::build_timeline_view(timeline_request(selection, time, shown));
        return profiler::write_timeline_chart(view, theme, options, file);
    });
}

void Exports::table(std::function<profiler::DataTable()> make, const fs::path& file) {
    std::string extension = file.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (extension != ".csv" && extension != ".tsv" && extension != ".json") {
        return refuse(
            fmt::format("{} ends neither in .csv nor in .tsv nor in .json: name such a file.",
                        file.filename().string()));
    }
    queue_.start("Exporting",
                 [file, extension, make = std::move(make)](const auto&) -> models::Result<Done> {
                     const profiler::DataTable table = make();
                     const std::string text = extension == ".json"  ? profiler::to_json(table)
                                              : extension == ".tsv" ? profiler::to_tsv(table)
                                                                    : profiler::to_csv(table);
                     const auto written = profiler::write_file(file, text);
                     if (!written) return tl::unexpected(written.error());
                     return Done{fmt::format("Wrote {}.", file.string())};
                 });
}

void Exports::copy(std::function<profiler::DataTable()> make,
                   std::string (*to_text)(const profiler::DataTable&), const std::string& title) {
    queue_.start("Copying",
                 [make = std::move(make), to_text, title](const auto&) -> models::Result<Done> {
                     return Done{fmt::format("Copied {}.", title), to_text(make())};
                 });
}

void Exports::refuse(std::string why) {
    notices_.push_back({profiler::Severity::kError, std::move(why)});
    wake_window();
}

std::vector<Notice> Exports::take_notices() {
    std::vector<Notice> notices = std::exchange(notices_, {});
    for (auto& ended : queue_.take()) {
        if (ended && ended->copied) copied_ = std::move(ended->copied);
        notices.push_back(ended ? Notice{profiler::Severity::kInfo, ended->sentence}
                                : Notice{profiler::Severity::kError, ended.error().message});
    }
    return notices;
}

}  // namespace app
