#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/diagnostics.h"
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
    output.line(output.styled(fmt::format("Health: {}", named.file), Style::kBold));
    const auto items = report_diagnostics(*named.trace);
    if (items.empty()) output.line("Nothing to report: the capture saw all it looked for.");
    for (const DiagnosticItem& item : items) {
        output.line(fmt::format("{}  {} ({})",
                                output.styled(name_of(item.severity), style_of(item.severity)),
                                item.code, format_count(item.count)));
        output.line("    " + item.explanation);
    }
}

nlohmann::json diagnostics_json(const NamedTrace& named) {
    nlohmann::json json = describe_trace(named);
    json["rows"] = nlohmann::json::array();
    for (const DiagnosticItem& item : report_diagnostics(*named.trace)) {
        json["rows"].push_back({{"code", item.code},
                                {"severity", name_of(item.severity)},
                                {"count", item.count},
                                {"explanation", item.explanation}});
    }
    return json;
}

}  // namespace app
