// Pictures of the window in its states, to look at and for the README.
#include "tests/gui/test_window.h"

#include "app/widgets/theme.h"

#include <cmath>

namespace tests {
namespace {

std::string suffix() {
    const float scale = ImGui::GetStyle().FontScaleDpi;
    return scale == 1 ? "" : "_" + std::to_string(static_cast<int>(std::round(scale * 100)));
}

void fit_window_to_scale(ImGuiTestContext* c) {
    const float scale = ImGui::GetStyle().FontScaleDpi;
    window().resize(c, static_cast<int>(1600 * scale), static_cast<int>(1000 * scale));
}

void empty_window(ImGuiTestContext* c) {
    window().reset(c);
    fit_window_to_scale(c);
    window().take_picture(c, "empty_dark" + suffix());
}

void compare_in_both_themes(ImGuiTestContext* c) {
    window().reset(c);
    fit_window_to_scale(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    window().take_picture(c, "compare_dark" + suffix());
    window().ui().settings.dark = false;
    c->Yield(3);
    IM_CHECK(!app::palette().dark);
    window().take_picture(c, "compare_light" + suffix());
}

void one_trace_alone(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original"});
    window().take_picture(c, "one_trace" + suffix());
}

void zoomed_with_a_tensor_selected(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().click_ledger_row(c, 3);
    c->MouseMoveToPos(window().point_in(c, "//###timeline", 0.8F, 0.35F));
    for (int i = 0; i < 12; ++i) {
        c->MouseWheelY(1);
        c->Yield();
    }
    window().take_picture(c, "timeline_zoomed" + suffix());
    c->KeyPress(ImGuiKey_Escape);
}

}  // namespace

void register_picture_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "pictures", name)->TestFunc = run;
    };
    add("empty_window", empty_window);
    add("compare_in_both_themes", compare_in_both_themes);
    add("one_trace_alone", one_trace_alone);
    add("zoomed_with_a_tensor_selected", zoomed_with_a_tensor_selected);
}

}  // namespace tests
