#include "app/panels/kernels_panel.h"

#include "app/panels/timeline_drawing.h"
#include "app/panels/unfilled.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::ActivityBlock;
using profiler::ActivityKind;
using profiler::ActivityView;
using profiler::ActivityViewLane;

/// A horizontal strip of the panel: the name of a trace, the name of a lane, or a row of blocks.
struct Strip {
    size_t trace = 0;
    const ActivityViewLane* lane = nullptr;              // null: the strip names the trace
    const profiler::ActivityBlockRow* blocks = nullptr;  // null: the strip names the lane
    float top = 0;                                       // pixels below the first strip's top
    float height = 0;
};

struct Hovered {
    size_t trace = 0;
    const ActivityBlock* block = nullptr;
};

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Selection& selection;
    const TimeAxis& time;
    const ActivityView& view;
    KernelsState& state;
    PanelEvents& events;
    std::vector<Strip> strips;
    float height = 0;  // of all strips
    Hovered hovered;
};

void lay_out_strips(Frame& frame) {
    const auto add = [&](Strip strip, float height) {
        strip.top = frame.height;
        strip.height = height;
        frame.strips.push_back(strip);
        frame.height += height;
    };
    for (size_t t = 0; t < frame.view.traces.size(); ++t) {
        if (frame.view.traces.size() > 1) add({.trace = t}, px(24));
        for (const ActivityViewLane& lane : frame.view.traces[t].lanes) {
            add({.trace = t, .lane = &lane}, px(18));
            for (const auto& row : lane.rows) {
                // What a GPU runs is what the panel is for.
                const bool is_of_gpu = lane.is_stream && &row == &lane.rows.front();
                add({.trace = t, .lane = &lane, .blocks = &row}, px(is_of_gpu ? 34.0F : 19.0F));
            }
            frame.height += px(5);
        }
    }
}

void draw_legend(Frame& frame) {
    const ImVec2 start = ImGui::GetCursorPos();
    const bool has_two = frame.view.traces.size() == 2;
    const float width = ImGui::GetContentRegionAvail().x - em(has_two ? 4.4F : 2.2F);
    ImGui::SetCursorPosX(start.x + width);
    if (has_two) {
        align_button(frame.time.window, frame.events);
        ImGui::SameLine(0, px(4));
    }
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.fit_time = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
    const float below = ImGui::GetCursorPosY();
    ImGui::SetCursorPos({start.x, start.y + ImGui::GetStyle().FramePadding.y});
    for (const profiler::ActivityClass activity_class : frame.view.classes) {
        swatch(activity_color(activity_class));
        text(profiler::label_of(activity_class));
        ImGui::SameLine(0, px(12));
    }
    if (!frame.view.has_kernels) {
        dim_text(fit_to("calls only: on the CPU there are no kernels",
                        start.x + width - ImGui::GetCursorPosX() - px(8)));
    }
    ImGui::NewLine();  // ends the line of the last swatch
    ImGui::SetCursorPos({start.x, below});
}

// ---- blocks ---------------------------------------------------------------------------------

/// How a block is related to the op that was clicked.
enum class Kinship : uint8_t { kNone, kPicked, kSameOp, kForwardOrBackward };

Kinship kinship(const Frame& frame, size_t trace, const ActivityBlock& block) {
    const auto& picked = frame.selection.activity;
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

void draw_block(const Frame& frame, ImDrawList* draw, const PlotMap& map, const Strip& strip,
                const ActivityBlock& block, float top) {
    const float left = std::round(std::max(map.x(block.start_ns), map.corner.x));
    const float right = std::max(left + 1, std::round(std::min(map.x(block.end_ns), map.right())));
    const float bottom = top + strip.height - px(1);
    const Kinship kin = kinship(frame, strip.trace, block);
    // The less of its time a merged block was busy, the paler it is.
    const auto busy = static_cast<float>(block.busy);
    const float alpha = block.count > 1 ? 0.30F + 0.62F * busy : 0.92F;
    const ImU32 fill = activity_color(block.activity_class);
    // A gap between neighbours, if there is room for it.
    const float gap = right - left > px(4) ? 1.0F : 0.0F;
    draw->AddRectFilled({left, top}, {right - gap, bottom}, with_alpha(fill, alpha),
                        right - left > px(6) ? px(2) : 0);
    if (kin != Kinship::kNone) {
        const ImU32 color = kin == Kinship::kPicked ? palette().text : palette().accent;
        draw->AddRect({left, top}, {std::max(right - gap, left + px(2)), bottom}, color, px(2),
                      px(kin == Kinship::kForwardOrBackward ? 1.0F : 2.0F));
    }
    if (block.count > 1 || right - left < px(34)) return;
    const float room = right - left - px(8);
    const std::string label = block_label(block.label, room);
    draw->AddText({left + px(4), std::round(top + (strip.height - ImGui::GetTextLineHeight()) / 2)},
                  ink_on(fill), label.c_str());
}

void draw_blocks(Frame& frame, ImDrawList* draw, const PlotMap& map, const Strip& strip,
                 float top) {
    const auto& blocks = strip.blocks->blocks;
    const auto ends_before = [](const ActivityBlock& block, double time) {
        return block.end_ns < time;
    };
    const auto first = std::lower_bound(blocks.begin(), blocks.end(), map.x_min, ends_before);
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row = ImPlot::IsPlotHovered() && mouse.y >= top && mouse.y < top + strip.height;
    for (auto block = first; block != blocks.end() && block->start_ns <= map.x_max; ++block) {
        draw_block(frame, draw, map, strip, *block, top);
        const float left = map.x(block->start_ns);
        const float right = std::max(map.x(block->end_ns), left + px(2));
        if (in_row && mouse.x >= left && mouse.x < right) frame.hovered = {strip.trace, &*block};
    }
}

/// The name of a trace or a lane stays at the left edge while the plot is panned.
void draw_name(const Frame& frame, ImDrawList* draw, const PlotMap& map, const Strip& strip,
               float top) {
    const Selection& selection = frame.selection;
    const float x = map.corner.x + px(6);
    if (strip.lane) {
        const float y = std::round(top + (strip.height - ImGui::GetTextLineHeight()) / 2);
        std::string name = strip.lane->name;
        if (strip.lane->left_out > 0) {
            name += fmt::format("   {} more overlap and are not shown",
                                profiler::format_count(strip.lane->left_out));
        }
        draw->AddText({x, y}, palette().dim, name.c_str());
        return;
    }
    const DocumentLook& look = strip.trace == 0 ? selection.look_a : selection.look_b;
    draw->AddRectFilled({map.corner.x, top}, {map.right(), top + strip.height - px(2)},
                        palette().panel);
    const ScopedFont bold(fonts().bold, kSmallSize);
    const float size = letter_badge_size();
    const float y = std::round(top + (strip.height - size) / 2);
    draw_letter_badge(draw, {x, y}, strip.trace == 0 ? "A" : "B", recipe_color(look.color));
    const float name_x = x + size + px(7);
    draw->AddText({name_x, y + px(1)}, palette().text, look.name.c_str());
    const bool stretched =
        strip.trace == 1 && frame.view.alignment == profiler::TimeAlignment::kPhases;
    if (!stretched) return;
    const float note_x = name_x + text_width(look.name) + px(12);
    const ScopedFont plain(fonts().text, kSmallSize);
    draw->AddText(
        {note_x, y + px(1)}, palette().dim,
        "stretched so that its phases align with those of A; durations read as on A's clock");
}

void draw_strips(Frame& frame, ImDrawList* draw, const PlotMap& map) {
    const ScopedFont font(fonts().text, kSmallSize);
    for (const Strip& strip : frame.strips) {
        const float top = std::round(map.corner.y + strip.top);
        if (!ImGui::IsRectVisible({map.corner.x, top}, {map.right(), top + strip.height})) continue;
        if (strip.blocks) {
            draw_blocks(frame, draw, map, strip, top);
        } else {
            draw_name(frame, draw, map, strip, top);
        }
    }
}

// ---- selection ------------------------------------------------------------------------------

/// The lifetime of a tensor over the strips of its trace, with a line at their lower edge that says
/// what ran during it.
void draw_tensor_life(const Frame& frame, ImDrawList* draw, const PlotMap& map,
                      const SelectedTensor& tensor) {
    if (!tensor.alloc_ns) return;
    float top_of_trace = map.bottom();
    float end_of_trace = map.corner.y;
    for (const Strip& strip : frame.strips) {
        if (strip.trace != (tensor.in_b ? 1U : 0U)) continue;
        top_of_trace = std::min(top_of_trace, map.corner.y + strip.top);
        end_of_trace = std::max(end_of_trace, map.corner.y + strip.top + strip.height);
    }
    const float left = std::max(map.x(*tensor.alloc_ns), map.corner.x);
    const float right =
        std::min(tensor.free_ns ? map.x(*tensor.free_ns) : map.right(), map.right());
    if (right < map.corner.x || left > map.right()) return;
    draw->AddRectFilled({left, top_of_trace}, {right, end_of_trace},
                        with_alpha(palette().accent, 0.10F));
    const ScopedFont font(fonts().text, kSmallSize);
    std::string line =
        fmt::format("{}  {}", tensor.name, profiler::format_bytes(tensor.size_bytes));
    if (tensor.num_kernels > 0) {
        line +=
            fmt::format(", {} kernels while it lives", profiler::format_count(tensor.num_kernels));
    }
    // At the lower edge of the visible part, because the plot is as high as all its lanes.
    const float seen = ImGui::GetWindowPos().y + ImGui::GetWindowHeight();
    const float height = px(18), top = std::min(end_of_trace, seen) - height - px(3);
    draw->AddRectFilled({left, top}, {std::max(right, left + px(2)), top + height},
                        with_alpha(palette().accent, 0.80F), px(3));
    line = fit_to(line, right - left - px(10));
    draw->AddText({left + px(5), std::round(top + (height - ImGui::GetTextLineHeight()) / 2)},
                  palette().plot, line.c_str());
}

void draw_selection(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    const Selection& selection = frame.selection;
    if (selection.range) draw_range(draw, map, *selection.range);
    if (selection.tensor) draw_tensor_life(frame, draw, map, *selection.tensor);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
}

void draw_readout(const Frame& frame) {
    const ActivityBlock* block = frame.hovered.block;
    if (!block || !ImGui::BeginTooltip()) return;
    if (block->count > 1) {
        text(fmt::format("{} spans in {}", profiler::format_count(block->count),
                         profiler::format_duration(std::llround(block->end_ns - block->start_ns))));
        dim_text(fmt::format("busy {} of the time; zoom in to see them one by one",
                             profiler::format_percent(block->busy)));
        ImGui::EndTooltip();
        return;
    }
    const auto readout = frame.context.workspace.read_activity(frame.hovered.trace, block->id);
    ImGui::PushTextWrapPos(em(38));
    bold_text(readout.title);
    ImGui::PopTextWrapPos();
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

/// A click selects a span. A double click zooms to the span under it, or else shows everything.
void handle_mouse(Frame& frame) {
    if (!ImPlot::IsPlotHovered()) return;
    const ActivityBlock* block = frame.hovered.block;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        if (!block) {
            frame.events.fit_time = true;
            return;
        }
        const double middle = (block->start_ns + block->end_ns) / 2;
        const double half = std::max(block->end_ns - block->start_ns, kMinWindowNs / 2);
        // Not into the state: EndPlot overwrites its window with the range of the axis.
        set_range(middle - half, middle + half, frame.time.window, frame.events);
        return;
    }
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                         std::abs(drag.x) + std::abs(drag.y) < px(4);
    if (!clicked) return;
    if (block && block->count == 1) {
        frame.events.activity = PickedActivity{frame.hovered.trace == 1, block->id};
    } else {
        frame.events.clear_activity = true;
    }
}

// ---- the plot -------------------------------------------------------------------------------

void setup_axes(Frame& frame, float width) {
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    ImPlot::SetupAxes(nullptr, nullptr, quiet | ImPlotAxisFlags_NoTickLabels,
                      kFixedAxis | ImPlotAxisFlags_NoDecorations);
    setup_time_axis(frame.time.limits, frame.state.start_ns, frame.state.end_ns, width);
    ImPlot::SetupFinish();
}

/// All lanes at full height; the child window around them scrolls.
PlotMap draw_lanes(Frame& frame) {
    const ImVec2 space = ImGui::GetContentRegionAvail();
    if (!ImPlot::BeginPlot("##activity", {-1, std::max(space.y, frame.height + px(4))},
                           kPlainPlot)) {
        return {};
    }
    setup_axes(frame, space.x);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    draw_strips(frame, draw, map);
    if (ImPlot::IsPlotHovered()) {
        frame.events.cursor_ns = ImPlot::GetPlotMousePos().x;
        // Wheel and horizontal drag move in time; a vertical drag scrolls.
        if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0)) {
            ImGui::SetScrollY(ImGui::GetScrollY() - ImGui::GetIO().MouseDelta.y);
        }
    }
    draw_selection(frame, draw, map);
    handle_mouse(frame);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    return map;
}

/// The labels stay below the lanes while those scroll.
void draw_time_labels(const Frame& frame, const PlotMap& map) {
    const ScopedFont font(fonts().text, kSmallSize);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float y = ImGui::GetCursorScreenPos().y;
    const int count = std::max(2, static_cast<int>(map.size.x / em(8)));
    for (const profiler::Tick& tick : profiler::make_ticks(
             profiler::AxisUnit::kTime, frame.state.start_ns, frame.state.end_ns, count)) {
        const float width = text_width(tick.label);
        const float x =
            std::clamp(map.x(tick.value) - width / 2, map.corner.x, map.right() - width);
        draw->AddText({std::round(x), y}, palette().dim, tick.label.c_str());
    }
    ImGui::Dummy({0, ImGui::GetTextLineHeight()});
}

int draw_plot(Frame& frame) {
    const float axis = em(1.2F);
    PlotMap map;
    {
        const ScopedChild lanes("##lanes", {-1, -axis}, 0, ImGuiWindowFlags_NoScrollWithMouse);
        if (lanes) map = draw_lanes(frame);
    }
    if (map.size.x > 0) draw_time_labels(frame, map);
    return static_cast<int>(map.size.x);
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_CHART_GANTT,
    .purpose =
        "Calls, kernels and copies of the traces A and B appear here, on the time axis of the "
        "Memory timeline.",
    .error_title = "Calls and kernels could not be drawn",
    .working = "Laying out calls and kernels ..."};

bool records_spans(const ActivityView& view) {
    return std::any_of(view.traces.begin(), view.traces.end(),
                       [](const auto& trace) { return !trace.lanes.empty(); });
}

}  // namespace

PanelEvents draw_kernels_panel(const PanelContext& context, KernelsState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const TimeWindow& window = workspace.time().window;
    const ActivityView* view = workspace.slots().kernels.view();
    if (!view || view->traces.empty()) {
        draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().kernels.error());
        // Nothing can be laid out before the width is known.
        events.kernels_width_px = static_cast<int>(ImGui::GetContentRegionAvail().x);
        return events;
    }
    if (!records_spans(*view)) {
        empty_state(ICON_CHART_GANTT, "This trace records no calls or kernels",
                    "It holds memory only. Traces captured by temposcope hold calls and kernels "
                    "too.");
        return events;
    }
    Frame frame{context, workspace.selection(), workspace.time(), *view, state, events, {}, 0, {}};
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    lay_out_strips(frame);
    draw_legend(frame);
    if (const int width_px = draw_plot(frame); width_px > 0) events.kernels_width_px = width_px;
    draw_readout(frame);
    if (ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows)) {
        move_time_with_keys(frame.time, context.cursor_ns, events);
    }
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, window, events);
    }
    return events;
}

}  // namespace app
