// Each panel on the example traces, dark and light, beside its golden picture.
#include "app/user/examples.h"
#include "tests/gui/golden.h"
#include "tests/gui/test_window.h"

#include <cmath>

namespace tests {
namespace {

/// "compare_light_200": panel, theme, and the scale in percent.
void check_picture(ImGuiTestContext* c, const std::string& panel) {
    const float scale = ImGui::GetStyle().FontScaleDpi;
    const std::string name = "golden_" + panel +
                             (window().ui().settings.dark ? "_dark_" : "_light_") +
                             std::to_string(std::lround(scale * 100));
    window().take_picture(c, name);
    const std::string difference = difference_from_golden(window().pictures() / (name + ".png"));
    IM_CHECK_STR_EQ(difference.c_str(), "");
}

void start(ImGuiTestContext* c, bool dark) {
    window().reset(c);
    window().ui().settings.dark = dark;
    window().ui().settings.recent_files.clear();
    const float scale = ImGui::GetStyle().FontScaleDpi;
    // Larger than the virtual display at twice the size: then the panels share less room.
    window().resize(c, std::min(2560, static_cast<int>(1600 * scale)),
                    std::min(1600, static_cast<int>(1000 * scale)));
}

void open_examples(ImGuiTestContext* c) {
    const auto files = app::write_examples(window().folder() / "examples");
    IM_CHECK(files.has_value());
    window().open_files(c, *files);
    window().apply(c, {.selection = {.category = profiler::Category::kActivation}});
}

void check_panels(ImGuiTestContext* c, bool dark) {
    start(c, dark);
    check_picture(c, "first_page");
    open_examples(c);
    for (const app::PanelRow& row : app::kPanels) {
        const std::string id = row.id;
        if (id == "frontier" || id == "log") continue;  // they change while work goes on
        app::show_panel(window().ui(), id.c_str());
        c->Yield(4);
        // Its buttons show what was predicted in idle time.
        if (id == "layer") wait_until(c, [] { return window().workspace().is_made_ahead(); });
        check_picture(c, id);
    }
    window().ui().settings.dark = true;
}

GUI_TEST(golden, dark) { check_panels(c, true); }
GUI_TEST(golden, light) { check_panels(c, false); }

}  // namespace
}  // namespace tests
