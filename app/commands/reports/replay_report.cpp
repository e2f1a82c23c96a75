#include "app/commands/reports/replay_report.h"

#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

std::string settings_text(const AllocatorSettings& settings) {
    const std::string text = to_text(settings);
    return text.empty() ? "default settings" : text;
}

nlohmann::json out_of_memory_json(const SettingsRun& row) {
    if (!row.out_of_memory) return nullptr;
    const OutOfMemory& detail = row.out_of_memory->detail;
    return {{"allocations_done", row.allocations_done},
            {"requested_bytes", detail.requested_bytes},
            {"asked_bytes", detail.asked_bytes},
            {"free_bytes", detail.free_bytes},
            {"allocated_bytes", detail.use.allocated_bytes},
            {"reserved_bytes", detail.use.reserved_bytes}};
}

nlohmann::json row_json(const SettingsRun& row) {
    return {{"settings", to_text(row.settings)},
            {"start", row.from_recorded_start ? "recorded" : "empty"},
            {"memory_limit_bytes", row.memory_limit_bytes.value_or(-1)},
            {"peak_allocated_bytes", row.peak.allocated_bytes},
            {"peak_active_bytes", row.peak.active_bytes},
            {"peak_reserved_bytes", row.peak.reserved_bytes},
            {"peak_inactive_split_bytes", row.peak.inactive_split_bytes},
            {"segments", row.num_segments},
            {"fragmentation_ratio", Simulation::fragmentation_of(row.at_peak)},
            {"retries", row.num_retries},
            {"out_of_memory", out_of_memory_json(row)}};
}

void print_exactness(Output& output, const ReplayReport& report) {
    if (report.events == 0) {
        output.line(
            output.styled("The snapshot has no history, so there is nothing to replay. Before the "
                          "steps to record, "
                          "call",
                          Style::kWarning));
        output.line("  torch.cuda.memory._record_memory_history()");
        return;
    }
    output.line(report.is_exact()
                    ? output.styled("Replayed exactly as recorded:", Style::kGood)
                    : output.styled("The replay differs from the recording:", Style::kWarning));
    output.line(fmt::format("  {} of {} allocations at the recorded address ({})",
                            format_count(report.address_matches), format_count(report.allocations),
                            format_percent(report.address_match_rate())));
    const std::string segment_events =
        report.segment_events == 0
            ? "the file records no segment events"
            : fmt::format("{} of {} segment events", format_count(report.segment_event_matches),
                          format_count(report.segment_events));
    output.line(fmt::format("  {}, {}", segment_events,
                            report.final_state_matches
                                ? "equal segments and blocks at the end"
                                : "different segments or blocks at the end"));
    if (!report.first_difference.empty()) output.line("  " + report.first_difference);
}

/// `recorded_allocations` counts the events. The stream begins with blocks that were there before.
std::string out_of_memory_sentence(const SettingsRun& row, int64_t recorded_allocations) {
    const OutOfMemory& detail = row.out_of_memory->detail;
    return fmt::format(
        "Out of memory with {}{} after {} of {} allocations{}. A request of {} needed a segment of "
        "{}, but {} were free ({} allocated, {} reserved).",
        settings_text(row.settings),
        row.memory_limit_bytes ? " and " + format_bytes(*row.memory_limit_bytes) : std::string(),
        format_count(row.allocations_done), format_count(row.num_allocations),
        recorded_allocations < row.num_allocations
            ? fmt::format("; the first {} are those that were there when the recording began",
                          format_count(row.num_allocations - recorded_allocations))
            : std::string(),
        format_bytes(detail.requested_bytes), format_bytes(detail.asked_bytes),
        format_bytes(detail.free_bytes), format_bytes(detail.use.allocated_bytes),
        format_bytes(detail.use.reserved_bytes));
}

TextTable rows_table(const std::vector<SettingsRun>& rows) {
    TextTable table;
    table.columns = {{"settings", Align::kLeft},       {"limit", Align::kRight},
                     {"start", Align::kLeft},          {"peak allocated", Align::kRight},
                     {"peak reserved", Align::kRight}, {"segments", Align::kRight},
                     {"fragmentation", Align::kRight}, {"retries", Align::kRight},
                     {"out of memory", Align::kLeft}};
    for (const SettingsRun& row : rows) {
        table.rows.push_back({settings_text(row.settings),
                              row.memory_limit_bytes ? format_bytes(*row.memory_limit_bytes) : "–",
                              row.from_recorded_start ? "as recorded" : "empty",
                              format_bytes(row.peak.allocated_bytes),
                              format_bytes(row.peak.reserved_bytes), format_count(row.num_segments),
                              format_percent(Simulation::fragmentation_of(row.at_peak)),
                              row.num_retries == 0 ? "–" : format_count(row.num_retries),
                              row.out_of_memory ? "yes" : "–"});
    }
    return table;
}

}  // namespace

nlohmann::json replay_json(const ReplayDocument& document) {
    const auto& exact = document.exact;
    const auto known = [&](auto value) -> nlohmann::json {
        return exact ? nlohmann::json(value(*exact)) : nlohmann::json();
    };
    nlohmann::json json{
        {"file", document.file},
        {"source", document.source},
        {"device", document.device},
        {"events", document.events},
        {"address_matches", known([](const ReplayReport& r) { return r.address_matches; })},
        {"address_match_rate", known([](const ReplayReport& r) { return r.address_match_rate(); })},
        {"segment_events", known([](const ReplayReport& r) { return r.segment_events; })},
        {"segment_event_matches",
         known([](const ReplayReport& r) { return r.segment_event_matches; })},
        {"final_state_matches", known([](const ReplayReport& r) { return r.final_state_matches; })},
        {"first_difference", known([](const ReplayReport& r) { return r.first_difference; })},
        {"peak_allocated_bytes", document.rows.back().peak.allocated_bytes},
        {"peak_reserved_bytes", document.rows.back().peak.reserved_bytes},
        {"notes", document.notes},
        {"rows", nlohmann::json::array()}};
    for (const SettingsRun& row : document.rows) json["rows"].push_back(row_json(row));
    return json;
}

void print_replay(Output& output, const ReplayDocument& document) {
    output.line(output.styled(document.file, Style::kBold));
    output.line(fmt::format(
        "{}, {}, {} events",
        document.source == "snapshot" ? "PyTorch memory snapshot" : "allocation stream of a trace",
        document.device, format_count(document.events)));
    output.line();
    if (document.exact) {
        print_exactness(output, *document.exact);
    } else {
        output.line("Placed as a CUDA device would have placed it.");
    }
    output.line();
    output.table(rows_table(document.rows));
    for (const SettingsRun& row : document.rows) {
        if (!row.out_of_memory) continue;
        output.line(out_of_memory_sentence(
            row, document.exact ? document.exact->allocations : row.num_allocations));
    }
    output.line(output.styled(
        "Fragmentation: the share of the reserved memory that is not allocated, at the peak.",
        Style::kDim));
    output.line(output.styled(
        "Allocated: whole blocks; temposcope info counts the requested bytes in them.",
        Style::kDim));
    for (const std::string& note : document.notes) output.line("Note: " + note);
}

}  // namespace app
