#include "tests/gui/test_window.h"

#include "app/panels/peak/flame_panel.h"
#include "app/widgets/icons.h"

#include <algorithm>
#include <string>

namespace tests {
namespace {

constexpr const char* kFlame = "//###flame";

const profiler::FlameView& view() { return *window().workspace().views().flame.view(); }
const app::FlameState& state() { return window().ui().panels.flame; }

void open(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().show(c, recipes);
    window().focus(c, kFlame);
}

/// The first box whose node fits; the test fails if there is none.
template <typename Fits>
profiler::FlameBox find_box(Fits&& fits) {
    const auto& boxes = state().layout.boxes;
    const auto found = std::find_if(boxes.begin(), boxes.end(), [&](const auto& box) {
        return box.node >= 0 && box.right - box.left > 4 &&
               fits(view().nodes[static_cast<size_t>(box.node)]);
    });
    IM_CHECK_SILENT_RETV(found != boxes.end(), {});
    return *found;
}

void move_to(ImGuiTestContext* c, const profiler::FlameBox& box) {
    const ImVec2 corner = state().corner;
    c->MouseMoveToPos({corner.x + (box.left + box.right) / 2,
                       corner.y + (static_cast<float>(box.row) + 0.5F) * state().row_height});
}

void click(ImGuiTestContext* c, const profiler::FlameBox& box) {
    move_to(c, box);
    c->MouseClick(0);
    window().settle(c);
}

bool is_layer(const profiler::FlameNode& node) { return node.layer == 1; }
bool is_tensor(const profiler::FlameNode& node) { return node.is_tensor; }

GUI_TEST(flame, shows_the_peak_of_a) {
    open(c, {"original", "tempo"});
    IM_CHECK(window().workspace().views().flame.view() != nullptr);
    const auto& peak = window().workspace().selection().a->index->peak();
    IM_CHECK_EQ(view().root().bytes[0], peak.allocated_bytes);
    IM_CHECK(view().moment_text.starts_with("at the peak of A"));
    IM_CHECK_GT(static_cast<int>(state().layout.boxes.size()), 20);
    window().take_picture(c, "flame");
}

GUI_TEST(flame, a_click_zooms_and_backspace_goes_back) {
    open(c, {"original", "tempo"});
    const auto layer = find_box(is_layer);
    click(c, layer);
    IM_CHECK_EQ(state().focus_node, static_cast<size_t>(layer.node));
    IM_CHECK_EQ(state().layout.boxes[0].node, layer.node);
    window().take_picture(c, "flame_zoomed");
    window().press(c, ImGuiKey_Backspace);
    IM_CHECK_EQ(static_cast<int>(state().focus_node),
                view().nodes[static_cast<size_t>(layer.node)].parent);
    c->KeyPress(ImGuiKey_Backspace);
    window().press(c, ImGuiKey_Backspace);
    IM_CHECK_EQ(state().focus_node, size_t{0});
    // And by the path above the picture.
    click(c, find_box(is_layer));
    window().click(c, "//###flame/$$1/###level");
    IM_CHECK_EQ(state().focus_node, size_t{0});
}

GUI_TEST(flame, a_click_on_a_tensor_selects_it) {
    open(c, {"original", "tempo"});
    const auto box = find_box(is_tensor);
    click(c, box);
    const auto& tensor = window().workspace().selection().tensor;
    IM_CHECK(tensor.has_value());
    IM_CHECK(tensor->allocation == view().nodes[static_cast<size_t>(box.node)].allocation);
    click(c, box);
    IM_CHECK(!window().workspace().selection().tensor.has_value());
}

GUI_TEST(flame, a_program_is_shown_by_its_lines) {
    open(c, {"programs/train"});
    IM_CHECK(view().tree == profiler::FlameTree::kModules);
    const int64_t peak_bytes = view().root().bytes[0];
    window().click(c, "//###flame/###stacks");
    IM_CHECK(view().tree == profiler::FlameTree::kStacks);
    IM_CHECK_EQ(view().root().bytes[0], peak_bytes);
    const auto line = find_box([](const profiler::FlameNode& node) {
        return view().text_of(node) == "mine/train.py:34 forward";
    });
    move_to(c, line);
    window().take_picture(c, "flame_stacks", true);
    window().click(c, "//###flame/###stacks");
    IM_CHECK(view().tree == profiler::FlameTree::kModules);
}

GUI_TEST(flame, another_moment_can_be_shown) {
    open(c, {"original"});
    const int64_t peak_bytes = view().root().bytes[0];
    const auto& all = window().workspace().time().limits;
    const double moment_ns = all.start_ns + (all.end_ns - all.start_ns) * 0.02;
    window().apply(c, {.selection = {.moment_ns = std::optional(moment_ns)}});
    IM_CHECK(view().moment_text.starts_with("at "));
    IM_CHECK_LT(view().root().bytes[0], peak_bytes);
    window().click(c, "//###flame/###peak");
    IM_CHECK_EQ(view().root().bytes[0], peak_bytes);
}

GUI_TEST(flame, shows_b_and_the_difference) {
    open(c, {"original", "tempo"});
    window().click(c, "//###flame/###b");
    IM_CHECK(view().mode == profiler::FlameMode::kB);
    IM_CHECK_GT(view().root().bytes[1], int64_t{0});
    window().click(c, "//###flame/###difference");
    IM_CHECK(view().mode == profiler::FlameMode::kDifference);
    IM_CHECK(window().workspace().views().queries.flame.combine_layers);
    move_to(c, find_box([](const auto& node) { return node.count[0] > 2 && node.is_tensor; }));
    window().take_picture(c, "flame_difference_combined", true);
    window().click(c, "//###flame/###combine");
    IM_CHECK(!window().workspace().views().queries.flame.combine_layers);
    window().take_picture(c, "flame_difference");
}

GUI_TEST(flame, the_search_says_how_much_matches) {
    open(c, {"original", "tempo"});
    c->ItemInputValue("//###flame/##search", "layer.1");
    window().settle(c);
    IM_CHECK(view().search_text.find(" match: ") != std::string::npos);
    IM_CHECK(std::any_of(view().nodes.begin(), view().nodes.end(),
                         [](const auto& node) { return node.matches; }));
    window().take_picture(c, "flame_search");
}

GUI_TEST(flame, the_tree_can_be_copied) {
    open(c, {"original", "tempo"});
    move_to(c, find_box(is_layer));
    c->MouseClick(1);
    c->Yield(2);
    window().click(c, "//$FOCUSED/" ICON_COPY "  Copy the tree as CSV");
    const std::string copied = ImGui::GetClipboardText();
    IM_CHECK(copied.starts_with("path,kind,category,tensors,size_bytes\n"));
    IM_CHECK(copied.find("layer.1") != std::string::npos);
}

GUI_TEST(flame, the_zoom_stays_when_the_moment_changes) {
    open(c, {"original", "tempo"});
    click(c, find_box(is_layer));
    const auto focus = state().focus;
    IM_CHECK(!focus.empty());
    window().click(c, "//###flame/###b");
    IM_CHECK(profiler::names_of(view(), state().focus_node) == focus);
}

}  // namespace
}  // namespace tests
