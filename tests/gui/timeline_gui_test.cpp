#include "tests/gui/test_window.h"

namespace tests {
namespace {

constexpr const char* kTimeline = "//###timeline";

void open_two(ImGuiTestContext* c) {
    window().show(c, {"original", "tempo"});
    window().press(c, ImGuiKey_F);
}

GUI_TEST(timeline, shows_two_traces_on_one_axis) {
    open_two(c);
    const auto* view = window().workspace().slots().timeline.view();
    IM_CHECK(view != nullptr);
    IM_CHECK_EQ(view->traces.size(), size_t{2});
    IM_CHECK_GT(static_cast<int>(view->traces[0].column_count()), 100);
    IM_CHECK(!view->difference_bytes.empty());
    IM_CHECK(view->traces[0].peaks.size() == 1);
}

GUI_TEST(timeline, the_wheel_zooms_and_f_shows_all) {
    open_two(c);
    const double all = window().shown_ns();
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    window().turn_wheel(c, 8);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), all * 0.6);
    IM_CHECK_GT(
        static_cast<int>(window().workspace().slots().timeline.view()->traces[0].column_count()),
        100);
    window().press(c, ImGuiKey_F);
    IM_CHECK_GT(window().shown_ns(), all * 0.999);
    window().turn_wheel(c, 8);
    c->MouseDoubleClick(0);
    window().settle(c);
    IM_CHECK_GT(window().shown_ns(), all * 0.999);
}

GUI_TEST(timeline, a_notch_zooms_by_a_fifth_and_keys_move) {
    open_two(c);
    const double all = window().shown_ns();
    const auto start_ns = [] { return window().workspace().time().window.start_ns; };
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    c->MouseWheelY(1);
    c->Yield(2);
    IM_CHECK_LT(window().shown_ns(), all * 0.8);
    c->KeyPress(ImGuiKey_W, 2);
    const double zoomed = window().shown_ns();
    IM_CHECK_LT(zoomed, all * 0.5);
    const double before = start_ns();
    c->KeyPress(ImGuiKey_D);
    IM_CHECK_GT(start_ns(), before);
    IM_CHECK_LT(std::abs(window().shown_ns() - zoomed), zoomed * 1e-6);
    c->KeyPress(ImGuiKey_A);
    IM_CHECK_LT(std::abs(start_ns() - before), zoomed * 1e-6);
    c->KeyPress(ImGuiKey_S, 12);
    IM_CHECK_GT(window().shown_ns(), all * 0.999);
}

GUI_TEST(timeline, dragging_moves_in_time) {
    open_two(c);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    window().turn_wheel(c, 8);
    const double start = window().workspace().time().window.start_ns, shown = window().shown_ns();
    window().drag_to(c, window().point_in(c, kTimeline, 0.3F, 0.28F));
    IM_CHECK_GT(window().workspace().time().window.start_ns, start);
    IM_CHECK_LT(std::abs(window().shown_ns() - shown), shown * 1e-6);
}

GUI_TEST(timeline, right_dragging_zooms_to_a_range) {
    open_two(c);
    const double all = window().shown_ns();
    c->MouseTeleportToPos(window().point_in(c, kTimeline, 0.40F, 0.30F));
    c->MouseDown(1);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.60F, 0.40F));
    c->MouseUp(1);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), all * 0.35);
    IM_CHECK_GT(window().shown_ns(), all * 0.10);
}

GUI_TEST(timeline, hovering_reads_both_traces) {
    open_two(c);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    window().settle(c);
    IM_CHECK(window().ui().cursor_ns.has_value());
    const auto readout = window().workspace().read_timeline(0, *window().ui().cursor_ns);
    IM_CHECK(!readout.rows.empty());
    window().take_picture(c, "timeline_hover", true);
}

GUI_TEST(timeline, alignment_can_be_switched) {
    open_two(c);
    window().click(c, "//###timeline/###align");
    IM_CHECK(window().workspace().slots().timeline.view()->alignment ==
             profiler::TimeAlignment::kTime);
    window().click(c, "//###timeline/###align");
    IM_CHECK(window().workspace().slots().timeline.view()->alignment ==
             profiler::TimeAlignment::kPhases);
    window().click(c, "//###timeline/###difference");
    IM_CHECK(!window().ui().panels.timeline.show_difference);
    c->ItemClick("//###timeline/###difference");
}

/// A lane without room stays switched on. A click on its button switches it off.
GUI_TEST(timeline, a_low_panel_says_what_it_leaves_out) {
    open_two(c);
    const app::TimelineState& state = window().ui().panels.timeline;
    const bool had_room =
        state.has_room_for_modules && state.has_room_for_kernels && state.has_room_for_difference;
    window().resize(c, 1600, 340);  // too low for panels side by side
    window().show_panel(c, "timeline");
    window().take_picture(c, "timeline_low");
    const bool has_room =
        state.has_room_for_modules || state.has_room_for_kernels || state.has_room_for_difference;
    window().click(c, "//###timeline/###modules");
    const bool modules_off = !state.show_modules && state.has_room_for_modules;
    c->ItemClick("//###timeline/###modules");
    window().resize(c, 1600, 1000);
    IM_CHECK(had_room);
    IM_CHECK(!has_room);
    IM_CHECK(modules_off);
    IM_CHECK(state.show_modules && state.has_room_for_modules);
    IM_CHECK(state.has_room_for_kernels && state.has_room_for_difference);
}

GUI_TEST(timeline, a_range_ends_where_the_button_is_released) {
    open_two(c);
    c->MouseTeleportToPos(window().point_in(c, kTimeline, 0.40F, 0.30F));
    c->KeyDown(ImGuiMod_Shift);
    c->Yield(2);
    c->MouseDown(0);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.60F, 0.30F));
    c->MouseMoveToPos(window().point_in(c, "//###compare", 0.5F, 0.5F));
    c->MouseUp(0);
    c->KeyUp(ImGuiMod_Shift);
    c->Yield(2);
    IM_CHECK(window().workspace().selection().range.has_value());
    const double end_ns = window().workspace().selection().range->end_ns;
    // The mouse comes back with no button down.
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.9F, 0.30F));
    c->Yield(2);
    IM_CHECK_EQ(window().workspace().selection().range->end_ns, end_ns);
    IM_CHECK(!window().ui().panels.timeline.range.anchor_ns.has_value());
    c->KeyPress(ImGuiKey_Escape);
}

GUI_TEST(timeline, another_b_is_shown_whole) {
    window().show(c, {"original", "tempo", "tempo-packed"});
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    window().turn_wheel(c, 8);
    window().settle(c);
    window().focus(c, "//###compare");
    window().click(c, "//###compare/**/$$2/##row");
    IM_CHECK_STR_EQ(window().workspace().selection().label_b.name.c_str(), "tempo-packed");
    const profiler::TimeRange& all = window().workspace().time().limits;
    IM_CHECK_EQ(window().workspace().time().window.start_ns, all.start_ns);
    IM_CHECK_EQ(window().workspace().time().window.end_ns, all.end_ns);
}

}  // namespace
}  // namespace tests
