#include "app/panels/panel_tables.h"

#include "profiler/view/advice/advice_view.h"
#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/allocator/what_if_view.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/kernels/movement_view.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/flame_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/plan/planner_view.h"
#include "profiler/view/plan/recipe_frontier_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/diagnostics_table.h"
#include "profiler/view/programs/pair_view.h"
#include "profiler/view/ranks/ranks_view.h"
#include "profiler/view/selected/inspector_view.h"
#include "profiler/view/selected/range_view.h"

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

/// One table, made of the view that a slot shows.
template <typename View, typename Make>
void add_table(std::vector<PanelTable>& tables, const char* title, const char* file_name,
               std::shared_ptr<const View> view, Make make) {
    if (!view) return;
    tables.push_back({title, file_name, [view = std::move(view), make] { return make(*view); }});
}

template <typename View, typename Make>
std::vector<PanelTable> one_table(const char* title, const char* file_name,
                                  std::shared_ptr<const View> view, Make make) {
    std::vector<PanelTable> tables;
    add_table(tables, title, file_name, std::move(view), make);
    return tables;
}

/// A table for A and one for B: "Memory of A over time", "timeline_a".
template <typename View, typename Make>
std::vector<PanelTable> tables_of_pair(const char* title, const char* file_name,
                                       std::shared_ptr<const View> view, Make make) {
    std::vector<PanelTable> tables;
    for (size_t i = 0; view && i < view->traces.size(); ++i) {
        tables.push_back({fmt::format(fmt::runtime(title), i == 0 ? "A" : "B"),
                          fmt::format("{}_{}", file_name, i == 0 ? "a" : "b"),
                          [view, i, make] { return make(view->traces[i]); }});
    }
    return tables;
}

std::vector<PanelTable> compare_tables(const Workspace& workspace) {
    const auto result = workspace.comparison();
    if (!result || result->view.columns.empty()) return {};
    std::vector<PanelTable> tables{
        {"Recipes", "comparison",
         [result] { return profiler::compare_data(result->comparison, result->view); }},
        {"Throughput by batch", "throughput",
         [result] { return profiler::throughput_data(result->comparison, result->view); }}};
    add_table(tables, "Memory of A and B", "a_and_b", workspace.slots().pair.shared(),
              profiler::pair_data);
    return tables;
}

std::vector<PanelTable> traces_tables(const Workspace& workspace) {
    if (workspace.documents().empty()) return {};
    DataTable table{.columns = {"file", "name", "recipe", "workload", "source", "state",
                                "peak_allocated_bytes", "kept_bytes"}};
    for (size_t i = 0; i < workspace.documents().size(); ++i) {
        const Document& document = *workspace.documents()[i];
        const auto bytes = [&](int64_t size) {
            return document.has_step ? profiler::Cell(size) : profiler::Cell();
        };
        table.rows.push_back({document.file.string(), workspace.labels()[i].name, document.recipe,
                              document.workload, document.source, document.state,
                              bytes(document.index->peak().allocated_bytes),
                              bytes(document.index->ledger().total_bytes)});
    }
    return {{"Open traces", "traces", [table] { return table; }}};
}

/// The dots, and the way between the two that are chosen.
std::vector<PanelTable> frontier_tables(const Workspace& workspace) {
    std::vector<PanelTable> tables;
    const auto view = workspace.slots().frontier.shared();
    add_table(tables, "Recipes of the frontier", "frontier", view, profiler::frontier_data);
    if (!view) return tables;
    const FrontierQuery& query = workspace.queries().frontier;
    const auto from = profiler::find_dot(*view, query.from),
               to = profiler::find_dot(*view, query.to);
    if (!from || !to) return tables;
    tables.push_back({"What to switch", "frontier_path", [view, from, to] {
                          return profiler::path_data(profiler::recipe_path(*view, *from, *to));
                      }});
    return tables;
}

std::vector<PanelTable> line_tables(const Workspace& workspace) {
    const auto view = workspace.slots().advice.shared();
    if (!view) return {};
    return {{"Lines at the peak", "lines", [view] {
                 DataTable table{.columns = {"line", "code", "size_bytes"}};
                 for (const profiler::Share& share : view->explanation.memory.by_line) {
                     table.rows.push_back({share.name, share.code, share.size_bytes});
                 }
                 return table;
             }}};
}

std::vector<PanelTable> ledger_tables(const WindowViews& views, const LedgerState& state) {
    const auto view = views.ledger.shared();
    if (!view) return {};
    return {{"Ledger", "ledger",
             [view, columns = state.columns] { return profiler::ledger_data(*view, columns); }}};
}

std::vector<PanelTable> block_tables(const WindowViews& views) {
    std::vector<PanelTable> tables;
    add_table(tables, "Live blocks", "live_blocks", views.live_blocks.shared(),
              profiler::live_blocks_data);
    add_table(tables, "Segments", "segments", views.segments.shared(), profiler::segments_data);
    const auto what_if = views.what_if.shared();
    add_table(tables, "Other allocator settings", "what_if", what_if, profiler::what_if_data);
    if (what_if && !what_if->tried.empty()) {
        add_table(tables, "Settings that were tried", "tried_settings", what_if,
                  profiler::tried_data);
    }
    return tables;
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
        list("Tensors at the end of the range", "range_held", &profiler::RangeView::held, "bytes"),
        list("Tensors of the range", "range_tensors", &profiler::RangeView::tensors, "bytes"),
        list("Longest ops of the range", "range_ops_by_time", &profiler::RangeView::ops_by_time,
             "ns"),
        list("Ops of the range by bytes", "range_ops_by_bytes", &profiler::RangeView::ops_by_bytes,
             "bytes")};
}

std::vector<PanelTable> inspector_tables(const WindowViews& views) {
    std::vector<PanelTable> tables;
    add_table(tables, "What is selected", "selection", views.inspector.shared(),
              profiler::inspector_data);
    for (PanelTable& table : range_tables(views)) tables.push_back(std::move(table));
    return tables;
}

std::vector<PanelTable> planner_tables(const Workspace& workspace) {
    const auto result = workspace.slots().planner.shared();
    if (!result || result->view.recipes.empty()) return {};
    return {{"Plan", "plan", [result] { return profiler::planner_data(result->view); }}};
}

/// The visible part of the time axis, on each trace's own clock.
std::vector<PanelTable> kernel_tables(const Workspace& workspace) {
    const Selection& selection = workspace.selection();
    const TimeAxis& time = workspace.time();
    std::vector<PanelTable> tables;
    const auto add = [&](const char* title, const char* file_name, const DocumentPtr& document,
                         double start_ns, double end_ns) {
        if (!document || document->index->calls().empty()) return;
        tables.push_back({title, file_name, [document, start_ns, end_ns] {
                              return profiler::kernels_data(*document->index,
                                                            profiler::to_clock(start_ns),
                                                            profiler::to_clock(end_ns), kMostCalls);
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
    if (selection.a) traces.emplace_back(selection.label_a.name, selection.a->diagnostics);
    if (selection.b) traces.emplace_back(selection.label_b.name, selection.b->diagnostics);
    if (traces.empty()) return {};
    return {
        {"Diagnostics", "diagnostics", [traces] { return profiler::diagnostics_data(traces); }}};
}

std::vector<PanelTable> tables_of(std::string_view panel_id, const Workspace& workspace,
                                  const WindowViews& views, const PanelStates& states) {
    const Slots& slots = workspace.slots();
    if (panel_id == "compare") return compare_tables(workspace);
    if (panel_id == "advice") {
        return one_table(
            "Remedies", "remedies", slots.advice.shared(), [](const profiler::AdviceView& view) {
                return profiler::data_table(profiler::remedy_columns(),
                                            profiler::numbered_remedies(view.explanation));
            });
    }
    if (panel_id == "lines") return line_tables(workspace);
    if (panel_id == "ledger") return ledger_tables(views, states.ledger);
    if (panel_id == "movement") {
        return tables_of_pair("Data movement of {}", "movement", slots.movement.shared(),
                              profiler::movement_data);
    }
    if (panel_id == "ranks") {
        return one_table("Ranks", "ranks", slots.rank_run.shared(),
                         [](const RanksOfRun& ranks) { return profiler::ranks_data(ranks.run); });
    }
    if (panel_id == "blocks") return block_tables(views);
    if (panel_id == "inspector") return inspector_tables(views);
    if (panel_id == "traces") return traces_tables(workspace);
    if (panel_id == "timeline") {
        return tables_of_pair("Memory of {} over time", "timeline", slots.timeline.shared(),
                              profiler::timeline_data);
    }
    if (panel_id == "layer") {
        return one_table("Tensors of the layer", "layer", slots.layers.shared(),
                         profiler::ribbons_data);
    }
    if (panel_id == "flame") {
        return one_table("Flame graph", "flame", views.flame.shared(), profiler::flame_data);
    }
    if (panel_id == "frontier") return frontier_tables(workspace);
    if (panel_id == "planner") return planner_tables(workspace);
    if (panel_id == "kernels") return kernel_tables(workspace);
    if (panel_id == "diagnostics") return diagnostics_tables(workspace);
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
