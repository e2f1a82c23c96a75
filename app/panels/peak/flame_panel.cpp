#include "app/panels/peak/flame_panel.h"

#include "app/panels/parts/inferred_mark.h"
#include "app/panels/parts/unfilled.h"
#include "app/panels/peak/flame_drawing.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::FlameBox;
using profiler::FlameMode;
using profiler::FlameNode;
using profiler::FlameView;

/// One frame's drawing: what the helpers below share.
struct Frame {
    const Selection& selection;
    const FlameQuery& query;  // as last applied
    const FlameView& view;
    FlameState& state;
    PanelEvents& events;
    const FlameBox* hovered = nullptr;
};

size_t index_of(int32_t node) { return static_cast<size_t>(std::max(node, 0)); }

FlameQuery& wanted_query(Frame& frame) {
    if (!frame.events.window.flame) frame.events.window.flame = frame.query;
    return *frame.events.window.flame;
}

// ---- zoom -----------------------------------------------------------------------------------

void zoom_to(FlameState& state, const FlameView& view, size_t node) {
    state.focus = profiler::names_of(view, node);
    state.focus_node = node;
    state.width = 0;  // lays out again
}

void zoom_out(Frame& frame) {
    const int32_t parent = frame.view.nodes[frame.state.focus_node].parent;
    if (parent >= 0) zoom_to(frame.state, frame.view, index_of(parent));
}

/// Finds the focus again in a view of another moment or of other traces.
void follow_view(FlameState& state, const std::shared_ptr<const FlameView>& view) {
    if (!state.shown.owner_before(view) && !view.owner_before(state.shown)) return;
    state.shown = view;
    state.focus_node = profiler::find_node(*view, state.focus);
    state.width = 0;
    state.menu_node = 0;
}

// ---- above the picture ------------------------------------------------------------------------

void draw_modes(Frame& frame) {
    const struct {
        const char* label;
        const char* tooltip;
        FlameMode mode;
    } modes[] = {
        {"A###a", "The memory of A", FlameMode::kA},
        {"B###b", "The memory of B at the same place of the step", FlameMode::kB},
        {"B - A###difference", "What grows and what shrinks from A to B", FlameMode::kDifference}};
    for (const auto& [label, tooltip, mode] : modes) {
        const ScopedDisabled disabled(mode != FlameMode::kA && !frame.view.has_second);
        if (toggle_button(label, frame.view.mode == mode)) {
            FlameQuery& wanted = wanted_query(frame);
            // What changes in every layer is read once, and large enough for its name.
            if (mode == FlameMode::kDifference) wanted.combine_layers = true;
            wanted.mode = mode;
        }
        ImGui::SetItemTooltip("%s", tooltip);
        ImGui::SameLine(0, px(2));
    }
    ImGui::SameLine(0, px(10));
    if (frame.view.tree == profiler::FlameTree::kModules) {
        if (toggle_button("Combine layers###combine", frame.query.combine_layers)) {
            wanted_query(frame).combine_layers = !frame.query.combine_layers;
        }
        ImGui::SetItemTooltip("Show the same module and tensor of all layers as one");
        ImGui::SameLine(0, px(10));
    }
    if (!frame.view.has_choice) return;
    if (toggle_button("Lines of code###stacks", frame.query.by_stack)) {
        wanted_query(frame).by_stack = !frame.query.by_stack;
    }
    ImGui::SetItemTooltip("Sort the memory by the call stacks that asked for it");
    ImGui::SameLine(0, px(10));
}

void draw_toolbar(Frame& frame) {
    draw_modes(frame);
    const bool has_result = !frame.view.search_text.empty();
    const float result = has_result ? text_width(frame.view.search_text) + px(10) : 0;
    ImGui::SetNextItemWidth(std::max(em(7), ImGui::GetContentRegionAvail().x - result));
    if (ImGui::InputTextWithHint("##search", ICON_MAGNIFIER "  Search modules and tensors",
                                 &frame.state.search)) {
        wanted_query(frame).search = frame.state.search;
    }
    if (!has_result) return;
    ImGui::SameLine(0, px(10));
    ImGui::AlignTextToFramePadding();
    colored_text(palette().accent, frame.view.search_text);
}

/// Which moment is shown, and the way back to the peak.
void draw_moment(Frame& frame) {
    ImGui::AlignTextToFramePadding();
    bold_text(fit_to(frame.view.moment_text, ImGui::GetContentRegionAvail().x - em(5)));
    if (frame.selection.moment_ns) {
        ImGui::SameLine(0, px(8));
        if (ImGui::SmallButton(ICON_XMARK " Peak###peak")) {
            frame.events.selection.moment_ns.emplace(std::nullopt);
        }
        ImGui::SetItemTooltip("Back to the peak of A");
    }
    ImGui::SameLine(0, px(12));
    dim_text(fit_to(frame.view.tree_text, ImGui::GetContentRegionAvail().x));
}

/// "all memory / encoder / layer.3": a click on a level zooms out to it.
void draw_breadcrumbs(Frame& frame) {
    std::vector<size_t> levels;  // from the innermost
    for (int32_t at = static_cast<int32_t>(frame.state.focus_node); at >= 0;
         at = frame.view.nodes[index_of(at)].parent) {
        levels.push_back(index_of(at));
    }
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    for (size_t i = levels.size(); i-- > 0;) {
        const std::string name =
            fit_to(frame.view.text_of(frame.view.nodes[levels[i]]), em(i == 0 ? 24 : 12));
        if (ImGui::GetCursorPosX() + text_width(name) > right && i > 0) continue;
        if (i == 0) {
            bold_text(name);
            break;
        }
        const ScopedId id(static_cast<int>(levels.size() - i));
        if (ImGui::SmallButton((name + "###level").c_str())) {
            zoom_to(frame.state, frame.view, levels[i]);
            return ImGui::NewLine();
        }
        ImGui::SameLine(0, px(4));
        dim_text("/");
        ImGui::SameLine(0, px(4));
    }
}

// ---- the picture ------------------------------------------------------------------------------

bool is_picked(const Frame& frame, const FlameNode& node) {
    const auto& tensor = frame.selection.tensor;
    return tensor && node.is_tensor && tensor->in_b == node.in_b &&
           tensor->allocation == node.allocation;
}

bool holds(const profiler::FlameView& view, const FlameNode& node, profiler::Category category) {
    if (node.mix < 0) return node.category == category;
    return view.mixes[index_of(node.mix)][static_cast<size_t>(category)] > 0;
}

FlameBoxLook look_of(const Frame& frame, const FlameBox& box) {
    const FlameNode& node = frame.view.nodes[index_of(box.node)];
    const bool searches = !frame.view.search_text.empty();
    const auto& category = frame.selection.category;
    const bool inside_match = node.parent >= 0 && frame.view.nodes[index_of(node.parent)].matches;
    const bool is_other = category && !holds(frame.view, node, *category);
    return {.faded = (searches && !node.matches) || is_other,
            .matches = searches && node.matches && !inside_match,
            .picked = is_picked(frame, node),
            .hovered = frame.hovered == &box,
            .category = category};
}

void draw_boxes(const Frame& frame, ImDrawList* draw) {
    const FlameState& state = frame.state;
    const ScopedFont font(fonts().text, kSmallSize);
    for (const FlameBox& box : state.layout.boxes) {
        const float top = state.corner.y + static_cast<float>(box.row) * state.row_height;
        const float left = std::round(state.corner.x + box.left);
        float right = std::max(left + 1, std::round(state.corner.x + box.right));
        if (right - left > px(3)) right -= 1;  // a gap between neighbours
        const ImVec2 upper{left, top}, lower{right, top + state.row_height - px(1)};
        if (!ImGui::IsRectVisible(upper, lower)) continue;
        if (box.node < 0) {
            draw_flame_merged(draw, upper, lower, box);
            continue;
        }
        const FlameNode& node = frame.view.nodes[index_of(box.node)];
        const auto draw_box =
            frame.view.mode == FlameMode::kDifference ? draw_flame_change : draw_flame_box;
        draw_box(draw, upper, lower, frame.view, node, look_of(frame, box));
    }
}

const FlameBox* box_under_mouse(const FlameState& state) {
    const ImVec2 at = ImGui::GetMousePos();
    const ImVec2 mouse{at.x - state.corner.x, at.y - state.corner.y};
    const auto row = static_cast<int32_t>(std::floor(mouse.y / state.row_height));
    const auto& boxes = state.layout.boxes;
    const auto found = std::find_if(boxes.begin(), boxes.end(), [&](const FlameBox& box) {
        return box.row == row && mouse.x >= box.left && mouse.x < std::max(box.right, box.left + 1);
    });
    return found == boxes.end() ? nullptr : &*found;
}

void pick_tensor(Frame& frame, const FlameNode& node) {
    const DocumentPtr& document = node.in_b ? frame.selection.b : frame.selection.a;
    if (is_picked(frame, node)) {
        frame.events.selection.clear_tensor = true;
    } else if (document) {
        frame.events.selection.tensor = PickedTensor{
            document,
            document->trace->allocations.get<&profiler::Allocation::storage>(node.allocation),
            node.allocation};
    }
}

/// A module is zoomed to, and the module that fills the width is left again. Nodes that are too
/// narrow become wider if the node around them is zoomed to.
void click(Frame& frame, const FlameBox& box) {
    if (box.node < 0) return zoom_to(frame.state, frame.view, index_of(box.parent));
    const size_t index = index_of(box.node);
    const FlameNode& node = frame.view.nodes[index];
    if (node.is_tensor) return pick_tensor(frame, node);
    if (index == frame.state.focus_node) return zoom_out(frame);
    zoom_to(frame.state, frame.view, index);
}

void draw_readout(const Frame& frame) {
    if (!frame.hovered || !ImGui::BeginTooltip()) return;
    const FlameBox& box = *frame.hovered;
    if (box.node < 0) {
        bold_text(fmt::format("{} more, {}", profiler::format_count(box.merged_count),
                              profiler::format_bytes(box.merged_bytes)));
        dim_text("Each is narrower than a pixel. A click zooms in.");
        return ImGui::EndTooltip();
    }
    const auto readout = profiler::read_flame(frame.view, index_of(box.node));
    ImGui::PushTextWrapPos(em(38));
    bold_text(readout.title);
    ImGui::PopTextWrapPos();
    readout_table(readout.rows);
    for (const auto& part : readout.categories) {
        category_swatch(part.category);
        text(profiler::label_of(part.category));
        if (readout.categories.size() == 1) break;
        ImGui::SameLine(0, px(8));
        dim_text(fmt::format("{}, {}", part.bytes, part.share));
    }
    ImGui::EndTooltip();
}

void draw_menu(Frame& frame) {
    if (!ImGui::BeginPopup("##flame_menu")) return;
    const size_t node = frame.state.menu_node;
    if (ImGui::MenuItem(ICON_COPY "  Copy the tree as text")) {
        ImGui::SetClipboardText(profiler::flame_as_text(frame.view, node).c_str());
    }
    if (ImGui::MenuItem(ICON_COPY "  Copy the tree as CSV")) {
        ImGui::SetClipboardText(profiler::flame_as_csv(frame.view, node).c_str());
    }
    if (ImGui::MenuItem(ICON_COPY "  Copy the path")) {
        ImGui::SetClipboardText(profiler::path_of(frame.view, node).c_str());
    }
    ImGui::Separator();
    if (ImGui::MenuItem(ICON_EXPAND "  Show all", "Backspace", false, frame.state.focus_node > 0)) {
        zoom_to(frame.state, frame.view, 0);
    }
    ImGui::EndPopup();
}

void draw_picture(Frame& frame, float height) {
    const ScopedChild child("##icicle", {-1, height});
    if (!child) return;
    FlameState& state = frame.state;
    const float width = std::floor(ImGui::GetContentRegionAvail().x);
    if (width != state.width) {
        state.layout = profiler::lay_out_flame(frame.view, state.focus_node, width);
        state.width = width;
    }
    state.corner = ImGui::GetCursorScreenPos();
    // A tree of few levels has higher rows.
    const float rows = static_cast<float>(std::max(state.layout.row_count, 1));
    state.row_height =
        std::floor(std::clamp(ImGui::GetContentRegionAvail().y / rows, em(1.45F), em(2.6F)));
    const ImVec2 size{
        std::max(width, 1.0F),
        std::max(static_cast<float>(state.layout.row_count) * state.row_height, 1.0F)};
    const bool clicked = ImGui::InvisibleButton("##boxes", size);
    if (ImGui::IsItemHovered()) frame.hovered = box_under_mouse(state);
    draw_boxes(frame, ImGui::GetWindowDrawList());
    if (frame.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) {
        state.menu_node =
            index_of(frame.hovered->node >= 0 ? frame.hovered->node : frame.hovered->parent);
        ImGui::OpenPopup("##flame_menu");
    }
    draw_readout(frame);
    draw_menu(frame);
    if (clicked && frame.hovered) click(frame, *frame.hovered);
}

void handle_keys(Frame& frame) {
    if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) return;
    if (ImGui::GetIO().WantTextInput) return;
    if (ImGui::IsKeyPressed(ImGuiKey_Backspace)) zoom_out(frame);
}

/// Colours of the boxes below the picture. The difference has a legend of its own.
void draw_legend(Frame& frame) {
    if (frame.view.mode == FlameMode::kDifference) {
        dim_text("Width: the larger of A and B.");
        ImGui::SameLine(0, px(10));
        colored_text(palette().good, "hollow: B needs less");
        ImGui::SameLine(0, px(10));
        colored_text(palette().bad, "filled: B needs more");
        return;
    }
    if (profiler::has_no_categories(frame.view)) {
        return dim_text("The trace records no categories: colours go by file.");
    }
    const auto clicked = category_legend(frame.view.categories, frame.selection.category,
                                         ImGui::GetContentRegionAvail().x);
    draw_inferred_mark(frame.selection);
    if (clicked) frame.events.selection.category = clicked;
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_FIRE,
    .purpose = "The memory at one moment appears here, by module and tensor or by call stack.",
    .error_title = "The flame graph could not be built",
    .working = "Sorting the memory into modules ..."};

}  // namespace

PanelEvents draw_flame_panel(const PanelContext& context, FlameState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const FlameQuery& query = context.views.queries.flame;
    if (!query.is_drawn) {
        events.window.flame = query;
        events.window.flame->is_drawn = true;
    }
    const std::shared_ptr<const FlameView> view = context.views.flame.shared();
    if (!view) {
        draw_unfilled(kUnfilled, workspace.selection(), context.views.flame.error());
        return events;
    }
    follow_view(state, view);
    Frame frame{workspace.selection(), query, *view, state, events};
    draw_toolbar(frame);
    draw_moment(frame);
    if (view->root().width_bytes == 0) {
        empty_state(ICON_FIRE, "Nothing is allocated at this moment",
                    "Choose another moment in the Memory timeline.");
        return events;
    }
    handle_keys(frame);
    draw_breadcrumbs(frame);
    const float legend = ImGui::GetTextLineHeightWithSpacing();
    draw_picture(frame, std::max(em(3), ImGui::GetContentRegionAvail().y - legend));
    draw_legend(frame);
    return events;
}

}  // namespace app
