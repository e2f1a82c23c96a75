#include "app/panels/parts/activity_drawing.h"

#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <span>
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

/// Where a block ends in the picture: a wide one leaves a gap before the next.
float drawn_right(const PixelSpan& span) {
    return span.width() > px(4) ? span.right - 1 : span.right;
}

ImU32 fill_of(const ActivityBlock& block) {
    // The less of its time a merged block was busy, the paler it is.
    const auto busy = static_cast<float>(block.busy);
    const float shown = block.count > 1 ? 0.30F + 0.62F * busy : 0.92F;
    return with_alpha(activity_color(block.activity_class),
                      block.is_marked ? shown : kPale * shown);
}

bool is_rounded(const PixelSpan& span) { return span.width() > px(6); }

using Blocks = std::span<const ActivityBlock>;

/// The many blocks of few pixels: one reservation for all of them, as a rectangle each would cost
/// more than all else in a frame.
void draw_narrow(ImDrawList* draw, const PlotMap& map, const ActivityStrip& strip, Blocks blocks) {
    const auto count = static_cast<int>(blocks.size());
    const float bottom = strip.top + strip.height - px(1);
    draw->PrimReserve(6 * count, 4 * count);
    int drawn = 0;
    for (const ActivityBlock& block : blocks) {
        const PixelSpan span = span_in_pixels(map, block.start_ns, block.end_ns);
        if (is_rounded(span)) continue;
        draw->PrimRect({span.left, strip.top}, {drawn_right(span), bottom}, fill_of(block));
        ++drawn;
    }
    draw->PrimUnreserve(6 * (count - drawn), 4 * (count - drawn));
}

void draw_outline(ImDrawList* draw, const ActivityStrip& strip, const PixelSpan& span,
                  Kinship kin) {
    const ImU32 color = kin == Kinship::kPicked ? palette().text : palette().accent;
    draw->AddRect(
        {span.left, strip.top},
        {std::max(drawn_right(span), span.left + px(2)), strip.top + strip.height - px(1)}, color,
        px(2), px(kin == Kinship::kForwardOrBackward ? 1.0F : 2.0F));
}

void draw_wide(ImDrawList* draw, const ActivityStrip& strip, const ActivityBlock& block,
               const PixelSpan& span) {
    draw->AddRectFilled({span.left, strip.top},
                        {drawn_right(span), strip.top + strip.height - px(1)}, fill_of(block),
                        px(2));
    if (block.count > 1 || span.width() < px(34)) return;
    const std::string label = block_label(block.label, span.width() - px(8));
    const float y = strip.top + (strip.height - px(1) - ImGui::GetTextLineHeight()) / 2;
    const ImU32 ink =
        block.is_marked ? ink_on(activity_color(block.activity_class)) : palette().dim;
    draw->AddText({span.left + px(4), std::round(y)}, ink, label.c_str());
}

}  // namespace

HoveredActivity draw_activity_strip(ImDrawList* draw, const PlotMap& map,
                                    const Selection& selection, const ActivityStrip& strip,
                                    bool hovered) {
    HoveredActivity found{strip.trace, nullptr};
    const auto& all = strip.row->blocks;
    const auto first = std::ranges::lower_bound(all, map.x_min, {}, &ActivityBlock::end_ns);
    const auto last =
        std::ranges::upper_bound(first, all.end(), map.x_max, {}, &ActivityBlock::start_ns);
    draw_narrow(draw, map, strip, {first, last});
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row = hovered && mouse.y >= strip.top && mouse.y < strip.top + strip.height;
    for (const ActivityBlock& block : Blocks{first, last}) {
        const PixelSpan span = span_in_pixels(map, block.start_ns, block.end_ns);
        if (is_rounded(span)) draw_wide(draw, strip, block, span);
        const Kinship kin = kinship(selection, strip.trace, block);
        if (kin != Kinship::kNone) draw_outline(draw, strip, span, kin);
        const float right = std::max(span.right, span.left + px(2));
        if (in_row && mouse.x >= span.left && mouse.x < right) found.block = &block;
    }
    return found;
}

std::vector<NamedColor> colors_of(std::span<const profiler::ActivityClass> classes) {
    std::vector<NamedColor> colors;
    for (const profiler::ActivityClass one : classes) {
        colors.push_back({activity_color(one), profiler::label_of(one)});
    }
    return colors;
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
    const auto readout = workspace.read_kernels(hovered.trace, block->id);
    ImGui::PushTextWrapPos(em(38));
    bold_text(readout.title);
    ImGui::PopTextWrapPos();
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

void click_activity(const HoveredActivity& hovered, PanelEvents& events) {
    if (hovered.block && hovered.block->count == 1) {
        events.selection.activity = PickedActivity{hovered.trace == 1, hovered.block->id};
    } else {
        events.selection.clear_activity = true;
    }
}

}  // namespace app
