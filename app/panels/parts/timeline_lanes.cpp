#include "app/panels/parts/timeline_lanes.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace app {

// ---- calls, kernels and copies --------------------------------------------------------------

namespace {

using profiler::CallBlock;

constexpr float kPale = 0.18F;  // of blocks that are not marked, where others are

/// How a block is related to the op that was clicked.
enum class Kinship : uint8_t { kNone, kPicked, kSameOp, kForwardOrBackward };

Kinship kinship(const Selection& selection, size_t trace, const CallBlock& block) {
    const auto& picked = selection.call;
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

ImU32 fill_of(const CallBlock& block) {
    // The less of its time a merged block was busy, the paler it is.
    const auto busy = static_cast<float>(block.busy);
    const float shown = block.count > 1 ? 0.30F + 0.62F * busy : 0.92F;
    return with_alpha(call_color(block.call_class), block.is_marked ? shown : kPale * shown);
}

bool is_rounded(const PixelSpan& span) { return span.width() > px(6); }

using Blocks = std::span<const CallBlock>;

/// The many blocks of few pixels: one reservation for all of them, as a rectangle each would cost
/// more than all else in a frame.
void draw_narrow(ImDrawList* draw, const PlotMap& map, const CallStrip& strip, Blocks blocks) {
    const auto count = static_cast<int>(blocks.size());
    const float bottom = strip.top + strip.height - px(1);
    draw->PrimReserve(6 * count, 4 * count);
    int drawn = 0;
    for (const CallBlock& block : blocks) {
        const PixelSpan span = span_in_pixels(map, block.start_ns, block.end_ns);
        if (is_rounded(span)) continue;
        draw->PrimRect({span.left, strip.top}, {drawn_right(span), bottom}, fill_of(block));
        ++drawn;
    }
    draw->PrimUnreserve(6 * (count - drawn), 4 * (count - drawn));
}

void draw_outline(ImDrawList* draw, const CallStrip& strip, const PixelSpan& span, Kinship kin) {
    const ImU32 color = kin == Kinship::kPicked ? palette().text : palette().accent;
    draw->AddRect(
        {span.left, strip.top},
        {std::max(drawn_right(span), span.left + px(2)), strip.top + strip.height - px(1)}, color,
        px(2), px(kin == Kinship::kForwardOrBackward ? 1.0F : 2.0F));
}

void draw_wide(ImDrawList* draw, const CallStrip& strip, const CallBlock& block,
               const PixelSpan& span) {
    draw->AddRectFilled({span.left, strip.top},
                        {drawn_right(span), strip.top + strip.height - px(1)}, fill_of(block),
                        px(2));
    if (block.count > 1 || span.width() < px(34)) return;
    const std::string label = block_label(block.label, span.width() - px(8));
    const float y = strip.top + (strip.height - px(1) - ImGui::GetTextLineHeight()) / 2;
    const ImU32 ink = block.is_marked ? ink_on(call_color(block.call_class)) : palette().dim;
    draw->AddText({span.left + px(4), std::round(y)}, ink, label.c_str());
}

}  // namespace

HoveredCall draw_call_strip(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                            const CallStrip& strip, bool hovered) {
    HoveredCall found{strip.trace, nullptr};
    const auto& all = strip.row->blocks;
    const auto first = std::ranges::lower_bound(all, map.x_min, {}, &CallBlock::end_ns);
    const auto last =
        std::ranges::upper_bound(first, all.end(), map.x_max, {}, &CallBlock::start_ns);
    draw_narrow(draw, map, strip, {first, last});
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row = hovered && mouse.y >= strip.top && mouse.y < strip.top + strip.height;
    for (const CallBlock& block : Blocks{first, last}) {
        const PixelSpan span = span_in_pixels(map, block.start_ns, block.end_ns);
        if (is_rounded(span)) draw_wide(draw, strip, block, span);
        const Kinship kin = kinship(selection, strip.trace, block);
        if (kin != Kinship::kNone) draw_outline(draw, strip, span, kin);
        const float right = std::max(span.right, span.left + px(2));
        if (in_row && mouse.x >= span.left && mouse.x < right) found.block = &block;
    }
    return found;
}

std::vector<NamedColor> colors_of(std::span<const profiler::CallClass> classes) {
    std::vector<NamedColor> colors;
    for (const profiler::CallClass one : classes) {
        colors.push_back({call_color(one), profiler::label_of(one)});
    }
    return colors;
}

void draw_call_readout(const Workspace& workspace, const HoveredCall& hovered) {
    const CallBlock* block = hovered.block;
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
    wrapped_bold_text(readout.title, em(38));
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

void click_call(const HoveredCall& hovered, PanelEvents& events) {
    if (hovered.block && hovered.block->count == 1) {
        events.selection.call = PickedCall{hovered.trace == 1, hovered.block->id};
    } else {
        events.selection.clear_call = true;
    }
}

// ---- layers and modules; all lanes ----------------------------------------------------------

namespace {

using profiler::ModuleLevel;
using profiler::PhaseKind;
using profiler::RibbonBlock;

constexpr size_t kMostStrips = 2;

float gap_above() { return px(3); }
float strip_height() { return px(17); }

/// A row of blocks with its name.
struct KernelStrip {
    const profiler::CallBlockRow* row = nullptr;
    std::string name;
};

/// "main" of "main thread": what tells threads apart.
std::string short_lane_name(std::string_view name) {
    constexpr std::string_view kThread = " thread";
    if (name.ends_with(kThread)) name.remove_suffix(kThread.size());
    return std::string(name);
}

/// What the GPU runs; without one, the outermost calls of each thread.
std::vector<KernelStrip> kernel_strips(const TimelineLanes& lanes) {
    std::vector<KernelStrip> strips;
    if (!lanes.kernels) return strips;
    for (const bool is_stream : {true, false}) {
        for (const profiler::KernelsLane& lane : lanes.kernels->lanes) {
            if (lane.is_stream != is_stream || lane.rows.empty()) continue;
            if (strips.size() == kMostStrips) return strips;
            strips.push_back(
                {&lane.rows.front(), is_stream ? "kernels" : short_lane_name(lane.name)});
        }
        if (strips.size() == 1) strips.front().name = is_stream ? "kernels" : "calls";
        if (!strips.empty()) break;
    }
    return strips;
}

bool has_ribbon(const TimelineLanes& lanes) { return lanes.ribbon && !lanes.ribbon->empty(); }

std::span<const ModuleLevel> levels_of(const TimelineLanes& lanes) {
    static constexpr std::array kLevels{ModuleLevel::kOuter, ModuleLevel::kInner};
    const size_t count = !has_ribbon(lanes) ? 0 : lanes.with_parts ? 2 : 1;
    return std::span(kLevels).first(count);
}

/// Calm tints that tell the phases apart; the names of the phases stand above the plot.
ImU32 phase_tint(PhaseKind phase) {
    switch (phase) {
        case PhaseKind::kForward:
            return palette().accent;
        case PhaseKind::kBackward:
            return palette().warn;
        case PhaseKind::kLoss:
        case PhaseKind::kOptimizer:
        case PhaseKind::kInference:
            break;
    }
    return palette().dim;
}

/// The selected range is just this block.
bool is_picked(const Selection& selection, const RibbonBlock& block) {
    return selection.range && selection.range->start_ns == block.start_ns &&
           selection.range->end_ns == block.end_ns;
}

void draw_module(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                 const RibbonBlock& block, ModuleLevel level, float top) {
    const auto [left, right] = span_in_pixels(map, block.start_ns, block.end_ns);
    const float gap = right - left > px(4) ? 1.0F : 0.0F;
    const float bottom = top + ribbon_height() - px(1);
    const bool is_outer = level == ModuleLevel::kOuter;
    const float alpha = (is_outer ? 0.42F : 0.22F) + (block.shade == 1 ? 0.12F : 0.0F);
    draw->AddRectFilled({left, top}, {right - gap, bottom},
                        with_alpha(phase_tint(block.phase), alpha));
    if (is_picked(selection, block)) {
        draw->AddRect({left, top}, {right - gap, bottom}, palette().text, 0, px(1.5F));
    }
}

using RibbonBlocks = std::span<const RibbonBlock>;

/// Of the layers of a phase every n-th has its number, so many as have room side by side; 0: none.
int numbered_layers(const PlotMap& map, RibbonBlocks blocks, PhaseKind phase) {
    float room = 0, widest = 0;
    int count = 0;
    for (const RibbonBlock& block : blocks) {
        if (block.phase != phase || block.layer < 0) continue;
        room += map.x(block.end_ns) - map.x(block.start_ns);
        widest = std::max(widest, text_width(block.short_label));
        ++count;
    }
    constexpr std::array kEvery{1, 2, 4, 6, 12, 24};
    const auto every = std::find_if(kEvery.begin(), kEvery.end(), [&](int n) {
        return static_cast<float>(n) * room >= (widest + px(8)) * static_cast<float>(count);
    });
    return every == kEvery.end() ? 0 : *every;
}

/// After all blocks, so that none covers the name of another. The number of a layer may reach over
/// its neighbours.
void draw_module_names(ImDrawList* draw, const PlotMap& map, RibbonBlocks blocks, float top) {
    std::array<int, profiler::kPhaseKindNames.size()> every{};
    for (size_t i = 0; i < every.size(); ++i) {
        every[i] = numbered_layers(map, blocks, static_cast<PhaseKind>(i));
    }
    const float y = std::round(top + (ribbon_height() - px(1) - ImGui::GetTextLineHeight()) / 2);
    float free_from = map.corner.x;
    for (const RibbonBlock& block : blocks) {
        if (block.label.empty()) continue;
        const auto [left, right] = span_in_pixels(map, block.start_ns, block.end_ns);
        const float room = right - left - px(6);
        const bool is_whole = text_width(block.label) <= room;
        const std::string& label = is_whole ? block.label : block.short_label;
        const float width = text_width(label);
        const int n = every[static_cast<size_t>(block.phase)];
        const bool is_number = block.layer >= 0 && !is_whole;
        const bool is_named = is_number ? n > 0 && block.layer % n == 0 : width <= room;
        // In the middle of what is visible, as the block may reach beyond the plot.
        const float x = std::round((left + right - width) / 2);
        if (!is_named || x < free_from || x + width > map.right()) continue;
        draw->AddText({x, y}, palette().text, label.c_str());
        free_from = x + width + px(4);
    }
}

}  // namespace

float ribbon_height() { return px(17); }

const char* name_of_ribbon(ModuleLevel level) {
    return level == ModuleLevel::kOuter ? "layers" : "parts";
}

const RibbonBlock* draw_ribbon(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                               const profiler::RibbonTrace& ribbon, ModuleLevel level, float top) {
    const std::vector<RibbonBlock>& blocks = ribbon.levels[static_cast<size_t>(level)];
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row =
        ImPlot::IsPlotHovered() && mouse.y >= top && mouse.y < top + ribbon_height();
    const RibbonBlock* found = nullptr;
    const auto first =
        std::lower_bound(blocks.begin(), blocks.end(), map.x_min,
                         [](const RibbonBlock& block, double time) { return block.end_ns < time; });
    for (auto block = first; block != blocks.end() && block->start_ns <= map.x_max; ++block) {
        draw_module(draw, map, selection, *block, level, top);
        const float left = map.x(block->start_ns);
        const float right = std::max(map.x(block->end_ns), left + px(2));
        if (in_row && mouse.x >= left && mouse.x < right) found = &*block;
    }
    const auto end = std::upper_bound(
        first, blocks.end(), map.x_max,
        [](double time, const RibbonBlock& block) { return time < block.start_ns; });
    draw_module_names(draw, map, {first, end}, top);
    return found;
}

float lanes_height(const TimelineLanes& lanes) {
    const float ribbon = static_cast<float>(levels_of(lanes).size()) * ribbon_height();
    const float kernels = static_cast<float>(kernel_strips(lanes).size()) * strip_height();
    return ribbon + kernels > 0 ? std::round(gap_above() + ribbon + kernels) : 0;
}

std::optional<profiler::TimeRange> LaneHit::span() const {
    if (module) return profiler::TimeRange{module->start_ns, module->end_ns};
    if (!call.block) return std::nullopt;
    return profiler::TimeRange{call.block->start_ns, call.block->end_ns};
}

LaneHit draw_timeline_lanes(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                            const TimelineLanes& lanes, size_t trace) {
    const ScopedFont font(fonts().text, kSmallSize);
    LaneHit hit{.top = map.bottom() - lanes_height(lanes), .bottom = map.bottom()};
    draw->AddRectFilled({map.corner.x, hit.top}, {map.right(), hit.bottom}, palette().plot);
    float top = hit.top + gap_above();
    for (const ModuleLevel level : levels_of(lanes)) {
        const RibbonBlock* found = draw_ribbon(draw, map, selection, *lanes.ribbon, level, top);
        if (found) {
            hit.module = found;
            hit.level = level;
        }
        top += ribbon_height();
    }
    for (const KernelStrip& strip : kernel_strips(lanes)) {
        const HoveredCall found = draw_call_strip(
            draw, map, selection, {strip.row, trace, top, strip_height()}, ImPlot::IsPlotHovered());
        if (found.block) hit.call = found;
        top += strip_height();
    }
    return hit;
}

void draw_lane_names(ImDrawList* draw, const PlotMap& map, const TimelineLanes& lanes) {
    const ScopedFont font(fonts().text, kSmallSize);
    float top = map.bottom() - lanes_height(lanes) + gap_above();
    constexpr float kMost_em = 5;  // beside the plot
    const auto name = [&](std::string_view whole, float height) {
        const float y = std::round(top + (height - px(1) - ImGui::GetTextLineHeight()) / 2);
        const std::string shown = fit_to(whole, em(kMost_em));
        draw->AddText({map.corner.x - px(6) - text_width(shown), y}, palette().dim, shown.c_str());
        top += height;
    };
    for (const ModuleLevel level : levels_of(lanes)) name(name_of_ribbon(level), ribbon_height());
    for (const KernelStrip& strip : kernel_strips(lanes)) name(strip.name, strip_height());
}

void draw_lane_readout(const Workspace& workspace, size_t trace, const LaneHit& hit) {
    if (hit.call.block) return draw_call_readout(workspace, hit.call);
    if (!hit.module || !ImGui::BeginTooltip()) return;
    const RibbonBlock& block = *hit.module;
    if (block.count > 1) {
        text(fmt::format("{} modules in {}", profiler::format_count(block.count),
                         profiler::format_duration(std::llround(block.end_ns - block.start_ns))));
        dim_text("zoom in to see them one by one");
    } else {
        const auto readout = workspace.read_module(trace, hit.level, block.span);
        wrapped_bold_text(readout.title, em(34));
        readout_table(readout.rows);
    }
    ImGui::EndTooltip();
}

void click_lane(const Workspace& workspace, size_t trace, const LaneHit& hit, PanelEvents& events) {
    if (!hit.module) return click_call(hit.call, events);
    if (is_picked(workspace.selection(), *hit.module)) {
        events.selection.range = std::optional<profiler::TimeRange>();
        return;
    }
    events.selection.range = hit.span();
    if (hit.module->count > 1) return;
    const int64_t layer = workspace.read_module(trace, hit.level, hit.module->span).layer;
    if (layer >= 0) events.selection.layers = profiler::LayerRange{layer, layer};
}

}  // namespace app
