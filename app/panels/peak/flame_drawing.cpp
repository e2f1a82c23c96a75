#include "app/panels/peak/flame_drawing.h"

#include "app/widgets/hatch.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

namespace app {
namespace {

using profiler::FlameNode;
using profiler::FlameView;

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

void draw_outline(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameBoxLook& look) {
    const bool marked = look.picked || look.hovered || look.matches;
    if (!marked || lower.x - upper.x < px(3)) return;
    const ImU32 color = look.picked || !look.hovered ? palette().accent : palette().text;
    draw->AddRect(upper, lower, color, 0, px(look.picked ? 2.0F : 1.0F));
}

/// Black or white, whichever reads better on a fill that lets the panel shine through.
ImU32 ink_on_faint(ImU32 fill, float alpha) {
    const ImVec4 front = to_vec4(fill), back = to_vec4(palette().panel);
    const auto blend = [&](float a, float b) { return a * alpha + b * (1 - alpha); };
    return ink_on(ImGui::ColorConvertFloat4ToU32(
        {blend(front.x, back.x), blend(front.y, back.y), blend(front.z, back.z), 1}));
}

/// Whether a category is picked, and it is not this one.
bool is_not_picked(profiler::Category category, const FlameBoxLook& look) {
    return look.category && *look.category != category;
}

/// Where the strip along the lower edge of an inner node begins, which sums up what is inside.
float strip_top(ImVec2 upper, ImVec2 lower) {
    return std::round(lower.y - 0.28F * (lower.y - upper.y));
}

/// The share of each category, as segments from left to right in the strip. Returns where they
/// begin. Requires has_mix.
float draw_mix(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
               const FlameNode& node, const FlameBoxLook& look) {
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
        const float alpha = look.faded || is_not_picked(category, look) ? 0.25F : 1.0F;
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

}  // namespace

void draw_flame_box(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
                    const FlameNode& node, const FlameBoxLook& look) {
    const bool by_file = profiler::has_no_categories(view);
    const bool is_narrow = lower.x - upper.x < px(14);  // for a pattern or shares
    const bool is_mixed = !by_file && !is_narrow && has_mix(view, node);
    const bool is_faded = look.faded || (!is_mixed && is_not_picked(node.category, look));
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
    if (is_mixed) foot.y = draw_mix(draw, upper, lower, view, node, look);
    if (has_room_for_label(upper, lower)) {
        const size_t shown = view.mode == profiler::FlameMode::kB ? 1 : 0;
        draw_label(draw, upper, foot, profiler::label_of(view, node),
                   profiler::format_bytes(node.bytes[shown]),
                   is_faded   ? palette().dim
                   : is_mixed ? palette().text
                              : ink_on_faint(fill, alpha),
                   separator_of(view, node));
    }
    draw_outline(draw, upper, lower, look);
}

namespace {

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

}  // namespace

void draw_flame_change(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const FlameView& view,
                       const FlameNode& node, const FlameBoxLook& look) {
    const float alpha = look.faded || is_not_picked(node.category, look) ? 0.25F : 1.0F;
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
                   look.faded ? palette().dim : palette().text, separator_of(view, node));
    }
    draw_outline(draw, upper, lower, look);
}

void draw_flame_merged(ImDrawList* draw, ImVec2 upper, ImVec2 lower,
                       const profiler::FlameBox& box) {
    draw->AddRectFilled(upper, lower, with_alpha(palette().dim, 0.35F));
    if (!has_room_for_label(upper, lower)) return;
    draw_label(draw, upper, lower, fmt::format("{} more", profiler::format_count(box.merged_count)),
               profiler::format_bytes(box.merged_bytes), palette().text, " ");
}

}  // namespace app
