#include "app/panels/kernels/kernels_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/panels/parts/timeline_drawing.h"
#include "app/panels/parts/timeline_lanes.h"
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

using profiler::KernelsLane;
using profiler::KernelsView;

/// A horizontal strip of the panel.
struct Strip {
    enum class Kind : uint8_t { kTraceName, kPhases, kModules, kLaneName, kBlocks };
    Kind kind = Kind::kTraceName;
    size_t trace = 0;
    profiler::ModuleLevel level = profiler::ModuleLevel::kOuter;  // of kModules
    const KernelsLane* lane = nullptr;                            // of kLaneName and kBlocks
    const profiler::CallBlockRow* blocks = nullptr;
    float top = 0;  // pixels below the first strip's top
    float height = 0;
};

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Selection& selection;
    const TimeAxis& time;
    const KernelsView& view;
    KernelsState& state;
    PanelEvents& events;
    std::vector<Strip> strips;
    float height = 0;  // of all strips
    LaneHit hovered;
    size_t hovered_trace = 0;

    /// Phases and modules of a trace, which the Memory timeline shows too; null: not known.
    const profiler::TimelineTrace* phases(size_t trace) const {
        const auto* view_of_memory = context.workspace.slots().timeline.view();
        if (!view_of_memory || trace >= view_of_memory->traces.size()) return nullptr;
        return &view_of_memory->traces[trace];
    }
    const profiler::RibbonTrace* ribbon(size_t trace) const {
        const auto* modules = context.workspace.slots().ribbon.view();
        if (!modules || trace >= modules->traces.size()) return nullptr;
        return &modules->traces[trace];
    }
};

void lay_out_strips(Frame& frame) {
    const auto add = [&](Strip strip, float height) {
        strip.top = frame.height;
        strip.height = height;
        frame.strips.push_back(strip);
        frame.height += height;
    };
    for (size_t t = 0; t < frame.view.traces.size(); ++t) {
        if (frame.view.traces.size() > 1)
            add({.kind = Strip::Kind::kTraceName, .trace = t}, px(24));
        if (const auto* phases = frame.phases(t); phases && !phases->phases.empty()) {
            add({.kind = Strip::Kind::kPhases, .trace = t}, phase_strip_height());
        }
        if (const auto* ribbon = frame.ribbon(t); ribbon && !ribbon->empty()) {
            for (const auto level :
                 {profiler::ModuleLevel::kOuter, profiler::ModuleLevel::kInner}) {
                add({.kind = Strip::Kind::kModules, .trace = t, .level = level}, ribbon_height());
            }
        }
        for (const KernelsLane& lane : frame.view.traces[t].lanes) {
            add({.kind = Strip::Kind::kLaneName, .trace = t, .lane = &lane}, px(18));
            for (const auto& row : lane.rows) {
                // What a GPU runs is what the panel is for.
                const bool is_of_gpu = lane.is_stream && &row == &lane.rows.front();
                add({.kind = Strip::Kind::kBlocks, .trace = t, .lane = &lane, .blocks = &row},
                    px(is_of_gpu ? 34.0F : 19.0F));
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
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.time.fit = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
    const float below = ImGui::GetCursorPosY();
    ImGui::SetCursorPos({start.x, start.y + ImGui::GetStyle().FramePadding.y});
    color_legend(colors_of(frame.view.classes));
    if (!frame.view.has_kernels) {
        ImGui::SameLine(0, px(12));
        dim_text(fit_to("calls only: on the CPU there are no kernels",
                        start.x + width - ImGui::GetCursorPosX() - px(8)));
    }
    ImGui::SetCursorPos({start.x, below});
}

// ---- blocks ---------------------------------------------------------------------------------

/// The name of a trace or a lane stays at the left edge while the plot is panned.
void draw_name(const Frame& frame, ImDrawList* draw, const PlotMap& map, const Strip& strip,
               float top) {
    const Selection& selection = frame.selection;
    const float x = map.corner.x + px(6);
    if (strip.kind == Strip::Kind::kLaneName) {
        const float y = std::round(top + (strip.height - ImGui::GetTextLineHeight()) / 2);
        std::string name = strip.lane->name;
        if (strip.lane->left_out > 0) {
            name += fmt::format("   {} more overlap and are not shown",
                                profiler::format_count(strip.lane->left_out));
        }
        draw->AddText({x, y}, palette().dim, name.c_str());
        return;
    }
    const DocumentLabel& label = strip.trace == 0 ? selection.label_a : selection.label_b;
    draw->AddRectFilled({map.corner.x, top}, {map.right(), top + strip.height - px(2)},
                        palette().panel);
    const ScopedFont bold(fonts().bold, kSmallSize);
    const float size = letter_badge_size();
    const float y = std::round(top + (strip.height - size) / 2);
    draw_letter_badge(draw, {x, y}, strip.trace == 0 ? "A" : "B", side_color(strip.trace));
    const float name_x = x + size + px(7);
    draw->AddText({name_x, y + px(1)}, palette().text, label.name.c_str());
    const bool stretched =
        strip.trace == 1 && frame.view.alignment != profiler::TimeAlignment::kTime;
    if (!stretched) return;
    const float note_x = name_x + text_width(label.name) + px(12);
    const ScopedFont plain(fonts().text, kSmallSize);
    draw->AddText({note_x, y + px(1)}, palette().dim,
                  "stretched to the phases of A: the axis shows A's time, titles give B's times");
}

void draw_strip(Frame& frame, ImDrawList* draw, const PlotMap& map, const Strip& strip, float top) {
    using Kind = Strip::Kind;
    const Selection& selection = frame.selection;
    LaneHit hit;
    switch (strip.kind) {
        case Kind::kPhases:
            return draw_phase_strip(draw, map, *frame.phases(strip.trace), top);
        case Kind::kModules:
            hit.level = strip.level;
            hit.module =
                draw_ribbon(draw, map, selection, *frame.ribbon(strip.trace), strip.level, top);
            break;
        case Kind::kBlocks:
            hit.call = draw_call_strip(draw, map, selection,
                                       {strip.blocks, strip.trace, top, strip.height},
                                       ImPlot::IsPlotHovered());
            break;
        case Kind::kTraceName:
        case Kind::kLaneName:
            return draw_name(frame, draw, map, strip, top);
    }
    if (!hit.span()) return;
    frame.hovered = hit;
    frame.hovered_trace = strip.trace;
}

void draw_strips(Frame& frame, ImDrawList* draw, const PlotMap& map) {
    const ScopedFont font(fonts().text, kSmallSize);
    for (const Strip& strip : frame.strips) {
        const float top = std::round(map.corner.y + strip.top);
        if (!ImGui::IsRectVisible({map.corner.x, top}, {map.right(), top + strip.height})) continue;
        draw_strip(frame, draw, map, strip, top);
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
    if (selection.moment_ns) draw_moment(draw, map, *selection.moment_ns);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
}

/// A click selects a span, Shift + drag a range. A double click zooms to the span under it, or else
/// shows everything.
void handle_mouse(Frame& frame) {
    const bool was_dragging = frame.state.range.anchor_ns.has_value();
    drag_range(frame.state.range, frame.events);
    if (!ImPlot::IsPlotHovered() || was_dragging) return;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        const std::optional<profiler::TimeRange> span = frame.hovered.span();
        frame.events.time.fit = !span;
        // Not into the state: EndPlot overwrites its window with the range of the axis.
        if (span) zoom_to_span(span->start_ns, span->end_ns, frame.time.window, frame.events);
        return;
    }
    if (is_plain_click()) {
        click_lane(frame.context.workspace, frame.hovered_trace, frame.hovered, frame.events);
    }
}

// ---- the plot -------------------------------------------------------------------------------

/// The names of the rows of modules, left of the plot.
void draw_ribbon_names(const Frame& frame, const PlotMap& map) {
    const ScopedFont font(fonts().text, kSmallSize);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 corner = ImGui::GetItemRectMin(), end = ImGui::GetItemRectMax();  // of the lanes
    draw->PushClipRect({ImGui::GetWindowPos().x, corner.y}, end);
    for (const Strip& strip : frame.strips) {
        if (strip.kind != Strip::Kind::kModules) continue;
        const char* name = name_of_ribbon(strip.level);
        const float y = std::round(map.corner.y + strip.top +
                                   (strip.height - px(1) - ImGui::GetTextLineHeight()) / 2);
        draw->AddText({map.corner.x - px(6) - text_width(name), y}, palette().dim, name);
    }
    draw->PopClipRect();
}

/// All lanes at full height, `width` wide; the child window around them scrolls.
PlotMap draw_lanes(Frame& frame, float width) {
    const ImVec2 space = ImGui::GetContentRegionAvail();
    // The insets stand for ImPlot's own padding.
    const ScopedPlotPadding padding({0, ImPlot::GetStyle().PlotPadding.y});
    if (!ImPlot::BeginPlot("##activity", {width, std::max(space.y, frame.height + px(4))},
                           kPlainPlot)) {
        return {};
    }
    setup_lane_axes(frame.time.limits, frame.state.range, frame.state.start_ns, frame.state.end_ns,
                    width);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    draw_strips(frame, draw, map);
    if (ImPlot::IsPlotHovered()) {
        frame.events.time.cursor_ns = ImPlot::GetPlotMousePos().x;
        // Wheel and horizontal drag move in time; a vertical drag scrolls.
        if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0) && !frame.state.range.anchor_ns) {
            ImGui::SetScrollY(ImGui::GetScrollY() - ImGui::GetIO().MouseDelta.y);
        }
    }
    draw_selection(frame, draw, map);
    handle_mouse(frame);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    return map;
}

/// The plot begins and ends where those of the Memory timeline do, so that an instant stands in one
/// column of pixels in both panels. The scrollbar takes the room at the right.
int draw_plot(Frame& frame) {
    const float axis = em(1.2F);
    const ImGuiStyle& style = ImGui::GetStyle();
    const float beside = std::floor(style.WindowPadding.x / 2);  // what ImGui lets children reach
    const PlotInsets& insets = frame.time.insets;
    const float right = std::max(insets.right, style.ScrollbarSize - beside);
    const float width = ImGui::GetContentRegionAvail().x - insets.left - right;
    PlotMap map;
    {
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + insets.left);
        const ScopedChild lanes("##lanes", {ImGui::GetContentRegionAvail().x + beside, -axis}, 0,
                                ImGuiWindowFlags_NoScrollWithMouse);
        if (lanes) map = draw_lanes(frame, std::max(width, em(4)));
    }
    if (map.size.x > 0) {
        draw_ribbon_names(frame, map);
        draw_time_labels(map, frame.state.start_ns, frame.state.end_ns);
        frame.state.plot_left_px = map.corner.x;
        frame.state.plot_right_px = map.right();
    }
    return static_cast<int>(map.size.x);
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_CHART_GANTT,
    .purpose =
        "Calls, kernels and copies of the traces A and B appear here, on the time axis of the "
        "Memory timeline.",
    .error_title = "Calls and kernels could not be drawn",
    .working = "Laying out calls and kernels ..."};

bool records_spans(const KernelsView& view) {
    return std::any_of(view.traces.begin(), view.traces.end(),
                       [](const auto& trace) { return !trace.lanes.empty(); });
}

}  // namespace

PanelEvents draw_kernels_panel(const PanelContext& context, KernelsState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const TimeWindow& window = workspace.time().window;
    const KernelsView* view = workspace.slots().kernels.view();
    if (!view || view->traces.empty()) {
        draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().kernels.error());
        // Nothing can be laid out before the width is known.
        events.time.kernels_width_px = static_cast<int>(ImGui::GetContentRegionAvail().x);
        return events;
    }
    if (!records_spans(*view)) {
        empty_state(ICON_CHART_GANTT, "This trace records no calls or kernels",
                    "It holds memory only. Traces captured by temposcope hold calls and kernels "
                    "too.");
        return events;
    }
    Frame frame{context, workspace.selection(), workspace.time(), *view, state, events, {}, 0, {},
                0};
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    lay_out_strips(frame);
    draw_legend(frame);
    if (const int width_px = draw_plot(frame); width_px > 0)
        events.time.kernels_width_px = width_px;
    if (!state.range.anchor_ns) draw_lane_readout(workspace, frame.hovered_trace, frame.hovered);
    handle_time_keys(context, events);
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, window, events);
    }
    return events;
}

}  // namespace app
