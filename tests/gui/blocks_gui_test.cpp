#include "tests/gui/test_window.h"

#include "app/workspace/slots.h"

#include <algorithm>

namespace tests {
namespace {

constexpr const char* kBlocks = "//###blocks";

const profiler::BlocksView& view() { return *window().workspace().views().blocks.view(); }
const app::BlocksQuery& query() { return window().workspace().views().queries.blocks; }

void open_blocks(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().show(c, recipes);
    window().focus(c, kBlocks);
}

/// Among the activations, in the first backward.
ImVec2 on_activations(ImGuiTestContext* c, float y = 0.7F) {
    return window().point_in(c, kBlocks, 0.2F, y);
}

/// Clicks a little lower again and again until a block is selected. Between large blocks lie small
/// ones, which are merged and cannot be selected.
void click_a_block(ImGuiTestContext* c) {
    for (float y = 0.66F; y < 0.74F; y += 0.005F) {
        window().click_at(c, on_activations(c, y));
        if (window().workspace().selection().tensor) return;
        c->SleepNoSkip(0.5F, 0.1F);  // or two clicks are a double click
    }
}

void choose_color(ImGuiTestContext* c, const char* item) {
    c->SetRef(kBlocks);
    c->ComboClick((std::string("###color/") + item).c_str());
    window().settle(c);
}

GUI_TEST(blocks, shows_every_block_of_a) {
    open_blocks(c, {"original", "tempo"});
    IM_CHECK(window().workspace().views().blocks.view() != nullptr);
    IM_CHECK_GT(static_cast<int>(view().shapes.size()), 20);
    IM_CHECK_GT(static_cast<int>(view().minimap.size()), 100);
    IM_CHECK_EQ(view().bands.peaks.size(), size_t{1});
    IM_CHECK(!window().workspace().views().live_blocks.view()->rows.empty());
    window().take_picture(c, "blocks");
}

GUI_TEST(blocks, hovering_reads_a_block) {
    open_blocks(c, {"original"});
    c->MouseMoveToPos(on_activations(c));
    window().settle(c);
    IM_CHECK(window().ui().cursor_ns.has_value());
    IM_CHECK(window().has_tooltip());
    window().take_picture(c, "blocks_hover", true);
}

GUI_TEST(blocks, a_click_selects_the_block_and_the_moment) {
    open_blocks(c, {"original", "tempo"});
    click_a_block(c);
    window().settle(c);
    const app::Selection& selection = window().workspace().selection();
    IM_CHECK(selection.tensor.has_value());
    IM_CHECK(selection.moment_ns.has_value());
    IM_CHECK(selection.tensor->allocation.valid());
    const auto family =
        profiler::family_of(app::recorded_steps(selection)[0], selection.tensor->allocation);
    const auto siblings = std::count_if(view().shapes.begin(), view().shapes.end(),
                                        [&](const auto& s) { return s.family == family; });
    IM_CHECK_GT(static_cast<int>(siblings), 1);
    window().take_picture(c, "blocks_selected");
    const double moment_ns = *selection.moment_ns;
    window().press(c, ImGuiKey_RightArrow);
    IM_CHECK_GT(*selection.moment_ns, moment_ns);
    window().press(c, ImGuiKey_Escape);
    IM_CHECK(!selection.moment_ns.has_value());
}

GUI_TEST(blocks, colours_can_be_switched) {
    open_blocks(c, {"original"});
    choose_color(c, "Layer");
    IM_CHECK_GT(static_cast<int>(view().used_groups.size()), 10);
    IM_CHECK_STR_EQ(view().groups[1].label.c_str(), "layer 0");
    window().take_picture(c, "blocks_layers");
    choose_color(c, "Size");
    IM_CHECK_STR_EQ(view().groups[0].label.c_str(), "below 1 MiB");
    choose_color(c, "Op");
    window().take_picture(c, "blocks_ops");
    choose_color(c, "Category");
    IM_CHECK(view().groups[0].color_source == profiler::BlockGroup::ColorSource::kCategory);
}

GUI_TEST(blocks, a_difference_says_what_b_does_not_hold) {
    open_blocks(c, {"original", "tempo"});
    window().click(c, "//###blocks/###show_difference");
    IM_CHECK(view().difference);
    // original saves the dropped probabilities, which tempo frees at once.
    const auto gone = std::count_if(
        view().shapes.begin(), view().shapes.end(),
        [](const auto& shape) { return shape.kept == 0 || shape.kept_end_ns < shape.end_ns; });
    IM_CHECK_GT(static_cast<int>(gone), 0);
    IM_CHECK(!window().workspace().views().live_blocks.view()->gone_text.empty());
    window().take_picture(c, "blocks_difference");
    window().click(c, "//###blocks/###show_b");
    IM_CHECK(!view().difference);
    IM_CHECK_EQ(app::shown_trace(window().workspace().selection(), query()), size_t{1});
    c->ItemClick("//###blocks/###show_a");
}

GUI_TEST(blocks, addresses_can_be_shown) {
    open_blocks(c, {"original"});
    window().click(c, "//###blocks/###addresses");
    IM_CHECK(query().order == profiler::BlockOrder::kAddress);
    IM_CHECK_GT(static_cast<int>(view().shapes.size()), 20);
    window().take_picture(c, "blocks_addresses");
    c->ItemClick("//###blocks/###stack");
}

GUI_TEST(blocks, wheels_zoom_in_time_and_in_bytes) {
    open_blocks(c, {"original"});
    const double all = window().shown_ns();
    c->MouseMoveToPos(on_activations(c));
    window().turn_wheel(c, 8);
    window().settle(c);
    IM_CHECK_LT(window().shown_ns(), all * 0.6);
    IM_CHECK_EQ(query().high_bytes, 0.0);
    c->KeyDown(ImGuiMod_Ctrl);
    window().turn_wheel(c, 8);
    c->KeyUp(ImGuiMod_Ctrl);
    window().settle(c);
    IM_CHECK_GT(query().high_bytes, 0.0);
    IM_CHECK_LT(query().high_bytes - query().low_bytes, view().max_bytes * 0.6);
    window().click(c, "//###blocks/###fit");
    IM_CHECK_EQ(query().high_bytes, 0.0);
    IM_CHECK_GT(window().shown_ns(), all * 0.999);
}

const profiler::WhatIfView* what_if() { return window().workspace().views().what_if.view(); }

GUI_TEST(blocks, other_settings_are_replayed) {
    open_blocks(c, {"original", "tempo"});
    window().click(c, "//###blocks/###what_if");
    IM_CHECK(what_if() != nullptr);
    const std::string recorded = what_if()->figures[0].recorded_text;
    IM_CHECK_STR_EQ(what_if()->figures[0].chosen_text.c_str(), recorded.c_str());
    window().click(c, "//###blocks/**/###expandable");
    IM_CHECK(query().what_if.choice.settings.expandable_segments);
    c->ItemClick("//###blocks/**/###map_what_if");
    window().click(c, "//###blocks/**/###try_all");
    IM_CHECK_GT(static_cast<int>(what_if()->tried.size()), 4);
    const profiler::SegmentMapView* map = window().workspace().views().segments.view();
    IM_CHECK(map->has_segments);
    IM_CHECK(!map->cause_text.empty());
    window().take_picture(c, "blocks_what_if");
    c->ItemClick("//###blocks/**/###copy_conf");
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

GUI_TEST(blocks, a_limit_says_where_memory_runs_out) {
    open_blocks(c, {"original"});
    window().click(c, "//###blocks/###what_if");
    c->ItemInputValue("//###blocks/**/###limit", "1MiB");
    window().settle(c);
    IM_CHECK_EQ(query().what_if.choice.memory_limit_bytes.value_or(0), int64_t{1} << 20);
    IM_CHECK(!what_if()->fits);
    window().take_picture(c, "blocks_what_if_out_of_memory");
    window().click(c, "//###blocks/**/###show_oom");
    IM_CHECK(window().workspace().selection().moment_ns.has_value());
    c->ItemInputValue("//###blocks/**/###limit", "much");
    window().settle(c);
    IM_CHECK(!query().what_if.choice.memory_limit_bytes.has_value());
    IM_CHECK(!window().ui().panels.blocks.what_if.limit_error.empty());
    c->ItemInputValue("//###blocks/**/###conf", "max_split_size_mb:64");
    window().settle(c);
    IM_CHECK_EQ(query().what_if.choice.settings.max_split_bytes, int64_t{64} << 20);
    c->ItemInputValue("//###blocks/**/###conf", "max_split_size_mb:1");
    IM_CHECK(!window().ui().panels.blocks.what_if.conf_error.empty());
}

GUI_TEST(blocks, the_moment_plays) {
    open_blocks(c, {"original"});
    c->ItemClick("//###blocks/###play");
    c->SleepNoSkip(0.5F, 0.05F);
    const auto first = window().workspace().selection().moment_ns;
    IM_CHECK(first.has_value());
    c->SleepNoSkip(0.5F, 0.05F);
    const auto second = window().workspace().selection().moment_ns;
    IM_CHECK_GT(*second, *first);
    window().click(c, "//###blocks/###play");
    IM_CHECK(!window().ui().panels.blocks.is_playing);
}

GUI_TEST(blocks, says_what_it_shows_without_a_trace) {
    window().reset(c);
    window().focus(c, kBlocks);
    IM_CHECK(window().workspace().views().blocks.view() == nullptr);
    window().take_picture(c, "blocks_empty");
}

}  // namespace
}  // namespace tests
