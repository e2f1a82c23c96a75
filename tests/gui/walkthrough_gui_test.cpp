// Pictures of the window on real traces, for docs/window.md: those of the folder in
// TEMPOSCOPE_WALKTHROUGH, with the built worker. Run by hand.
#include "tests/gui/test_window.h"

#include <cstdlib>
#include <filesystem>

namespace tests {
namespace {

void open_folder(ImGuiTestContext* c) {
    const char* folder = std::getenv("TEMPOSCOPE_WALKTHROUGH");
    IM_CHECK_SILENT(folder != nullptr);
    window().reset(c);
    window().resize(c, 1600, 1000);
    window().workspace().open({folder});
    window().settle(c);
}

/// Brings a panel to the front and takes its picture.
void picture_of(ImGuiTestContext* c, const char* panel, const std::string& name) {
    app::show_panel(window().ui(), panel);
    c->Yield(4);
    window().settle(c);
    window().take_picture(c, "walkthrough_" + name);
}

void all_panels(ImGuiTestContext* c) {
    open_folder(c);
    for (const char* panel : {"compare", "planner", "layer", "flame", "blocks", "kernels"}) {
        picture_of(c, panel, panel);
    }
    window().ui().settings.dark = false;
    c->Yield(3);
    for (const char* panel : {"compare", "layer", "planner"}) {
        picture_of(c, panel, std::string(panel) + "_light");
    }
    window().ui().settings.dark = true;
}

/// The moment that the window is made for: a switch, and the memory moves.
void a_switch_moves_the_memory(ImGuiTestContext* c) {
    open_folder(c);
    app::Workspace& workspace = window().workspace();
    workspace.set_b(nullptr);
    app::show_panel(window().ui(), "layer");
    window().settle(c);
    workspace.apply({.try_recipe = "gelu=in_place"});
    window().settle(c);
    IM_CHECK(workspace.selection().b != nullptr);
    IM_CHECK_STR_EQ(workspace.selection().b->recipe.c_str(), "gelu=in_place");
    IM_CHECK(workspace.headline().find("less memory") != std::string::npos);
    window().take_picture(c, "walkthrough_switch");
}

}  // namespace

void register_walkthrough_tests(ImGuiTestEngine* engine) {
    IM_REGISTER_TEST(engine, "walkthrough", "all_panels")->TestFunc = all_panels;
    IM_REGISTER_TEST(engine, "walkthrough", "a_switch_moves_the_memory")->TestFunc =
        a_switch_moves_the_memory;
}

}  // namespace tests
