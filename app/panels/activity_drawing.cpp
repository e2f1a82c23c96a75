#include "app/panels/activity_drawing.h"

#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace app {
namespace {

using profiler::ActivityBlock;

constexpr float kPale = 0.18F;  // of blocks that are not marked, where others are

/// How a block is related to the op that was clicked.
enum class Kinship : uint8_t { kNone, kPicked, kSameOp, kForwardOrBackward };

Kinship kinship(const Selection& selection, size_t trace, const ActivityBlock& block) {
    const auto& picked = selection.activity;
    if (!picked || block.count > 1 || picked->in_b != (trace == 1)) return Kinship::kNone;
    if (picked->id == block.id) return Kinship::kPicked;
    if (!block.op.valid() || !picked->op.valid()) return Kinship::kNone;
    if (block.op == picked->op) return Kinship::kSameOp;
    const bool related = block.forward == picked->op || picked->forward == block.op;
    return related ? Kinship::kForwardOrBackward : Kinship::kNone;
}

/// "aten::dropout", or "dropout", or "drop…": as much as fits. Of "dense  AddmmBackward0" the
/// module is left.
std::string block_label(const std::string& name, float room) {
    const float width = text_width(name);
    if (width <= room) return name;
    const size_t module_end = name.find("  ");
    std::string label =
        module_end == name.npos ? name.substr(name.rfind(':') + 1) : name.substr(0, module_end);
    const float label_width = text_width(label);
    if (label_width <= room) return label;
    const float shown = std::max(0.0F, room - text_width("…")) / label_width;
    auto end = static_cast<size_t>(shown * static_cast<float>(label.size()));
    const auto continues_character = [](char byte) { return (byte & 0xC0) == 0x80; };
    while (end > 0 && continues_character(label[end])) --end;
    label.resize(end);
    return label + "…";
}

void draw_block(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                const ActivityStrip& strip, const ActivityBlock& block) {
    const float left = whole_pixel(std::max(map.x(block.start_ns), map.corner.x));
    const float right = std::max(left + 1, whole_pixel(std::min(map.x(block.end_ns), map.right())));
    const float bottom = strip.top + strip.height - px(1);
    const Kinship kin = kinship(selection, strip.trace, block);
    // The less of its time a merged block was busy, the paler it is.
    const auto busy = static_cast<float>(block.busy);
    const float shown = block.count > 1 ? 0.30F + 0.62F * busy : 0.92F;
    const float alpha = block.is_marked ? shown : kPale * shown;
    const ImU32 fill = activity_color(block.activity_class);
    // A gap between neighbours, if there is room for it.
    const float gap = right - left > px(4) ? 1.0F : 0.0F;
    draw->AddRectFilled({left, strip.top}, {right - gap, bottom}, with_alpha(fill, alpha),
                        right - left > px(6) ? px(2) : 0);
    if (kin != Kinship::kNone) {
        const ImU32 color = kin == Kinship::kPicked ? palette().text : palette().accent;
        draw->AddRect({left, strip.top}, {std::max(right - gap, left + px(2)), bottom}, color,
                      px(2), px(kin == Kinship::kForwardOrBackward ? 1.0F : 2.0F));
    }
    if (block.count > 1 || right - left < px(34)) return;
    const std::string label = block_label(block.label, right - left - px(8));
    const float y = strip.top + (strip.height - px(1) - ImGui::GetTextLineHeight()) / 2;
    draw->AddText({left + px(4), std::round(y)}, block.is_marked ? ink_on(fill) : palette().dim,
                  label.c_str());
}

}  // namespace

HoveredActivity draw_activity_strip(ImDrawList* draw, const PlotMap& map,
                                    const Selection& selection, const ActivityStrip& strip,
                                    bool hovered) {
    HoveredActivity found{strip.trace, nullptr};
    const auto& blocks = strip.row->blocks;
    const auto ends_before = [](const ActivityBlock& block, double time) {
        return block.end_ns < time;
    };
    const auto first = std::lower_bound(blocks.begin(), blocks.end(), map.x_min, ends_before);
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row = hovered && mouse.y >= strip.top && mouse.y < strip.top + strip.height;
    for (auto block = first; block != blocks.end() && block->start_ns <= map.x_max; ++block) {
        draw_block(draw, map, selection, strip, *block);
        const float left = map.x(block->start_ns);
        const float right = std::max(map.x(block->end_ns), left + px(2));
        if (in_row && mouse.x >= left && mouse.x < right) found.block = &*block;
    }
    return found;
}

void draw_activity_readout(const Workspace& workspace, const HoveredActivity& hovered) {
    const ActivityBlock* block = hovered.block;
    if (!block || !ImGui::BeginTooltip()) return;
    if (block->count > 1) {
        text(fmt::format("{} spans in {}", profiler::format_count(block->count),
                         profiler::format_duration(std::llround(block->end_ns - block->start_ns))));
        dim_text(fmt::format("busy {} of the time; zoom in to see them one by one",
                             profiler::format_percent(block->busy)));
        ImGui::EndTooltip();
        return;
    }
    const auto readout = workspace.read_activity(hovered.trace, block->id);
    ImGui::PushTextWrapPos(em(38));
    bold_text(readout.title);
    ImGui::PopTextWrapPos();
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

void click_activity(const HoveredActivity& hovered, PanelEvents& events) {
    if (hovered.block && hovered.block->count == 1) {
        events.activity = PickedActivity{hovered.trace == 1, hovered.block->id};
    } else {
        events.clear_activity = true;
    }
}

}  // namespace app
