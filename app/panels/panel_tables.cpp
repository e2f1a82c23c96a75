#include "app/panels/panel_tables.h"

#include "profiler/view/view_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

namespace app {
namespace {

using profiler::DataTable;

/// More calls than a person reads or a spreadsheet opens are left out, and the table says so.
constexpr std::size_t kMostCalls = 200'000;

std::vector<PanelTable> compare_tables(const Workspace& workspace) {
    const auto result = workspace.comparison();
    if (!result || result->view.columns.empty()) return {};
    return {{"Recipes", "comparison",
             [result] { return profiler::compare_data(result->comparison, result->view); }},
            {"Throughput by batch", "throughput",
             [result] { return profiler::throughput_data(result->comparison, result->view); }}};
}

std::vector<PanelTable> ledger_tables(const WindowViews& views, const LedgerState& state) {
    const auto view = views.ledger.shared();
    if (!view) return {};
    return {{"Ledger", "ledger",
             [view, columns = state.columns] { return profiler::ledger_data(*view, columns); }}};
}

std::vector<PanelTable> movement_tables(const Workspace& workspace) {
    const auto view = workspace.slots().movement.shared();
    std::vector<PanelTable> tables;
    const auto add = [&](const char* title, const char* file_name, size_t trace) {
        if (!view || trace >= view->traces.size()) return;
        tables.push_back({title, file_name,
                          [view, trace] { return profiler::movement_data(view->traces[trace]); }});
    };
    add("Data movement of A", "movement_a", 0);
    add("Data movement of B", "movement_b", 1);
    return tables;
}

std::vector<PanelTable> block_tables(const WindowViews& views) {
    const auto view = views.live_blocks.shared();
    if (!view) return {};
    return {{"Live blocks", "live_blocks", [view] { return profiler::live_blocks_data(*view); }}};
}

std::vector<PanelTable> range_tables(const WindowViews& views) {
    const auto view = views.range.shared();
    if (!view) return {};
    const auto list = [&](const char* title, const char* file_name,
                          std::vector<profiler::RangeRow> profiler::RangeView::*rows,
                          const char* unit) {
        return PanelTable{title, file_name, [view, rows, unit] {
                              return profiler::range_data(*view, (*view).*rows, unit);
                          }};
    };
    return {
        {"Figures of the range", "range", [view] { return profiler::range_figures_data(*view); }},
        list("Tensors of the range", "range_tensors", &profiler::RangeView::tensors, "bytes"),
        list("Longest ops of the range", "range_ops_by_time", &profiler::RangeView::ops_by_time,
             "ns"),
        list("Ops of the range by bytes", "range_ops_by_bytes", &profiler::RangeView::ops_by_bytes,
             "bytes")};
}

std::vector<PanelTable> planner_tables(const Workspace& workspace) {
    const auto result = workspace.slots().planner.shared();
    if (!result || result->view.recipes.empty()) return {};
    return {{"Plan", "plan", [result] { return profiler::planner_data(result->view); }}};
}

int64_t to_clock(double time_ns) { return std::llround(std::clamp(time_ns, -0x1p62, 0x1p62)); }

/// The visible part of the time axis, on each trace's own clock.
std::vector<PanelTable> kernel_tables(const Workspace& workspace) {
    const Selection& selection = workspace.selection();
    const TimeAxis& time = workspace.time();
    std::vector<PanelTable> tables;
    const auto add = [&](const char* title, const char* file_name, const DocumentPtr& document,
                         double start_ns, double end_ns) {
        if (!document || document->activity.empty()) return;
        tables.push_back({title, file_name, [document, start_ns, end_ns] {
                              return profiler::activity_data(
                                  {document->trace.get(), &document->activity}, to_clock(start_ns),
                                  to_clock(end_ns), kMostCalls);
                          }});
    };
    const TimeWindow& window = time.window;
    add("Calls and kernels of A", "calls_a", selection.a, window.start_ns, window.end_ns);
    if (time.alignment) {
        const profiler::TimeMap& map = time.alignment->second;
        add("Calls and kernels of B", "calls_b", selection.b, map.to_own(window.start_ns),
            map.to_own(window.end_ns));
    }
    return tables;
}

std::vector<PanelTable> diagnostics_tables(const Workspace& workspace) {
    const Selection& selection = workspace.selection();
    std::vector<std::pair<std::string, std::vector<profiler::DiagnosticItem>>> traces;
    if (selection.a) traces.emplace_back(selection.look_a.name, selection.a->diagnostics);
    if (selection.b) traces.emplace_back(selection.look_b.name, selection.b->diagnostics);
    if (traces.empty()) return {};
    return {
        {"Diagnostics", "diagnostics", [traces] { return profiler::diagnostics_data(traces); }}};
}

std::vector<PanelTable> tables_of(std::string_view panel_id, const Workspace& workspace,
                                  const WindowViews& views, const PanelStates& states) {
    if (panel_id == "compare") return compare_tables(workspace);
    if (panel_id == "ledger") return ledger_tables(views, states.ledger);
    if (panel_id == "movement") return movement_tables(workspace);
    if (panel_id == "blocks") return block_tables(views);
    if (panel_id == "inspector") return range_tables(views);
    if (panel_id == "planner") return planner_tables(workspace);
    if (panel_id == "kernels") return kernel_tables(workspace);
    if (panel_id == "health") return diagnostics_tables(workspace);
    return {};
}

}  // namespace

std::vector<PanelTable> tables_of(const PanelWindow& window, const Workspace& workspace,
                                  const PanelStates& states) {
    auto tables = tables_of(window.panel->id, workspace, workspace.views(window.number), states);
    if (window.number == 1) return tables;
    for (PanelTable& table : tables) {
        table.title += fmt::format(" {}", window.number);
        table.file_name += fmt::format("-{}", window.number);
    }
    return tables;
}

}  // namespace app
