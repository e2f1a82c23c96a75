#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

Style style_of(Severity severity) {
    switch (severity) {
        case Severity::kInfo:
            return Style::kDim;
        case Severity::kWarning:
            return Style::kWarning;
        case Severity::kError:
            return Style::kBad;
    }
    return Style::kPlain;
}

}  // namespace

void print_diagnostics(Output& output, const NamedTrace& named) {
    output.line(output.styled(fmt::format("Diagnostics: {}", named.file), Style::kBold));
    const auto items = report_diagnostics(*named.trace, *report_of(named));
    if (items.empty()) output.line("Nothing to report: the trace is complete.");
    for (const DiagnosticItem& item : items) {
        const std::string count = count_text(item);
        output.line(fmt::format("{}  {}{}",
                                output.styled(name_of(item.severity), style_of(item.severity)),
                                item.code, count.empty() ? "" : " (" + count + ")"));
        output.line("    " + item.explanation);
    }
}

nlohmann::json diagnostics_json(const NamedTrace& named) {
    nlohmann::json json = describe_trace(named);
    json["rows"] = nlohmann::json::array();
    for (const DiagnosticItem& item : report_diagnostics(*named.trace, *report_of(named))) {
        json["rows"].push_back({{"code", item.code},
                                {"severity", name_of(item.severity)},
                                {"count", item.count},
                                {"explanation", item.explanation}});
    }
    return json;
}

}  // namespace app
