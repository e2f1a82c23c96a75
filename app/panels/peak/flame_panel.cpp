#include "app/panels/peak/flame_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/selection.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

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

// ---- above the picture ----------------------------------------------------------------------

void draw_modes(Frame& frame) {
    FlameMode mode = frame.view.mode;
    const bool has_b = frame.view.has_second;
    if (choose_one<FlameMode>(
            mode,
            {{"A###a", "The memory of A", FlameMode::kA},
             {"B###b", "The memory of B at the same place of the step", FlameMode::kB, has_b},
             {"B - A###difference", "What grows and what shrinks from A to B",
              FlameMode::kDifference, has_b}},
            px(2))) {
        FlameQuery& wanted = wanted_query(frame);
        // What changes in every layer is read once, and large enough for its name.
        if (mode == FlameMode::kDifference) wanted.combine_layers = true;
        wanted.mode = mode;
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

// ---- boxes ----------------------------------------------------------------------------------

struct FlameBoxStyle {
    bool faded = false;    // holds nothing of the selected category, or is not searched for
    bool matches = false;  // the search
    bool picked = false;   // the selected tensor
    bool hovered = false;
    std::optional<profiler::Category> category;  // the selected one
};

/// The end of a name, if that fits: "layer.3" or "3" of "encoder.layer.3", "mm" of "aten::mm". Else
/// the name shortened in its middle, or nothing where little of it would be left.
std::string shorter_name(const std::string& name, float room, std::string_view separator) {
    for (size_t at = name.find(separator); at != std::string::npos;
         at = name.find(separator, at + 1)) {
        const std::string end = name.substr(at + separator.size());
        if (!end.empty() && text_width(end) <= room) return end;
    }
    constexpr float kLeastPart = 0.4F;
    return room < kLeastPart * text_width(name) ? std::string() : fit_to(name, room);
}

/// What a shortened name may begin after. File names of call stacks keep their beginning.
std::string_view separator_of(const FlameView& view, const FlameNode& node) {
    return view.tree == profiler::FlameTree::kModules && !node.is_tensor ? "." : "::";
}

/// Most boxes of a large trace are narrower than any text; no text is made for them.
bool has_room_for_label(ImVec2 upper, ImVec2 lower) { return lower.x - upper.x >= px(22); }

/// The name at the left, and the value beside it if both fit.
void draw_label(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const std::string& name,
                const std::string& value, ImU32 color, std::string_view separator) {
    const float room = lower.x - upper.x - px(8);
    const float y = std::round((upper.y + lower.y - ImGui::GetTextLineHeight()) / 2);
    const float x = upper.x + px(4);
    const float width = text_width(name);
    if (width > room) {
        constexpr size_t kLeast = 4;  // of letters: fewer say nothing
        const std::string shown = shorter_name(name, room, separator);
        const size_t cut = shown.find("…");
        if (cut != shown.npos && shown.size() - std::strlen("…") < kLeast) return;
        draw->AddText({x, y}, color, shown.c_str());
        return;
    }
    draw->AddText({x, y}, color, name.c_str());
    const float gap = px(8);
    if (width + gap + text_width(value) > room) return;
    draw->AddText({x + width + gap, y}, with_alpha(color, 0.72F), value.c_str());
}

void draw_outline(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameBoxStyle& style) {
    const bool marked = style.picked || style.hovered || style.matches;
    if (!marked || lower.x - upper.x < px(3)) return;
    const ImU32 color = style.picked || !style.hovered ? palette().accent : palette().text;
    draw->AddRect(upper, lower, color, 0, px(style.picked ? 2.0F : 1.0F));
}

/// Black or white, whichever reads better on a fill that lets the panel shine through.
ImU32 ink_on_faint(ImU32 fill, float alpha) {
    const ImVec4 front = to_vec4(fill), back = to_vec4(palette().panel);
    const auto blend = [&](float a, float b) { return a * alpha + b * (1 - alpha); };
    return ink_on(ImGui::ColorConvertFloat4ToU32(
        {blend(front.x, back.x), blend(front.y, back.y), blend(front.z, back.z), 1}));
}

/// Whether a category is picked, and it is not this one.
bool is_not_picked(profiler::Category category, const FlameBoxStyle& style) {
    return style.category && *style.category != category;
}

/// Where the strip along the lower edge of an inner node begins, which sums up what is inside.
float strip_top(ImVec2 upper, ImVec2 lower) {
    return std::round(lower.y - 0.28F * (lower.y - upper.y));
}

/// The share of each category, as segments from left to right in the strip. Returns where they
/// begin. Requires has_mix.
float draw_mix(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
               const FlameNode& node, const FlameBoxStyle& style) {
    const auto& mix = view.mixes[static_cast<size_t>(node.mix)];
    double whole = 0;
    for (const int64_t bytes : mix) whole += static_cast<double>(bytes);
    const float top = strip_top(upper, lower);
    const float width = lower.x - upper.x;
    double done = 0;
    for (const profiler::Category category : profiler::kCategoryStackOrder) {
        const auto bytes = static_cast<double>(mix[static_cast<size_t>(category)]);
        if (bytes <= 0) continue;
        const float left = upper.x + static_cast<float>(done / whole) * width;
        done += bytes;
        const float right = upper.x + static_cast<float>(done / whole) * width;
        const float alpha = style.faded || is_not_picked(category, style) ? 0.25F : 1.0F;
        draw->AddRectFilled({left, top}, {right, lower.y},
                            with_alpha(category_color(category), alpha));
    }
    return top;
}

/// One colour for each Python file. Nodes that are not stack frames are grey.
ImU32 file_color(const FlameView& view, const FlameNode& node) {
    const std::string_view name = view.text_of(node);
    const size_t colon = name.find(".py:");
    if (node.is_tensor || colon == std::string_view::npos) return palette().dim;
    const size_t hash = std::hash<std::string_view>{}(name.substr(0, colon));
    // The first colour is grey.
    return recipe_color(1 + hash % (profiler::kMaxDistinctRecipes - 1));
}

bool has_mix(const FlameView& view, const FlameNode& node) {
    if (node.mix < 0) return false;
    const auto& mix = view.mixes[static_cast<size_t>(node.mix)];
    return std::count_if(mix.begin(), mix.end(), [](int64_t bytes) { return bytes > 0; }) > 1;
}

/// A node of one trace: in colour and pattern of its category; a node of several categories has a
/// strip at its lower edge with the share of each.
void draw_flame_box(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
                    const FlameNode& node, const FlameBoxStyle& style) {
    const bool by_file = profiler::has_no_categories(view);
    const bool is_narrow = lower.x - upper.x < px(14);  // for a pattern or shares
    const bool is_mixed = !by_file && !is_narrow && has_mix(view, node);
    const bool is_faded = style.faded || (!is_mixed && is_not_picked(node.category, style));
    const float alpha = is_faded ? 0.22F : is_mixed ? 0.30F : node.is_tensor ? 0.95F : 0.78F;
    const ImU32 fill = by_file    ? file_color(view, node)
                       : is_mixed ? palette().dim
                                  : category_color(node.category);
    if (by_file || is_narrow || is_mixed) {
        draw->AddRectFilled(upper, lower, with_alpha(fill, alpha));
    } else {
        fill_category(draw, upper, lower, node.category, alpha, px(7));
    }
    ImVec2 foot = lower;  // of the room for the name
    if (is_mixed) foot.y = draw_mix(draw, upper, lower, view, node, style);
    if (has_room_for_label(upper, lower)) {
        const size_t shown = view.mode == profiler::FlameMode::kB ? 1 : 0;
        draw_label(draw, upper, foot, profiler::label_of(view, node),
                   profiler::format_bytes(node.bytes[shown]),
                   is_faded   ? palette().dim
                   : is_mixed ? palette().text
                              : ink_on_faint(fill, alpha),
                   separator_of(view, node));
    }
    draw_outline(draw, upper, lower, style);
}

/// Bytes that B does not need are hollow, bytes that it needs more are filled.
void draw_change_area(ImDrawList* draw, ImVec2 upper, ImVec2 lower, bool is_less, float alpha) {
    const ImU32 color = is_less ? palette().good : palette().bad;
    if (is_less) draw->AddRectFilled(upper, lower, palette().panel);
    draw->AddRectFilled(upper, lower, with_alpha(color, (is_less ? 0.14F : 0.60F) * alpha));
    if (lower.x - upper.x > px(3)) {
        draw->AddRect(upper, lower, with_alpha(color, 0.9F * alpha), 0, px(1));
    } else {
        draw->AddRectFilled(upper, lower, with_alpha(color, 0.9F * alpha));
    }
}

/// At the right end of the tensor.
void draw_change_of_tensor(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameNode& node,
                           float alpha) {
    const int64_t change = node.bytes[1] - node.bytes[0];
    if (change == 0) return;
    const auto whole = static_cast<double>(std::max<int64_t>(node.width_bytes, 1));
    const double share = static_cast<double>(std::abs(change)) / whole;
    const float width = std::max(px(1), (lower.x - upper.x) * static_cast<float>(share));
    draw_change_area(draw, {lower.x - width, upper.y}, lower, change < 0, alpha);
}

/// The tensors inside lie in many places, so their sums are a strip, as categories are: first the
/// bytes that only A needs, then the bytes that only B needs. The full width sums the larger side
/// of each tensor, so bytes that one trace lacks belong to the other. Returns where the strip
/// begins.
float draw_change_inside(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameNode& node,
                         float alpha) {
    const auto whole = static_cast<double>(std::max<int64_t>(node.width_bytes, 1));
    const float top = strip_top(upper, lower);
    float right = lower.x;
    for (const bool is_less : {false, true}) {
        const auto bytes = static_cast<double>(node.width_bytes - node.bytes[is_less ? 1 : 0]);
        if (bytes <= 0) continue;
        const float width =
            std::max(px(1), (lower.x - upper.x) * static_cast<float>(bytes / whole));
        const float left = std::max(upper.x, right - width);
        draw_change_area(draw, {left, top}, {right, lower.y}, is_less, alpha);
        right = left;
    }
    return right < lower.x ? top : lower.y;
}

/// A node of the difference: what A and B share is grey, what B adds is filled, and what B does not
/// need is hollow.
void draw_flame_change(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
                       const FlameNode& node, const FlameBoxStyle& style) {
    const float alpha = style.faded || is_not_picked(node.category, style) ? 0.25F : 1.0F;
    draw->AddRectFilled(upper, lower, with_alpha(palette().dim, 0.30F * alpha));
    ImVec2 foot = lower;  // of the room for the name
    if (node.is_tensor) {
        draw_change_of_tensor(draw, upper, lower, node, alpha);
    } else {
        foot.y = draw_change_inside(draw, upper, lower, node, alpha);
    }
    const int64_t change = node.bytes[1] - node.bytes[0];
    if (has_room_for_label(upper, lower)) {
        draw_label(draw, upper, foot, profiler::label_of(view, node),
                   change == 0 ? std::string() : profiler::change_text(node),
                   style.faded ? palette().dim : palette().text, separator_of(view, node));
    }
    draw_outline(draw, upper, lower, style);
}

/// Neighbours that are narrower than a pixel.
void draw_flame_merged(ImDrawList* draw, ImVec2 upper, ImVec2 lower,
                       const profiler::FlameBox& box) {
    draw->AddRectFilled(upper, lower, with_alpha(palette().dim, 0.35F));
    if (!has_room_for_label(upper, lower)) return;
    draw_label(draw, upper, lower, fmt::format("{} more", profiler::format_count(box.merged_count)),
               profiler::format_bytes(box.merged_bytes), palette().text, " ");
}

// ---- the picture ----------------------------------------------------------------------------

bool is_picked(const Frame& frame, const FlameNode& node) {
    const auto& tensor = frame.selection.tensor;
    return tensor && node.is_tensor && tensor->in_b == node.in_b &&
           tensor->allocation == node.allocation;
}

bool holds(const profiler::FlameView& view, const FlameNode& node, profiler::Category category) {
    if (node.mix < 0) return node.category == category;
    return view.mixes[index_of(node.mix)][static_cast<size_t>(category)] > 0;
}

FlameBoxStyle style_of(const Frame& frame, const FlameBox& box) {
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
        draw_box(draw, upper, lower, frame.view, node, style_of(frame, box));
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
    wrapped_bold_text(readout.title, em(38));
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
