#include "app/panels/memory/timeline_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/panels/parts/timeline_drawing.h"
#include "app/panels/parts/timeline_lanes.h"
#include "app/panels/parts/welcome.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/view_orders.h"
#include "app/workspace/workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using profiler::TimelineTrace;
using profiler::TimelineView;

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Selection& selection;
    const TimeAxis& time;
    const TimelineView& view;
    TimelineState& state;
    PanelEvents& events;
    int width_px = 0;  // width inside the plots
    LaneHit hit;       // what the mouse is over, in the plot of this trace:
    size_t hit_trace = 0;
    bool on_handle = false;  // the mouse is over the handle of the moment
};

const char* letter(size_t source) { return source == 0 ? "A" : "B"; }

/// Buttons right of the legend.
void draw_switches(Frame& frame) {
    const float gap = px(4);
    switch_button({ICON_LAYERS "###modules", "Show layers and their modules below the memory",
                   frame.state.has_room_for_modules},
                  frame.state.show_modules);
    ImGui::SameLine(0, gap);
    switch_button({ICON_CHART_GANTT "###lane", "Show kernels, or calls, below the memory",
                   frame.state.has_room_for_kernels},
                  frame.state.show_kernels);
    ImGui::SameLine(0, gap);
    if (frame.view.traces.size() == 2) {
        align_button(frame.time.window, frame.events);
        ImGui::SameLine(0, gap);
        switch_button({"B - A###difference", "Show the difference B - A below",
                       frame.state.has_room_for_difference},
                      frame.state.show_difference);
        ImGui::SameLine(0, gap);
    }
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.time.fit = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
}

/// Behind the categories: the line over them. Not in a line of its own, which the plots would lack.
void draw_reserved_key(const TimelineView& view, float right) {
    const bool has_line = std::any_of(view.traces.begin(), view.traces.end(),
                                      [](const auto& trace) { return trace.has_reserved; });
    if (!has_line) return;
    const std::string_view label = "Reserved";
    const float line = px(14), width = line + px(6) + text_width(label);
    ImGui::SameLine(0, px(12));
    if (ImGui::GetCursorPosX() + width > right) return ImGui::NewLine();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float y = std::round(at.y + ImGui::GetTextLineHeight() / 2);
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, y}, {at.x + line, y + px(1)},
                                              with_alpha(palette().text, 0.75F));
    ImGui::Dummy({line, ImGui::GetTextLineHeight()});
    ImGui::SameLine(0, px(6));
    text(label);
    ImGui::SetItemTooltip(
        "What the allocator has taken from the GPU: the categories and the gaps between them.\n"
        "With the CUDA context it is the memory on the GPU, which the Planner shows.");
}

void draw_toolbar(Frame& frame) {
    const float switches = em(frame.view.traces.size() == 2 ? 13.0F : 6.6F);
    const float width = ImGui::GetContentRegionAvail().x - switches;
    const ImVec2 start = ImGui::GetCursorPos();
    ImGui::SetCursorPosX(start.x + width);
    draw_switches(frame);
    const float below = ImGui::GetCursorPosY();
    ImGui::SetCursorPos(
        {start.x,
         start.y + ImGui::GetStyle().FramePadding.y});  // level with the text of the buttons
    const auto clicked =
        category_legend(frame.view.categories, frame.selection.category, width - px(8));
    draw_reserved_key(frame.view, start.x + width - px(8));
    draw_inferred_mark(frame.selection);
    if (clicked) frame.events.selection.category = clicked;
    ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY(), below));
}

/// What the colours of the kernels mean, at the right end of the line.
void draw_kernel_key(const Frame& frame, float left, float width) {
    const profiler::KernelsView* kernels = frame.context.workspace.slots().kernels.view();
    if (!kernels || kernels->classes.empty()) return;
    const float name_line = ImGui::GetTextLineHeight();
    const ScopedFont small(fonts().text, kSmallSize);
    const auto colors = colors_of(kernels->classes);
    const float needed = color_legend_width(colors);
    const float line = ImGui::GetTextLineHeight();
    ImGui::SameLine(0, px(14));
    if (ImGui::GetCursorPosX() + needed > left + width) return ImGui::NewLine();
    ImGui::SetCursorPosX(left + width - needed);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::round((name_line - line) / 2));
    color_legend(colors);
}

void draw_trace_header(const Frame& frame, size_t source, std::string_view note) {
    const TimelineTrace& trace = frame.view.traces[source];
    const Selection& selection = frame.selection;
    const DocumentLabel& label = source == 0 ? selection.label_a : selection.label_b;
    letter_badge(letter(source), side_color(source));
    ImGui::SameLine(0, px(7));
    bold_text(fit_to(label.name, em(18)));
    ImGui::SameLine(0, px(10));
    const bool is_stretched =
        source == 1 && frame.view.alignment == profiler::TimeAlignment::kPhases;
    dim_text(trace.summary + (is_stretched ? "  ·  stretched to the phases of A" : ""));
    ImGui::SetItemTooltip(
        "Peak: the most bytes in tensors at one time.\n"
        "Behind \"of\": what the allocator may take, on a GPU at most its memory without the CUDA "
        "context.%s",
        is_stretched ? "\nStretched: the axis shows A's time; phases say how long B's take." : "");
    if (source == 1 && !frame.view.alignment_note.empty()) {
        ImGui::SameLine();
        help_marker(frame.view.alignment_note);
    }
    if (note.empty()) return;
    ImGui::SameLine(0, px(10));
    dim_text(fit_to(note, ImGui::GetContentRegionAvail().x));
}

/// The vertical axis of a plot: ticks begin at `first_tick`.
struct VerticalAxis {
    double min = 0;
    double max = 1;
    double first_tick = 0;
    float ticks_px = 0;  // length of the part with ticks
};

/// The axes are the same in all plots of the panel.
void setup_axes(Frame& frame, const VerticalAxis& y, bool with_time_labels) {
    // Shift + drag selects a range instead of panning, and the handle moves the moment.
    const bool on_handle = frame.state.on_handle && ImGui::IsMouseDown(ImGuiMouseButton_Left);
    const bool is_held = ImGui::GetIO().KeyShift || on_handle || frame.state.drags_moment;
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    ImPlot::SetupAxes(nullptr, nullptr,
                      quiet | (is_held ? ImPlotAxisFlags_Lock : 0) |
                          (with_time_labels ? 0 : ImPlotAxisFlags_NoTickLabels),
                      quiet | kFixedAxis);
    setup_time_axis(frame.time.limits, frame.state.start_ns, frame.state.end_ns,
                    static_cast<float>(frame.time.window.width_px));
    // What is sampled depends on the width of the plots: their labels must not change it.
    setup_ticks(ImAxis_Y1, profiler::AxisUnit::kBytes, y.first_tick, y.max, y.ticks_px,
                /*room_for=*/"-888 MiB");
    ImPlot::SetupAxisLimits(ImAxis_Y1, y.min, y.max, ImPlotCond_Always);
    ImPlot::SetupFinish();
}

// ---- mouse ----------------------------------------------------------------------------------

/// A click without a drag sets the moment. The first click of a double click did, so the second one
/// takes that back.
void click_moment(Frame& frame, double time_ns) {
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.selection.moment_ns = frame.state.moment_before_click_ns;
        return;
    }
    const TimelineState& state = frame.state;
    if (!is_plain_click() || state.pressed_on_handle || state.range.anchor_ns) return;
    frame.state.moment_before_click_ns = frame.selection.moment_ns;
    frame.events.selection.moment_ns = std::optional(time_ns);
}

/// A click beside the plots forgets the moment.
void clear_moment(Frame& frame) {
    const bool beside = ImGui::IsWindowHovered() && !ImGui::IsAnyItemHovered();
    if (frame.selection.moment_ns && beside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        frame.events.selection.moment_ns.emplace(std::nullopt);
    }
}

/// The whole line of a selected moment can be dragged. Without a selected moment the peak is shown;
/// then only the handle at the foot can be dragged.
bool is_over_handle(const Frame& frame, const PlotMap& map) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const float distance = std::abs(mouse.x - map.x(moment_of(frame.selection)));
    if (frame.selection.moment_ns && distance <= px(4)) return true;
    return distance <= px(7) && mouse.y >= map.bottom() - px(11);
}

/// Drags the moment, also outside of the plot. A double click on the handle goes back to the peak;
/// returns true then.
bool handle_moment(Frame& frame, const PlotMap& map, bool hovered) {
    TimelineState& state = frame.state;
    const bool over = hovered && is_over_handle(frame, map);
    frame.on_handle |= over;
    if (over || state.drags_moment) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    if (hovered && ImGui::GetMouseClickedCount(ImGuiMouseButton_Left) == 1) {
        state.pressed_on_handle = state.drags_moment = over && !ImGui::GetIO().KeyShift;
    }
    if (state.drags_moment && ImGui::IsMouseDragging(ImGuiMouseButton_Left, px(2))) {
        frame.events.selection.moment_ns =
            std::optional(std::clamp(ImPlot::GetPlotMousePos().x, state.start_ns, state.end_ns));
    }
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) state.drags_moment = false;
    const bool to_peak =
        over && state.pressed_on_handle && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    if (to_peak) frame.events.selection.moment_ns.emplace(std::nullopt);
    return to_peak;
}

/// Cursor, clicks and double clicks. `hit` is what the mouse is over below the memory.
void handle_mouse(Frame& frame, const PlotMap& map, size_t source, const LaneHit& hit) {
    const double time_ns = ImPlot::GetPlotMousePos().x;
    const bool hovered = ImPlot::IsPlotHovered();
    const bool is_doubled = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    if (handle_moment(frame, map, hovered)) return;
    if (hovered) frame.events.time.cursor_ns = time_ns;
    const bool in_lanes = hovered && hit.holds(ImGui::GetMousePos().y);
    if (in_lanes) {
        frame.hit = hit;
        frame.hit_trace = source;
    }
    if (const auto span = hit.span(); in_lanes && span) {
        if (is_doubled) {
            zoom_to_span(span->start_ns, span->end_ns, frame.time.window, frame.events);
        } else if (is_plain_click() && !frame.state.pressed_on_handle) {
            click_lane(frame.context.workspace, source, hit, frame.events);
        }
        return;
    }
    if (hovered && !in_lanes) click_moment(frame, time_ns);
    // ImPlot cannot fit by itself, because it does not know the data of the steps.
    if ((hovered || ImPlot::IsAxisHovered(ImAxis_X1)) && is_doubled) frame.events.time.fit = true;
}

void draw_overlays(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    if (frame.selection.range) draw_range(draw, map, *frame.selection.range);
    if (frame.selection.moment_ns) {
        draw_moment(draw, map, *frame.selection.moment_ns);
    } else {
        draw_moment_handle(draw, map, moment_of(frame.selection),
                           with_alpha(palette().text, frame.state.on_handle ? 1.0F : 0.45F));
    }
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
}

// ---- the plots ------------------------------------------------------------------------------

/// How a plot of a trace divides its height.
struct PlotSize {
    float memory = 0;
    float lanes = 0;
    float axis = 0;  // labels of the time axis; 0: they stand below another plot
};

/// The lanes lie below zero on the vertical axis, so that they are on the pixels of the memory.
/// Above the highest value there is room for the strip of phase names.
VerticalAxis memory_axis(const Frame& frame, const PlotSize& size) {
    const ImPlotStyle& style = ImPlot::GetStyle();
    const float labels = size.axis > 0 ? ImGui::GetTextLineHeight() + style.LabelPadding.y : 0;
    const float height =
        std::max(em(1), size.memory + size.axis - labels - 2 * style.PlotPadding.y);
    const int ticks = std::max(2, static_cast<int>(height / px(34)));
    const double strip = phase_strip_height() / height;
    const double top = profiler::axis_end(profiler::AxisUnit::kBytes, frame.view.max_bytes,
                                          0.06 + strip / (1 - std::min(0.5, strip)), ticks);
    return {.min = -top * size.lanes / height, .max = top, .ticks_px = height};
}

void draw_trace_plot(Frame& frame, size_t source, const TimelineLanes& lanes,
                     const PlotSize& size) {
    const ScopedId id(static_cast<int>(source));
    const TimelineTrace& trace = frame.view.traces[source];
    const float height = size.memory + size.lanes + size.axis;
    ImDrawList* window_draw = ImGui::GetWindowDrawList();
    if (!ImPlot::BeginPlot("##memory", {-1, height}, kPlainPlot)) return;
    setup_axes(frame, memory_axis(frame, size), size.axis > 0);
    const PlotMap map = current_plot_map();
    frame.width_px = static_cast<int>(map.size.x);
    frame.state.plot_left_px = map.corner.x;
    frame.state.plot_right_px = map.right();
    frame.state.plot_foot_px = map.bottom();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    draw_lane_names(window_draw, map, lanes);
    ImPlot::PushPlotClipRect();
    draw_phases(draw, map, trace, true);
    draw_stack(draw, map, trace, frame.selection.category);
    draw_reserved_line(draw, map, trace);
    const LaneHit hit = draw_timeline_lanes(draw, map, frame.selection, lanes, source);
    const auto& tensor = frame.selection.tensor;
    if (tensor && tensor->in_b == (source == 1)) draw_tensor_lifetime(draw, map, *tensor);
    const auto& call = frame.selection.call;
    if (call && call->in_b == (source == 1)) draw_call(draw, map, *call);
    draw_markers(draw, map, trace, /*with_texts=*/size.memory > px(80));
    handle_mouse(frame, map, source, hit);
    if (source == 0 || ImPlot::IsPlotHovered()) drag_range(frame.state.range, frame.events);
    draw_overlays(frame, draw, map);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
}

void draw_difference_plot(Frame& frame, const PlotSize& size) {
    if (!ImPlot::BeginPlot("##difference", {-1, size.memory + size.axis}, kPlainPlot)) return;
    const double end = std::max(1.0, frame.view.max_difference_bytes * 1.15);
    setup_axes(frame, {.min = -end, .max = end, .first_tick = -end, .ticks_px = size.memory}, true);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    draw_difference(draw, map, frame.view.traces[0].edge_ns, frame.view.difference_bytes);
    handle_mouse(frame, map, 0, {});
    if (ImPlot::IsPlotHovered()) drag_range(frame.state.range, frame.events);
    draw_overlays(frame, draw, map);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
}

/// The tooltip over the memory: one instant of A, and of B if `num_traces` is two, with a row per
/// category and a column per trace.
void draw_memory_readout(const Workspace& workspace, size_t num_traces, double time_ns) {
    if (!ImGui::BeginTooltip()) return;
    std::vector<profiler::TimelineReadout> readouts;
    for (size_t i = 0; i < num_traces; ++i) readouts.push_back(workspace.read_timeline(i, time_ns));
    const auto bytes_of = [&](size_t source, profiler::Category category) -> std::string {
        for (const auto& row : readouts[source].rows) {
            if (row.category == category) return row.text;
        }
        return "–";
    };
    if (ImGui::BeginTable("##readout", static_cast<int>(num_traces) + 1,
                          ImGuiTableFlags_SizingFixedFit)) {
        const auto row = [&](auto&& first, auto&& cell) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            first();
            for (size_t i = 0; i < num_traces; ++i) {
                ImGui::TableNextColumn();
                ImGui::Dummy({em(5), 0});  // numbers end on one line in every frame
                ImGui::SameLine(0, 0);
                ImGui::SetCursorPosX(ImGui::GetCursorPosX() - em(5));
                cell(i);
            }
        };
        row([&] { dim_text(readouts[0].time_text); },
            [&](size_t i) { right_text(i == 0 ? "A" : "B"); });
        for (auto category = profiler::kCategoryStackOrder.rbegin();
             category != profiler::kCategoryStackOrder.rend(); ++category) {
            const bool shown = std::any_of(readouts.begin(), readouts.end(), [&](const auto& r) {
                return std::any_of(r.rows.begin(), r.rows.end(),
                                   [&](const auto& cell) { return cell.category == *category; });
            });
            if (!shown) continue;
            row(
                [&] {
                    category_swatch(*category);
                    text(profiler::label_of(*category));
                },
                [&](size_t i) { right_text(bytes_of(i, *category)); });
        }
        const ScopedFont bold(fonts().bold);
        row([&] { text("Total"); }, [&](size_t i) { right_text(readouts[i].total_text); });
        ImGui::EndTable();
    }
    if (!readouts[0].phase_text.empty()) dim_text(readouts[0].phase_text);
    if (!readouts[0].annotation_text.empty()) dim_text(fit_to(readouts[0].annotation_text, em(30)));
    ImGui::EndTooltip();
}

/// The tooltip: what is under the mouse below the memory, or else both traces at the cursor.
void draw_tooltip(const Frame& frame) {
    if (!frame.events.time.cursor_ns || frame.state.range.anchor_ns) return;
    const Workspace& workspace = frame.context.workspace;
    if (frame.hit.bottom > 0 && !frame.state.drags_moment) {
        draw_lane_readout(workspace, frame.hit_trace, frame.hit);
    } else {
        draw_memory_readout(workspace, frame.view.traces.size(), *frame.events.time.cursor_ns);
    }
}

/// What fits into the panel. Memory comes first: where it would be low, the parts of layers are
/// left out. If there is too little room, so are the kernels, the layers, the difference, and B.
struct PlotLayout {
    size_t count = 0;  // number of traces drawn
    bool parts = false;
    bool kernels = false;
    bool difference = false;
    bool modules = false;
    std::array<TimelineLanes, 2> lanes;  // of A and B
    float height = 0;                    // of the memory of a trace
    float difference_height = 0;  // of the plot of the difference, without the labels of the axis
    float axis = 0;               // height of the labels, which only the last plot has

    /// Leaves out the next part; false: nothing is left to leave out.
    bool drop_one() {
        for (bool* part : {&parts, &kernels, &modules, &difference}) {
            if (std::exchange(*part, false)) return true;
        }
        if (count < 2) return false;
        --count;
        return true;
    }
};

/// The lanes of a trace, as far as their views have been built.
TimelineLanes lanes_of(const Frame& frame, const PlotLayout& layout, size_t source) {
    const Slots& slots = frame.context.workspace.slots();
    const profiler::RibbonView* ribbon = slots.ribbon.view();
    const profiler::KernelsView* kernels = slots.kernels.view();
    TimelineLanes lanes;
    if (layout.modules && ribbon && source < ribbon->traces.size()) {
        lanes.ribbon = &ribbon->traces[source];
        lanes.with_parts = layout.parts;
    }
    if (layout.kernels && kernels && source < kernels->traces.size()) {
        lanes.kernels = &kernels->traces[source];
    }
    return lanes;
}

PlotLayout lay_out_plots(const Frame& frame) {
    const float least = em(4), least_with_parts = em(7);
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float gap = ImGui::GetStyle().ItemSpacing.y;
    PlotLayout layout{.count = frame.view.traces.size(),
                      .parts = frame.state.show_modules,
                      .kernels = frame.state.show_kernels,
                      .modules = frame.state.show_modules,
                      .axis = em(1.6F)};
    layout.difference = layout.count == 2 && frame.state.show_difference;
    while (true) {
        const auto plots = static_cast<float>(layout.count);
        float space = ImGui::GetContentRegionAvail().y - layout.axis - (line + gap) * plots -
                      (layout.difference ? line + gap : 0);
        for (size_t i = 0; i < layout.count; ++i) {
            layout.lanes[i] = lanes_of(frame, layout, i);
            space -= lanes_height(layout.lanes[i]);
        }
        layout.difference_height =
            layout.difference ? std::floor(std::max(space * 0.22F, em(3))) : 0;
        layout.height = std::floor((space - layout.difference_height) / std::max(plots, 1.0F));
        if (layout.height >= (layout.parts ? least_with_parts : least)) return layout;
        if (layout.drop_one()) continue;
        layout.height = std::max(layout.height, em(2));
        return layout;
    }
}

/// A note beside the name of A that says why B is not drawn.
std::string note_on_b(const Frame& frame, const PlotLayout& layout) {
    const Selection& selection = frame.selection;
    if (selection.b && !selection.b->has_step) {
        return fmt::format("B, {}, holds no recorded step", selection.label_b.name);
    }
    return layout.count < frame.view.traces.size() ? "make the panel higher to see B" : "";
}

void draw_plots(Frame& frame) {
    const PlotLayout layout = lay_out_plots(frame);
    TimelineState& state = frame.state;
    const bool wants_difference = state.show_difference && frame.view.traces.size() == 2;
    state.has_room_for_modules = layout.modules || !state.show_modules;
    state.has_room_for_kernels = layout.kernels || !state.show_kernels;
    state.has_room_for_difference = layout.difference || !wants_difference;
    const float start = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    const float left = ImGui::GetCursorScreenPos().x;
    const float right = left + width;
    if (!ImPlot::BeginAlignedPlots("##aligned")) return;
    for (size_t i = 0; i < layout.count; ++i) {
        const bool last = i + 1 == layout.count && !layout.difference;
        draw_trace_header(frame, i, i == 0 ? note_on_b(frame, layout) : std::string());
        const TimelineLanes& lanes = layout.lanes[i];
        if (i == 0 && layout.kernels) draw_kernel_key(frame, start, width);
        draw_trace_plot(frame, i, lanes,
                        {layout.height, lanes_height(lanes), last ? layout.axis : 0});
    }
    if (layout.difference) {
        dim_text("B minus A");
        ImGui::SameLine(0, px(14));
        color_legend(
            std::array<NamedColor, 2>{{{palette().good, "B less"}, {palette().bad, "B more"}}});
        draw_difference_plot(frame, {.memory = layout.difference_height, .axis = layout.axis});
    }
    ImPlot::EndAlignedPlots();
    state.on_handle = frame.on_handle;
    const PlotInsets insets{state.plot_left_px - left, right - state.plot_right_px};
    if (insets != frame.time.insets) frame.events.time.insets = insets;
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_CHART_AREA,
    .purpose = "Memory over time, stacked by category, appears here for the traces A and B.",
    .error_title = "The timeline could not be drawn",
    .working = "Sampling the memory curve ..."};

}  // namespace

PanelEvents draw_timeline_panel(const PanelContext& context, TimelineState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const TimeWindow& window = workspace.time().window;
    const TimelineView* view = workspace.slots().timeline.view();
    if (!view || view->traces.empty()) {
        state.range.anchor_ns.reset();
        if (workspace.documents().empty()) {
            draw_first_page(context, events);
        } else {
            draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().timeline.error());
        }
        // Nothing can be sampled before the width is known.
        if (window.width_px == 0) set_width(ImGui::GetContentRegionAvail().x, window, events);
        return events;
    }
    Frame frame{context, workspace.selection(), workspace.time(), *view, state, events};
    // Fit and alignment change the window from outside the plots.
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    draw_toolbar(frame);
    handle_time_keys(context, events);
    draw_plots(frame);
    draw_tooltip(frame);
    clear_moment(frame);
    // Only what this panel changes: if A or B was chosen elsewhere in this frame, the window moves
    // for that reason too.
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, window, events);
    }
    set_width(static_cast<float>(frame.width_px), window, events);
    const int lane_px = state.show_kernels ? frame.width_px : 0;
    if (lane_px != workspace.time().lane_width_px) events.time.lane_width_px = lane_px;
    return events;
}

}  // namespace app
