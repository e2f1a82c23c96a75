#include "app/commands/reports/phase_report.h"

#include "profiler/analysis/step/phase_peaks.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace app {
namespace {

using namespace profiler;

PhasePeaks peaks_of(const ComparisonColumn& column) {
    if (column.step_trace) return find_phase_peaks(*column.step_trace);
    PhasePeaks none;
    none.fill(-1);
    return none;
}

std::string change_text(int64_t bytes, int64_t baseline_bytes) {
    if (bytes < 0 || baseline_bytes <= 0 || bytes == baseline_bytes) return {};
    const double ratio = static_cast<double>(bytes) / static_cast<double>(baseline_bytes);
    return format_percent(ratio - 1, true);
}

}  // namespace

void print_phase_peaks(Output& output, const Comparison& comparison) {
    std::vector<PhasePeaks> peaks;
    TextTable table;
    table.columns.push_back({"phase", Align::kLeft});
    for (const ComparisonColumn& column : comparison.columns) {
        peaks.push_back(peaks_of(column));
        table.columns.push_back({column.recipe, Align::kRight});
        table.columns.push_back({"", Align::kRight});
    }
    for (std::size_t kind = 0; kind < kPhaseKindNames.size(); ++kind) {
        std::vector<std::string> cells{std::string(kPhaseKindNames[kind])};
        for (std::size_t i = 0; i < peaks.size(); ++i) {
            const int64_t bytes = peaks[i][kind];
            const int64_t baseline = peaks[comparison.columns[i].baseline][kind];
            cells.push_back(bytes < 0 ? "–" : format_bytes(bytes));
            cells.push_back(change_text(bytes, baseline));
        }
        const bool is_known =
            std::any_of(peaks.begin(), peaks.end(),
                        [&](const PhasePeaks& column) { return column[kind] >= 0; });
        if (is_known) table.rows.push_back(std::move(cells));
    }
    output.heading("Peak of each phase");
    if (table.rows.empty()) {
        output.line(
            "No file has phases: a memory snapshot gets them when it is joined with the trace of "
            "the profiler (temposcope import).");
    } else {
        output.table(table);
    }
}

nlohmann::json phase_peaks_json(const ComparisonColumn& column) {
    const PhasePeaks peaks = peaks_of(column);
    nlohmann::json json = nlohmann::json::object();
    for (std::size_t kind = 0; kind < peaks.size(); ++kind) {
        json[std::string(kPhaseKindNames[kind])] =
            peaks[kind] < 0 ? nlohmann::json(nullptr) : nlohmann::json(peaks[kind]);
    }
    return json;
}

}  // namespace app
