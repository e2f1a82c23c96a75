#include "app/window/bars.h"
#include "app/window/windows.h"
#include "tests/gui/test_window.h"

#include <cmath>

namespace tests {
namespace {

constexpr const char* kKernels = "//###kernels";

const profiler::KernelsView& view() { return *window().workspace().slots().kernels.view(); }

void open_two(ImGuiTestContext* c) {
    window().show(c, {"original", "tempo"});
    window().focus(c, kKernels);
}

/// A point on the kernels of A, below the views, phases, modules and the name of the stream.
ImVec2 on_first_row(ImGuiTestContext* c, float share) {
    const ImVec2 top = window().point_in(c, kKernels, share, 0);
    const float line = ImGui::GetTextLineHeightWithSpacing();
    return {top.x, top.y + line * 9.3F};
}

void zoom_in(ImGuiTestContext* c, ImVec2 at) {
    c->MouseMoveToPos(at);
    for (int i = 0; i < 40 && window().shown_ns() > 2e5; ++i) {
        c->MouseWheelY(1);
        c->Yield();
    }
    window().settle(c);
}

/// A point on the longest kernel of A. Between kernels are gaps.
ImVec2 on_a_kernel(ImGuiTestContext* c) {
    const app::KernelsState& shown = window().ui().panels.kernels;
    const profiler::Trace& trace = *window().workspace().selection().a->trace;
    const auto starts = trace.kernels.column<&profiler::Kernel::start_ns>();
    const auto ends = trace.kernels.column<&profiler::Kernel::end_ns>();
    size_t longest = 0;
    for (size_t i = 1; i < starts.size(); ++i) {
        if (ends[i] - starts[i] > ends[longest] - starts[longest]) longest = i;
    }
    const double at_ns = static_cast<double>(starts[longest] + ends[longest]) / 2;
    const double share = (at_ns - shown.start_ns) / (shown.end_ns - shown.start_ns);
    const float width = shown.plot_right_px - shown.plot_left_px;
    return {shown.plot_left_px + width * static_cast<float>(share), on_first_row(c, 0).y};
}

GUI_TEST(kernels, shows_threads_and_streams_of_both) {
    open_two(c);
    IM_CHECK(window().workspace().slots().kernels.view() != nullptr);
    IM_CHECK_EQ(view().traces.size(), size_t{2});
    for (const auto& trace : view().traces) {
        IM_CHECK_EQ(trace.lanes.size(), size_t{3});
        IM_CHECK(trace.lanes[0].is_stream);
        IM_CHECK(!trace.lanes[1].is_stream);
        IM_CHECK(!trace.lanes[2].is_stream);
    }
    IM_CHECK(view().has_kernels);
    window().take_picture(c, "kernels");
}

/// The modules above the lanes answer as in the Memory timeline.
GUI_TEST(kernels, a_layer_above_the_kernels_can_be_clicked) {
    open_two(c);
    const ImVec2 row = on_first_row(c, 0.4F);
    const float above = ImGui::GetTextLineHeightWithSpacing() * 2.6F;  // lane's name and modules
    window().click_at(c, {row.x, row.y - above});
    const app::Selection& selection = window().workspace().selection();
    IM_CHECK(selection.range.has_value());
    IM_CHECK(!selection.call.has_value());
    window().take_picture(c, "kernels_layer", true);
}

/// The status bar says what the mouse does in the panel below it.
GUI_TEST(kernels, the_status_bar_knows_the_panel_under_the_mouse) {
    open_two(c);
    for (const char* panel : {"kernels", "timeline", "ledger"}) {
        window().show_panel(c, panel);
        c->MouseMoveToPos(window().point_in(c, (std::string("//###") + panel).c_str(), 0.5F, 0.6F));
        c->Yield(2);
        const std::string hints = app::hints_of(window().ui());
        IM_CHECK(hints.find(app::find_window(panel)->panel->mouse) != std::string::npos);
    }
}

GUI_TEST(kernels, time_is_shared_with_the_memory_panel) {
    open_two(c);
    const double all = window().shown_ns();
    c->MouseMoveToPos(window().point_in(c, "//###timeline", 0.5F, 0.35F));
    window().turn_wheel(c, 8);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), all * 0.6);
    const double start_ns = window().ui().panels.kernels.start_ns;
    IM_CHECK_EQ(start_ns, window().workspace().time().window.start_ns);
    c->MouseMoveToPos(window().point_in(c, kKernels, 0.5F, 0.5F));
    window().turn_wheel(c, -3);
    window().settle(c);
    IM_CHECK_GT(window().shown_ns(), window().ui().panels.timeline.end_ns * 0.01);
    IM_CHECK_EQ(window().ui().panels.timeline.start_ns, window().ui().panels.kernels.start_ns);
    // Both panels draw the cursor of the panel under the mouse.
    IM_CHECK(window().ui().cursor_ns.has_value());
    c->MouseMoveToPos(window().point_in(c, "//###inspector", 0.5F, 0.5F));
    c->Yield(2);
    IM_CHECK(!window().ui().cursor_ns.has_value());
}

GUI_TEST(kernels, a_click_picks_a_kernel_and_another_lets_go) {
    open_two(c);
    const ImVec2 kernel = on_a_kernel(c);
    zoom_in(c, kernel);
    window().click_at(c, kernel);
    const auto& picked = window().workspace().selection().call;
    IM_CHECK(picked.has_value());
    IM_CHECK(!picked->in_b);
    IM_CHECK(!picked->name.empty());
    IM_CHECK_LE(picked->range.start_ns, window().workspace().time().window.end_ns);
    window().take_picture(c, "kernels_picked", true);
    window().press(c, ImGuiKey_Escape);
    IM_CHECK(!window().workspace().selection().call.has_value());
}

GUI_TEST(kernels, a_tensor_of_the_ledger_shows_its_life_and_what_ran) {
    open_two(c);
    window().click_ledger_row(c, 3);
    const auto& tensor = window().workspace().selection().tensor;
    IM_CHECK(tensor.has_value());
    IM_CHECK_GT(tensor->num_kernels, 0);
    window().take_picture(c, "kernels_tensor");
    c->KeyPress(ImGuiKey_Escape);
}

GUI_TEST(kernels, a_double_click_zooms_to_what_is_under_it) {
    open_two(c);
    const double shown = window().shown_ns();  // all of it: calls are narrower
    c->MouseMoveToPos(on_first_row(c, 0.4F));
    c->MouseDoubleClick(0);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), shown * 0.9);
}

GUI_TEST(kernels, dragging_moves_in_time_and_picks_nothing) {
    open_two(c);
    zoom_in(c, on_first_row(c, 0.5F));
    const double start_ns = window().workspace().time().window.start_ns;
    c->MouseMoveToPos(on_first_row(c, 0.6F));
    window().drag_to(c, on_first_row(c, 0.4F));
    IM_CHECK_GT(window().workspace().time().window.start_ns, start_ns);
    IM_CHECK(!window().workspace().selection().call.has_value());
}

}  // namespace
}  // namespace tests
