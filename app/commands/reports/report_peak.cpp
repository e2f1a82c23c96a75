#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

constexpr std::size_t kMaxRows = 40;

std::string_view phase_name(const Trace& trace, const PeakReport& peak) {
    return peak.phase.valid() ? name_of(trace.phases.get<&Phase::kind>(peak.phase))
                              : std::string_view();
}

std::string_view op_name(const Trace& trace, const PeakReport& peak) {
    return peak.op.valid() ? trace.text(trace.ops.get<&Op::name>(peak.op)) : std::string_view();
}

}  // namespace

void print_peak(Output& output, const NamedTrace& named, GroupBy by) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const PeakReport& peak = report->peak;
    output.line(output.styled(fmt::format("Peak: {}", named.file), Style::kBold));
    output.line(describe_run(trace));
    output.line(fmt::format("{} ({}) at {}{}{}", format_bytes(peak.allocated_bytes),
                            format_exact_bytes(peak.allocated_bytes),
                            format_duration(std::max<int64_t>(peak.time_ns, 0)),
                            peak.phase.valid() ? fmt::format(", {}", phase_name(trace, peak)) : "",
                            peak.op.valid() ? fmt::format(", in {}", op_name(trace, peak)) : ""));
    output.line();
    if (by == GroupBy::kLine && trace.stacks.empty()) {
        output.line(kNoCallStacks);
        return;
    }
    output.table(breakdown_table(break_down(trace, peak, by), name_of(by), kMaxRows));
    if (by == GroupBy::kLine && has_lines_of_functions(trace)) output.line(kWhichLines);
    if (has_inferred_categories(trace)) output.line(kClassesInferred);
}

nlohmann::json peak_json(const NamedTrace& named, GroupBy by) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const PeakReport& peak = report->peak;
    nlohmann::json json = describe_trace(named);
    json["peak_allocated_bytes"] = peak.allocated_bytes;
    json["peak_reserved_bytes"] = peak.reserved_bytes;
    json["event"] = peak.event;
    json["time_ns"] = peak.time_ns;
    json["phase"] = phase_name(trace, peak);
    json["op"] = op_name(trace, peak);
    json["by"] = name_of(by);
    json["classes_inferred"] = has_inferred_categories(trace);
    json["rows"] = nlohmann::json::array();
    for (const BreakdownRow& row : break_down(trace, peak, by)) {
        json["rows"].push_back({{"name", row.name},
                                {"size_bytes", row.size_bytes},
                                {"count", row.count},
                                {"by_class", by_class_json(row.by_category)}});
        if (!row.code.empty()) json["rows"].back()["code"] = row.code;
    }
    return json;
}

}  // namespace app
