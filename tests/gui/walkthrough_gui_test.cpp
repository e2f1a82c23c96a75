// Pictures of the window on real traces, for docs/window.md: those of the folders in
// TEMPOSCOPE_WALKTHROUGH and TEMPOSCOPE_WALKTHROUGH_RANKS, with the built worker. Run by hand.
#include "app/panels/ranks/ranks_panel.h"
#include "app/window/windows.h"
#include "tests/gui/test_window.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tests {
namespace {

void open_folder(ImGuiTestContext* c) {
    const char* folder = std::getenv("TEMPOSCOPE_WALKTHROUGH");
    IM_CHECK_SILENT(folder != nullptr);
    window().reset(c);
    window().resize(c, 1600, 1000);
    window().open_files(c, {folder});
}

void picture_of_window(ImGuiTestContext* c, const char* panel) {
    window().show_panel(c, panel);
    window().take_picture(c, std::string("walkthrough_") + panel);
}

/// Only the panel's part of the window.
void picture_of_panel(ImGuiTestContext* c, const char* panel) {
    window().show_panel(c, panel);
    c->MouseTeleportToPos({2, 2});
    window().ui().picture_panel = panel;
    window().take_running_picture(c, std::string("walkthrough_") + panel);
}

/// A saved tensor with a closed form, which every panel can point at.
app::PickedTensor attention_probs() {
    const app::Workspace& workspace = window().workspace();
    const auto& rows = workspace.views().ledger.view()->rows;
    const auto found = std::ranges::find_if(rows, [](const profiler::LedgerViewRow& row) {
        return row.tensor == "attention_probs" && row.layer == 12;
    });
    if (found == rows.end()) return {};
    return {.document = workspace.selection().a, .storage = found->storage};
}

GUI_TEST(walkthrough, all_panels) {
    open_folder(c);
    for (const char* panel : {"compare", "flame", "blocks"}) picture_of_window(c, panel);
    app::Workspace& workspace = window().workspace();
    workspace.apply({.selection = {.tensor = attention_probs()}});
    for (const char* panel : {"timeline", "kernels", "ledger", "inspector", "planner", "movement",
                              "capture", "traces", "diagnostics"}) {
        picture_of_panel(c, panel);
    }
    app::show_panel(window().ui(), "frontier");
    wait_until(c, [&] { return workspace.frontier_plans().is_complete(); });
    picture_of_panel(c, "frontier");
}

/// The ranks of the folder in TEMPOSCOPE_WALKTHROUGH_RANKS, with a collective of the first that is
/// under the mouse.
GUI_TEST(walkthrough, ranks) {
    const char* folder = std::getenv("TEMPOSCOPE_WALKTHROUGH_RANKS");
    IM_CHECK_SILENT(folder != nullptr);
    window().reset(c);
    window().resize(c, 1600, 1000);
    window().open_files(c, {folder});
    window().show_panel(c, "ranks");
    const profiler::RanksView* view = window().workspace().slots().ranks.view();
    IM_CHECK_SILENT(view != nullptr && !view->lanes.front().collectives.empty());
    const auto& spans = view->lanes.front().collectives;
    const auto longest =
        std::ranges::max_element(spans, {}, [](const profiler::CollectiveSpan& span) {
            return span.row == 0 ? span.end_ns - span.start_ns : 0;
        });
    const app::PlotMap& plot = window().ui().panels.ranks.plot;
    const app::LanePlace lane = app::place_lanes(*view, plot.size.y).front();
    c->MouseMoveToPos({plot.x((longest->start_ns + longest->end_ns) / 2),
                       plot.corner.y + lane.top + lane.memory_height + 5});
    c->Yield(3);
    window().ui().picture_panel = "ranks";
    window().take_running_picture(c, "walkthrough_ranks");
}

GUI_TEST(walkthrough, two_ledgers) {
    open_folder(c);
    app::show_panel(window().ui(), "ledger");
    app::open_another(window().ui(), *app::find_window("ledger"));
    c->Yield(4);
    c->DockInto("//###ledger-2", "//###timeline");
    c->Yield(6);
    window().settle(c);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    c->Yield(3);
    c->KeyCharsReplace("attention");
    window().take_picture(c, "walkthrough_windows");
    window().reset(c);
}

/// The moment that the window is made for: a switch, and the memory moves.
GUI_TEST(walkthrough, a_switch_moves_the_memory) {
    open_folder(c);
    app::Workspace& workspace = window().workspace();
    workspace.set_b(nullptr);
    window().show_panel(c, "layer");
    workspace.apply({.recipes = {.try_recipe = "gelu=in_place"}});
    window().settle(c);
    IM_CHECK(workspace.selection().b != nullptr);
    IM_CHECK_STR_EQ(workspace.selection().b->recipe.c_str(), "gelu=in_place");
    IM_CHECK(workspace.headline().find("less memory") != std::string::npos);
    wait_until(c, [] { return window().workspace().is_made_ahead(); });
    window().take_picture(c, "walkthrough_switch");
}

}  // namespace
}  // namespace tests
