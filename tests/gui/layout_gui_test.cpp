#include "tests/gui/test_window.h"

#include "app/window/theme.h"

namespace tests {
namespace {

void the_theme_can_be_switched(ImGuiTestContext* c) {
    window().reset(c);
    c->SetRef("##MainMenuBar");
    c->MenuClick("View/Light theme");
    c->Yield(2);
    IM_CHECK(!app::palette().dark);
    c->MenuClick("View/Dark theme");
    c->Yield(2);
    IM_CHECK(app::palette().dark);
}

void panels_close_and_the_layout_resets(ImGuiTestContext* c) {
    window().reset(c);
    c->SetRef("##MainMenuBar");
    c->MenuUncheck("View/Ledger");
    c->Yield(2);
    IM_CHECK(!window().ui().panels.ledger.open);
    c->MenuClick("View/Reset layout");
    c->Yield(3);
    IM_CHECK(window().ui().panels.ledger.open);
    IM_CHECK(c->WindowInfo("//###ledger").Window != nullptr);
}

void panels_can_be_dragged_elsewhere(ImGuiTestContext* c) {
    window().reset(c);
    const ImVec2 before = c->WindowInfo("//###health").RectFull.Min;
    c->DockInto("//###health", "//###ledger");
    c->Yield(3);
    const ImVec2 after = c->WindowInfo("//###health").RectFull.Min;
    IM_CHECK_GT(after.x, before.x);
    window().ui().reset_layout = true;
    c->Yield(3);
}

void the_window_can_be_small(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().resize(c, 900, 600);
    window().take_picture(c, "small_window");
    window().resize(c, 1600, 1000);
    IM_CHECK(window().workspace().timeline_view() != nullptr);
}

void commands_run_from_the_palette(ImGuiTestContext* c) {
    window().reset(c);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    c->Yield(3);
    c->KeyChars("light th");
    c->Yield(2);
    window().take_picture(c, "palette");
    c->KeyPress(ImGuiKey_Enter);
    c->Yield(3);
    IM_CHECK(!app::palette().dark);
    window().ui().settings.dark = true;
    c->Yield(2);
}

void keys_are_listed(ImGuiTestContext* c) {
    window().reset(c);
    c->KeyPress(ImGuiKey_F1);
    c->Yield(2);
    IM_CHECK(c->WindowInfo("Keys and mouse").Window != nullptr);
    window().take_picture(c, "keys");
    c->KeyPress(ImGuiKey_F1);
    c->Yield(2);
}

void write_theme_and_panels(ImGuiTestContext* c) {
    c->SetRef("##MainMenuBar");
    c->MenuClick("View/Light theme");
    c->MenuUncheck("View/Health");
    window().open(c, {"original"});
    IM_CHECK(!window().ui().panels.health.open);
}

void read_theme_and_panels(ImGuiTestContext* c) {
    c->Yield(2);
    IM_CHECK(!app::palette().dark);
    IM_CHECK(!window().ui().panels.health.open);
    IM_CHECK_EQ(window().ui().settings.recent_files.size(), size_t{1});
}

}  // namespace

void register_layout_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* group, const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, group, name)->TestFunc = run;
    };
    add("layout", "the_theme_can_be_switched", the_theme_can_be_switched);
    add("layout", "panels_close_and_the_layout_resets", panels_close_and_the_layout_resets);
    add("layout", "panels_can_be_dragged_elsewhere", panels_can_be_dragged_elsewhere);
    add("layout", "the_window_can_be_small", the_window_can_be_small);
    add("layout", "commands_run_from_the_palette", commands_run_from_the_palette);
    add("layout", "keys_are_listed", keys_are_listed);
    add("remember_write", "theme_and_panels", write_theme_and_panels);
    add("remember_read", "theme_and_panels", read_theme_and_panels);
}

}  // namespace tests
