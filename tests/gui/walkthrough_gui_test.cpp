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

void all_panels(ImGuiTestContext* c) {
    open_folder(c);
    window().take_picture(c, "walkthrough_compare");
    window().ui().settings.dark = false;
    c->Yield(3);
    window().take_picture(c, "walkthrough_compare_light");
    window().ui().settings.dark = true;
}

}  // namespace

void register_walkthrough_tests(ImGuiTestEngine* engine) {
    IM_REGISTER_TEST(engine, "walkthrough", "all_panels")->TestFunc = all_panels;
}

}  // namespace tests
