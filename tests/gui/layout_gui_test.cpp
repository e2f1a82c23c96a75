#include "tests/gui/test_window.h"

#include "app/widgets/theme.h"

#include <imgui_internal.h>

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
    c->MenuUncheck("View/Ledger");
    c->Yield(2);
    IM_CHECK(!window().is_open("ledger"));
    c->MenuClick("View/Reset layout");
    c->Yield(3);
    IM_CHECK(window().is_open("ledger"));
    IM_CHECK(c->WindowInfo("//###ledger").Window != nullptr);
}

GUI_TEST(layout, panels_can_be_dragged_elsewhere) {
    window().reset(c);
    const ImVec2 before = c->WindowInfo("//###diagnostics").RectFull.Min;
    c->DockInto("//###diagnostics", "//###ledger");
    c->Yield(3);
    const ImVec2 after = c->WindowInfo("//###diagnostics").RectFull.Min;
    IM_CHECK_GT(after.x, before.x);
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
        IM_CHECK_EQ(dock_of(c, "//###compare"), dock_of(c, "//###ledger"));
        check_tool_bar(c);
        for (const char* panel : {"timeline", "ledger", "traces", "capture", "compare"}) {
            app::show_panel(window().ui(), panel);
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

GUI_TEST(layout, a_layout_of_the_users_stays_in_a_small_window) {
    window().reset(c);
    c->DockInto("//###diagnostics", "//###ledger");
    c->Yield(6);
    window().resize(c, 900, 600);
    IM_CHECK_NE(dock_of(c, "//###compare"), dock_of(c, "//###timeline"));
    IM_CHECK_EQ(dock_of(c, "//###diagnostics"), dock_of(c, "//###ledger"));
    window().resize(c, 1600, 1000);
}

GUI_TEST(layout, layouts_can_be_undone) {
    window().reset(c);
    c->Yield(8);
    const ImVec2 before = c->WindowInfo("//###diagnostics").RectFull.Min;
    const ImGuiID dock = dock_of(c, "//###diagnostics");
    IM_CHECK(!window().ui().layout_history.can_undo());
    c->DockInto("//###diagnostics", "//###ledger");
    c->Yield(8);
    IM_CHECK_NE(dock_of(c, "//###diagnostics"), dock);
    window().ui().settings.shown_panels["capture"] = false;
    c->Yield(8);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK(window().is_open("capture"));
    IM_CHECK_NE(dock_of(c, "//###diagnostics"), dock);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK_EQ(dock_of(c, "//###diagnostics"), dock);
    const ImVec2 after = c->WindowInfo("//###diagnostics").RectFull.Min;
    IM_CHECK_EQ(after.x, before.x);
    IM_CHECK_EQ(after.y, before.y);
    IM_CHECK(!window().ui().layout_history.can_undo());
    // A reset can be undone too.
    c->DockInto("//###traces", "//###timeline");
    c->Yield(8);
    const ImGuiID own = dock_of(c, "//###traces");
    window().ui().reset_layout = true;
    c->Yield(8);
    IM_CHECK_NE(dock_of(c, "//###traces"), own);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK_EQ(dock_of(c, "//###traces"), own);
    IM_CHECK_EQ(dock_of(c, "//###traces"), dock_of(c, "//###timeline"));
    window().reset(c);
}

GUI_TEST(remember_write, theme_and_panels) {
    c->SetRef("##MainMenuBar");
    c->MenuClick("View/Light theme");
    c->MenuUncheck("View/Diagnostics");
    window().open(c, {"original"});
    IM_CHECK(!window().is_open("diagnostics"));
}

GUI_TEST(remember_read, theme_and_panels) {
    c->Yield(2);
    IM_CHECK(!app::palette().dark);
    IM_CHECK(!window().is_open("diagnostics"));
    IM_CHECK_EQ(window().ui().settings.recent_files.size(), size_t{1});
}

}  // namespace
}  // namespace tests
