#include "tests/gui/test_window.h"

#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>

/// One stack of time: memory, modules and kernels on the same pixels.
namespace tests {
namespace {

constexpr const char* kTimeline = "//###timeline";
constexpr const char* kKernels = "//###kernels";

const app::TimelineState& timeline() { return window().ui().panels.timeline; }
const app::Selection& selection() { return window().workspace().selection(); }

void open(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().show(c, recipes);
    window().press(c, ImGuiKey_F);
}

/// The pixel column of an instant, as all plots of the stack draw it.
float x_of(double time_ns) {
    const app::TimeWindow& shown = window().workspace().time().window;
    const double share = (time_ns - shown.start_ns) / (shown.end_ns - shown.start_ns);
    return timeline().plot_left_px +
           static_cast<float>(share) * (timeline().plot_right_px - timeline().plot_left_px);
}

/// A point on a lane of the only trace, counted from the foot of the stack: 0 is the kernels, 1 the
/// parts of layers, 2 the layers.
ImVec2 on_lane(double time_ns, int lane) {
    const float up = app::px(17) * (static_cast<float>(lane) + 0.6F);
    return {x_of(time_ns), timeline().plot_foot_px - up};
}

const profiler::RibbonBlock* wide_block(profiler::ModuleLevel level) {
    const auto* ribbon = window().workspace().slots().ribbon.view();
    const profiler::RibbonBlock* widest = nullptr;
    for (const auto& block : ribbon->traces.at(0).levels[static_cast<size_t>(level)]) {
        const bool longer =
            !widest || block.end_ns - block.start_ns > widest->end_ns - widest->start_ns;
        if (block.count == 1 && longer && !block.label.empty()) widest = &block;
    }
    return widest;
}

GUI_TEST(stack, shows_modules_and_kernels_below_memory) {
    open(c, {"original", "tempo"});
    const auto* ribbon = window().workspace().slots().ribbon.view();
    IM_CHECK(ribbon != nullptr);
    IM_CHECK_EQ(ribbon->traces.size(), size_t{2});
    IM_CHECK(ribbon->has_modules);
    IM_CHECK(!ribbon->traces[1].levels[1].empty());
    window().take_picture(c, "stack");
    c->ItemClick("//###timeline/###modules");
    window().click(c, "//###timeline/###lane");
    IM_CHECK(!timeline().show_modules);
    IM_CHECK_EQ(window().workspace().time().lane_width_px, 0);
    c->ItemClick("//###timeline/###modules");
    window().click(c, "//###timeline/###lane");
}

GUI_TEST(stack, a_click_on_a_module_selects_its_layer_and_time) {
    open(c, {"original"});
    const auto* found = wide_block(profiler::ModuleLevel::kOuter);
    IM_CHECK(found != nullptr);
    const profiler::RibbonBlock block = *found;
    const double middle_ns = (block.start_ns + block.end_ns) / 2;
    c->MouseMoveToPos(on_lane(middle_ns, 2));
    window().settle(c);
    window().take_picture(c, "stack_module", true);
    c->MouseClick(0);
    window().settle(c);
    IM_CHECK(selection().range.has_value());
    IM_CHECK_EQ(selection().range->start_ns, block.start_ns);
    IM_CHECK_EQ(selection().range->end_ns, block.end_ns);
    IM_CHECK(selection().layers.has_value() || !block.label.starts_with("layer"));
    IM_CHECK(!selection().moment_ns.has_value());
    c->SleepNoSkip(0.6F, 0.1F);  // no double click
    c->MouseClick(0);
    window().settle(c);
    IM_CHECK(!selection().range.has_value());
    c->SleepNoSkip(0.6F, 0.1F);
    const double all = window().shown_ns();
    c->MouseDoubleClick(0);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), all * 0.5);
    IM_CHECK_LT(window().workspace().time().window.start_ns, block.start_ns);
    IM_CHECK_GT(window().workspace().time().window.end_ns, block.end_ns);
    c->KeyPress(ImGuiKey_Escape);
    c->KeyPress(ImGuiKey_F);
}

GUI_TEST(stack, a_click_on_the_lane_of_kernels_selects_one) {
    open(c, {"original"});
    const auto* kernels = window().workspace().slots().kernels.view();
    IM_CHECK(kernels != nullptr);
    const auto peak_ns = static_cast<double>(selection().a->index->peak().time_ns);
    const profiler::CallBlock* widest = nullptr;
    for (const auto& lane : kernels->traces.at(0).lanes) {
        if (!lane.is_stream) continue;
        for (const auto& block : lane.rows.at(0).blocks) {
            const bool longer =
                !widest || block.end_ns - block.start_ns > widest->end_ns - widest->start_ns;
            const bool is_seen = block.end_ns < window().workspace().time().window.end_ns;
            const double middle_ns = (block.start_ns + block.end_ns) / 2;
            const bool at_handle = std::abs(x_of(middle_ns) - x_of(peak_ns)) < app::px(10);
            if (block.count == 1 && longer && is_seen && !at_handle) widest = &block;
        }
    }
    IM_CHECK(widest != nullptr);
    const profiler::CallId id = widest->id;
    window().click_at(c, on_lane((widest->start_ns + widest->end_ns) / 2, 0));
    IM_CHECK(selection().call.has_value());
    IM_CHECK(selection().call->id == id);
    c->KeyPress(ImGuiKey_Escape);
}

GUI_TEST(stack, kernels_below_the_timeline_have_its_edges) {
    open(c, {"original", "tempo"});
    window().focus(c, kKernels);
    c->DockInto(kKernels, kTimeline, ImGuiDir_Down);
    window().settle(c);
    c->Yield(4);
    const app::KernelsState& kernels = window().ui().panels.kernels;
    IM_CHECK_GT(kernels.plot_right_px - kernels.plot_left_px, 100.0F);
    IM_CHECK_EQ(kernels.plot_left_px, timeline().plot_left_px);
    IM_CHECK_EQ(kernels.plot_right_px, timeline().plot_right_px);
    // The cursor of one panel stands at the mouse in the other.
    c->MouseMoveToPos(window().point_in(c, kKernels, 0.6F, 0.6F));
    c->Yield(2);
    const ImVec2 mouse = ImGui::GetMousePos();
    IM_CHECK(window().ui().cursor_ns.has_value());
    IM_CHECK_LT(std::abs(x_of(*window().ui().cursor_ns) - mouse.x), 0.51F);
    window().take_picture(c, "stack_docked", true);
    window().reset(c);
}

GUI_TEST(stack, the_handle_moves_the_moment) {
    open(c, {"original"});
    IM_CHECK(!selection().moment_ns.has_value());
    const double peak_ns = static_cast<double>(selection().a->index->peak().time_ns);
    const double start_ns = window().workspace().time().window.start_ns;
    c->MouseMoveToPos({x_of(peak_ns), timeline().plot_foot_px - app::px(3)});
    c->Yield(2);
    IM_CHECK(timeline().on_handle);
    IM_CHECK_EQ(ImGui::GetMouseCursor(), ImGuiMouseCursor_ResizeEW);
    c->MouseDown(0);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.35F, 0.5F));
    c->Yield(2);
    IM_CHECK(selection().moment_ns.has_value());
    const double dragged_ns = *selection().moment_ns;
    IM_CHECK_LT(std::abs(x_of(dragged_ns) - ImGui::GetMousePos().x), 1.5F);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.45F, 0.5F));
    c->Yield(2);
    IM_CHECK_GT(*selection().moment_ns, dragged_ns);
    c->MouseUp(0);
    window().settle(c);
    IM_CHECK_EQ(window().workspace().time().window.start_ns, start_ns);  // it did not pan
    window().take_picture(c, "stack_moment", true);
    c->SleepNoSkip(0.6F, 0.1F);
    c->MouseMoveToPos({x_of(*selection().moment_ns), ImGui::GetMousePos().y});
    c->Yield(2);
    c->MouseDoubleClick(0);
    c->Yield(2);
    IM_CHECK(!selection().moment_ns.has_value());
}

GUI_TEST(stack, keys_work_in_every_part) {
    open(c, {"original", "tempo"});
    window().focus(c, kKernels);
    for (const ImVec2 at : {window().point_in(c, kTimeline, 0.5F, 0.35F),
                            window().point_in(c, kKernels, 0.5F, 0.6F)}) {
        c->KeyPress(ImGuiKey_F);
        const double all = window().shown_ns();
        c->MouseMoveToPos(at);
        window().press(c, ImGuiKey_W);
        IM_CHECK_LT(window().shown_ns(), all * 0.8);
        c->KeyPress(ImGuiKey_S, 3);
        c->Yield(2);
        IM_CHECK_GT(window().shown_ns(), all * 0.999);
        c->KeyDown(ImGuiMod_Shift);
        c->Yield(2);
        window().drag_to(c, {at.x + app::px(120), at.y});
        c->KeyUp(ImGuiMod_Shift);
        c->Yield(2);
        IM_CHECK(selection().range.has_value());
        IM_CHECK_EQ(window().shown_ns(), all);
        window().press(c, ImGuiKey_Z);
        IM_CHECK_LT(window().shown_ns(), all * 0.5);
        window().press(c, ImGuiKey_Escape);
        IM_CHECK(!selection().range.has_value());
    }
    c->KeyPress(ImGuiKey_F);
    window().reset(c);
}

GUI_TEST(stack, a_range_sums_tensors_over_layers) {
    open(c, {"original", "tempo"});
    window().select_range(c);
    const auto* range = window().workspace().views().range.view();
    IM_CHECK(range != nullptr);
    const bool summed = std::any_of(range->tensors.begin(), range->tensors.end(),
                                    [](const auto& row) { return row.parts.size() > 1; });
    IM_CHECK(summed);
    window().take_picture(c, "stack_range");
    c->KeyPress(ImGuiKey_Escape);
}

}  // namespace
}  // namespace tests
