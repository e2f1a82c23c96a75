#include "tests/gui/test_window.h"

#include "app/widgets/theme.h"

#include <imgui_internal.h>

#include <cmath>
#include <string>
#include <utility>

namespace tests {
namespace {

GUI_TEST(layout, the_theme_can_be_switched) {
    window().reset(c);
    c->SetRef("##MainMenuBar");
    c->MenuClick("View/Light theme");
    c->Yield(2);
    IM_CHECK(!app::palette().dark);
    c->MenuClick("View/Dark theme");
    c->Yield(2);
    IM_CHECK(app::palette().dark);
}

GUI_TEST(layout, panels_close_and_the_layout_resets) {
    window().reset(c);
    c->SetRef("##MainMenuBar");
    c->MenuUncheck("View/Lines of code");
    c->Yield(2);
    IM_CHECK(!window().is_open("lines"));
    c->MenuClick("View/Reset layout");
    c->Yield(3);
    IM_CHECK(window().is_open("lines"));
    IM_CHECK(c->WindowInfo("//###lines").Window != nullptr);
}

GUI_TEST(layout, panels_can_be_dragged_elsewhere) {
    window().reset(c);
    const ImVec2 before = c->WindowInfo("//###inspector").RectFull.Min;
    c->DockInto("//###inspector", "//###lines");
    c->Yield(3);
    const ImVec2 after = c->WindowInfo("//###inspector").RectFull.Min;
    IM_CHECK_LT(after.x, before.x);
    window().ui().reset_layout = true;
    c->Yield(3);
}

ImGuiID dock_of(ImGuiTestContext* c, const char* panel) {
    return c->WindowInfo(panel).Window->DockId;
}

/// The parts of the tool bar neither overlap nor lie outside the window.
void check_tool_bar(ImGuiTestContext* c) {
    const ImRect swap = c->ItemInfo("//##toolbar/**/\xef\x83\xac##swap").RectFull;
    const ImRect search = c->ItemInfo("//##toolbar/**/###search").RectFull;
    const ImRect theme = c->ItemInfo("//##toolbar/**/###theme").RectFull;
    IM_CHECK_LT(swap.Max.x, search.Min.x);
    IM_CHECK_LT(search.Max.x, theme.Min.x);
    IM_CHECK_LE(theme.Max.x, ImGui::GetMainViewport()->Size.x);
}

GUI_TEST(layout, small_windows_have_a_layout_of_their_own) {
    window().show(c, {"original", "tempo", "tempo-packed"});
    IM_CHECK_NE(dock_of(c, "//###compare"), dock_of(c, "//###timeline"));
    check_tool_bar(c);
    for (const auto& [width, height] : {std::pair(900, 600), std::pair(720, 480)}) {
        const std::string size = "_" + std::to_string(width);
        window().resize(c, width, height);
        IM_CHECK_EQ(dock_of(c, "//###compare"), dock_of(c, "//###timeline"));
        IM_CHECK_EQ(dock_of(c, "//###compare"), dock_of(c, "//###inspector"));
        check_tool_bar(c);
        for (const char* panel : {"timeline", "ledger", "traces", "capture", "compare"}) {
            window().show_panel(c, panel);
            window().take_picture(c, std::string("small_") + panel + size);
            const ImGuiWindow* shown = c->WindowInfo((std::string("//###") + panel).c_str()).Window;
            const bool scrolls = (shown->Flags & ImGuiWindowFlags_NoScrollbar) == 0;
            IM_CHECK(scrolls || shown->ScrollMax.y <= 0);  // nothing is out of reach
        }
    }
    window().resize(c, 1600, 1000);
    IM_CHECK_NE(dock_of(c, "//###compare"), dock_of(c, "//###timeline"));
    IM_CHECK(window().workspace().slots().timeline.view() != nullptr);
}

/// Also after the window was large: all places shrink alike.
GUI_TEST(layout, a_laptop_shows_the_memory_and_one_more_panel) {
    window().show(c, {"original"});
    for (const char* name : {"laptop_fresh", "laptop_shrunk"}) {
        window().resize(c, 1366, 768);
        window().take_picture(c, name);
        IM_CHECK_EQ(dock_of(c, "//###advice"), dock_of(c, "//###inspector"));
        IM_CHECK_NE(dock_of(c, "//###advice"), dock_of(c, "//###timeline"));
        const app::TimelineState& timeline = window().ui().panels.timeline;
        const float top = c->WindowInfo("//###timeline").RectFull.Min.y;
        IM_CHECK_GT(timeline.plot_foot_px - top, app::px(180));
        window().resize(c, 1920, 1200);
    }
    window().resize(c, 1600, 1000);
}

/// The layout is the user's: it is kept, and scaled with the window.
GUI_TEST(layout, a_layout_of_the_users_stays_in_a_small_window) {
    window().show(c, {"original", "tempo"});
    c->DockInto("//###inspector", "//###timeline", ImGuiDir_Left);
    c->Yield(6);
    const float share = c->WindowInfo("//###inspector").RectFull.GetWidth() / 1600;
    window().resize(c, 900, 600);
    IM_CHECK_NE(dock_of(c, "//###compare"), dock_of(c, "//###timeline"));
    const float small = c->WindowInfo("//###inspector").RectFull.GetWidth() / 900;
    IM_CHECK_LT(std::abs(small - share), 0.03F);
    window().resize(c, 1600, 1000);
    window().reset(c);
}

GUI_TEST(layout, what_is_opened_chooses_the_layout) {
    window().reset(c);
    IM_CHECK(app::layout_of(window().ui()) == app::Layout::kExplain);
    window().open_files(c, {window().trace("original")});
    IM_CHECK(app::layout_of(window().ui()) == app::Layout::kExplain);
    IM_CHECK(window().is_open("advice"));
    window().open_files(c, {window().trace("tempo")});
    IM_CHECK(app::layout_of(window().ui()) == app::Layout::kCompare);
    IM_CHECK(!window().is_open("advice"));
    IM_CHECK(window().is_open("compare"));
    window().reset(c);
}

GUI_TEST(layout, each_layout_keeps_its_docking) {
    window().show(c, {"original", "tempo"});
    c->DockInto("//###inspector", "//###timeline", ImGuiDir_Left);
    c->Yield(8);
    const float left = c->WindowInfo("//###inspector").RectFull.Min.x;
    IM_CHECK_LT(left, 100.0F);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_3);
    IM_CHECK(window().is_open("planner"));
    IM_CHECK(!window().is_open("inspector"));
    window().take_picture(c, "layout_plan");
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_1);
    IM_CHECK(window().is_open("inspector"));
    IM_CHECK_GT(c->WindowInfo("//###inspector").RectFull.Min.x, 800.0F);
    window().take_picture(c, "layout_explain");
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_2);
    c->Yield(4);
    IM_CHECK_EQ(c->WindowInfo("//###inspector").RectFull.Min.x, left);
    window().take_picture(c, "layout_compare");
    window().reset(c);
}

GUI_TEST(layout, the_views_of_a_panel_share_its_place) {
    window().show(c, {"original", "tempo"});
    const ImGuiID dock = dock_of(c, "//###timeline");
    c->ItemClick("//###timeline/###view_blocks");
    window().settle(c);
    IM_CHECK(window().is_open("blocks"));
    IM_CHECK(!window().is_open("timeline"));
    IM_CHECK_EQ(dock_of(c, "//###blocks"), dock);
    c->ItemClick("//###blocks/###view_timeline");
    window().settle(c);
    IM_CHECK(window().is_open("timeline"));
    IM_CHECK_EQ(dock_of(c, "//###timeline"), dock);
}

GUI_TEST(layout, layouts_can_be_undone) {
    window().reset(c);
    c->Yield(8);
    const ImVec2 before = c->WindowInfo("//###inspector").RectFull.Min;
    const ImGuiID dock = dock_of(c, "//###inspector");
    IM_CHECK(!window().ui().layout_history.can_undo());
    c->DockInto("//###inspector", "//###lines");
    c->Yield(8);
    IM_CHECK_NE(dock_of(c, "//###inspector"), dock);
    window().ui().settings.shown_panels["kernels"] = false;
    c->Yield(8);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK(window().is_open("kernels"));
    IM_CHECK_NE(dock_of(c, "//###inspector"), dock);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK_EQ(dock_of(c, "//###inspector"), dock);
    const ImVec2 after = c->WindowInfo("//###inspector").RectFull.Min;
    IM_CHECK_EQ(after.x, before.x);
    IM_CHECK_EQ(after.y, before.y);
    IM_CHECK(!window().ui().layout_history.can_undo());
    // A reset can be undone too.
    c->DockInto("//###advice", "//###timeline");
    c->Yield(8);
    const ImGuiID own = dock_of(c, "//###advice");
    window().ui().reset_layout = true;
    c->Yield(8);
    IM_CHECK_NE(dock_of(c, "//###advice"), own);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK_EQ(dock_of(c, "//###advice"), own);
    IM_CHECK_EQ(dock_of(c, "//###advice"), dock_of(c, "//###timeline"));
    window().reset(c);
}

GUI_TEST(remember_write, theme_and_panels) {
    c->SetRef("##MainMenuBar");
    c->MenuClick("View/Light theme");
    c->MenuUncheck("View/What to do");
    window().open(c, {"original"});
    IM_CHECK(!window().is_open("advice"));
}

GUI_TEST(remember_read, theme_and_panels) {
    c->Yield(2);
    IM_CHECK(!app::palette().dark);
    IM_CHECK(!window().is_open("advice"));
    IM_CHECK_EQ(window().ui().settings.recent_files.size(), size_t{1});
}

}  // namespace
}  // namespace tests
