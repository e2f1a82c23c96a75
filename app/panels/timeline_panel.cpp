#include "app/panels/timeline_panel.h"

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
};

const char* letter(size_t source) { return source == 0 ? "A" : "B"; }

/// Buttons right of the legend.
void draw_switches(Frame& frame) {
    if (frame.view.traces.size() == 2) {
        align_button(frame.time.window, frame.events);
        ImGui::SameLine(0, px(4));
        bool& difference = frame.state.show_difference;
        if (toggle_button("B - A###difference", difference)) difference = !difference;
        ImGui::SetItemTooltip("Show the difference B - A below");
        ImGui::SameLine(0, px(4));
    }
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.fit_time = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
}

void draw_toolbar(Frame& frame) {
    const float switches = em(frame.view.traces.size() == 2 ? 8.6F : 2.2F);
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
    if (clicked) frame.events.category = clicked;
    ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY(), below));
}

void draw_trace_header(const Frame& frame, size_t source, std::string_view note) {
    const TimelineTrace& trace = frame.view.traces[source];
    const Selection& selection = frame.selection;
    const DocumentLook& look = source == 0 ? selection.look_a : selection.look_b;
    letter_badge(letter(source), recipe_color(look.color));
    ImGui::SameLine(0, px(7));
    bold_text(fit_to(look.name, em(18)));
    ImGui::SameLine(0, px(10));
    dim_text(trace.summary);
    if (source == 1 && !frame.view.alignment_note.empty()) {
        ImGui::SameLine();
        help_marker(frame.view.alignment_note);
    }
    if (note.empty()) return;
    ImGui::SameLine(0, px(10));
    dim_text(fit_to(note, ImGui::GetContentRegionAvail().x));
}

/// The axes are the same in all plots of the panel.
void setup_axes(Frame& frame, profiler::AxisUnit unit, double y_min, double y_max, ImVec2 size,
                bool with_time_labels) {
    const bool selecting =
        ImGui::GetIO().KeyShift;  // Shift + drag selects a range instead of panning
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    ImPlot::SetupAxes(nullptr, nullptr,
                      quiet | (selecting ? ImPlotAxisFlags_Lock : 0) |
                          (with_time_labels ? 0 : ImPlotAxisFlags_NoTickLabels),
                      quiet | kFixedAxis);
    setup_time_axis(frame.time.limits, frame.state.start_ns, frame.state.end_ns,
                    static_cast<float>(frame.time.window.width_px));
    setup_ticks(ImAxis_Y1, unit, y_min, y_max, size.y);
    ImPlot::SetupAxisLimits(ImAxis_Y1, y_min, y_max, ImPlotCond_Always);
    ImPlot::SetupFinish();
}

/// A click without a drag sets the moment. The first click of a double click did, so the second one
/// takes that back.
void click_moment(Frame& frame, double time_ns) {
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.moment_ns = frame.state.moment_before_click_ns;
        return;
    }
    const ImGuiIO& io = ImGui::GetIO();
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                         io.MouseClickedLastCount[ImGuiMouseButton_Left] == 1 &&
                         std::abs(drag.x) + std::abs(drag.y) < px(4);
    if (!clicked || io.KeyShift || frame.state.range_anchor_ns) return;
    frame.state.moment_before_click_ns = frame.selection.moment_ns;
    frame.events.moment_ns = std::optional(time_ns);
}

/// A click beside the plots forgets the moment.
void clear_moment(Frame& frame) {
    const bool beside = ImGui::IsWindowHovered() && !ImGui::IsAnyItemHovered();
    if (frame.selection.moment_ns && beside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        frame.events.moment_ns.emplace(std::nullopt);
    }
}

/// Cursor, double click, and the start of Shift + drag.
void handle_mouse(Frame& frame) {
    const double time_ns = ImPlot::GetPlotMousePos().x;
    const bool hovered = ImPlot::IsPlotHovered();
    if (hovered) {
        frame.events.cursor_ns = time_ns;
        click_moment(frame, time_ns);
    }
    // ImPlot cannot fit by itself, because it does not know the data of the steps.
    if ((hovered || ImPlot::IsAxisHovered(ImAxis_X1)) &&
        ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.fit_time = true;
    }
    if (hovered && ImGui::GetIO().KeyShift && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        frame.state.range_anchor_ns = time_ns;
    }
}

/// Selects from the anchor to the mouse. The drag continues outside the plot and ends where the
/// button is released.
void drag_range(Frame& frame) {
    TimelineState& state = frame.state;
    if (!state.range_anchor_ns) return;
    const double time_ns = std::clamp(ImPlot::GetPlotMousePos().x, state.start_ns, state.end_ns);
    const profiler::TimeRange range{std::min(*state.range_anchor_ns, time_ns),
                                    std::max(*state.range_anchor_ns, time_ns)};
    // A click without a drag clears the range.
    const bool dragged =
        ImPlot::PlotToPixels(range.end_ns, 0).x - ImPlot::PlotToPixels(range.start_ns, 0).x > px(3);
    frame.events.range = dragged ? std::optional(range) : std::nullopt;
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) state.range_anchor_ns.reset();
}

void draw_overlays(Frame& frame, ImDrawList* draw, const PlotMap& map) {
    if (frame.selection.range) draw_range(draw, map, *frame.selection.range);
    if (frame.selection.moment_ns) draw_moment(draw, map, *frame.selection.moment_ns);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
}

void draw_trace_plot(Frame& frame, size_t source, ImVec2 size, bool with_time_labels) {
    const ScopedId id(static_cast<int>(source));
    const TimelineTrace& trace = frame.view.traces[source];
    if (!ImPlot::BeginPlot("##memory", size, kPlainPlot)) return;
    // Leaves room for the strip of phase names above the highest value.
    const int ticks = std::max(2, static_cast<int>(size.y / px(34)));
    const double strip = phase_strip_height() / std::max(1.0F, size.y - px(8));
    const double top = profiler::axis_end(profiler::AxisUnit::kBytes, frame.view.max_bytes,
                                          0.06 + strip / (1 - std::min(0.5, strip)), ticks);
    setup_axes(frame, profiler::AxisUnit::kBytes, 0, top, size, with_time_labels);
    frame.width_px = static_cast<int>(ImPlot::GetPlotSize().x);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    draw_phases(draw, map, trace, true);
    draw_stack(draw, map, trace, frame.selection.category);
    draw_reserved_line(draw, map, trace);
    const auto& tensor = frame.selection.tensor;
    if (tensor && tensor->in_b == (source == 1)) draw_tensor_lifetime(draw, map, *tensor);
    const auto& activity = frame.selection.activity;
    if (activity && activity->in_b == (source == 1)) draw_activity(draw, map, *activity);
    draw_peaks(draw, map, trace);
    handle_mouse(frame);
    if (source == 0) drag_range(frame);
    draw_overlays(frame, draw, map);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
}

void draw_difference_plot(Frame& frame, ImVec2 size) {
    if (!ImPlot::BeginPlot("##difference", size, kPlainPlot)) return;
    const double end = std::max(1.0, frame.view.max_difference_bytes * 1.15);
    setup_axes(frame, profiler::AxisUnit::kBytes, -end, end, size, true);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    draw_difference(draw, map, frame.view.traces[0].edge_ns, frame.view.difference_bytes);
    handle_mouse(frame);
    draw_overlays(frame, draw, map);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
}

/// The tooltip: both traces at the cursor, with a row per category and a column per trace.
void draw_readout(const Frame& frame) {
    if (!frame.events.cursor_ns || frame.state.range_anchor_ns || !ImGui::BeginTooltip()) return;
    const size_t count = frame.view.traces.size();
    std::vector<profiler::TimelineReadout> readouts;
    for (size_t i = 0; i < count; ++i) {
        readouts.push_back(frame.context.workspace.read_timeline(i, *frame.events.cursor_ns));
    }
    const auto bytes_of = [&](size_t source, profiler::Category category) -> std::string {
        for (const auto& row : readouts[source].rows) {
            if (row.category == category) return row.text;
        }
        return "–";
    };
    if (ImGui::BeginTable("##readout", static_cast<int>(count) + 1,
                          ImGuiTableFlags_SizingFixedFit)) {
        const auto row = [&](auto&& first, auto&& cell) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            first();
            for (size_t i = 0; i < count; ++i) {
                ImGui::TableNextColumn();
                ImGui::Dummy({em(5), 0});  // numbers end on one line in every frame
                ImGui::SameLine(0, 0);
                ImGui::SetCursorPosX(ImGui::GetCursorPosX() - em(5));
                cell(i);
            }
        };
        row([&] { dim_text(readouts[0].time_text); },
            [&](size_t i) { right_text(fmt::format("{}", letter(i))); });
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
    ImGui::EndTooltip();
}

/// What fits into the panel. If there is too little room, the difference is left out first, then B.
struct PlotLayout {
    size_t count = 0;  // number of traces drawn
    bool difference = false;
    float height = 0;             // of the plot of a trace, without the labels of the time axis
    float difference_height = 0;  // of the plot of the difference, without those labels
    float axis = 0;               // height of the labels, which only the last plot has
};

PlotLayout lay_out_plots(const Frame& frame) {
    const float least = em(5);
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float gap = ImGui::GetStyle().ItemSpacing.y;
    PlotLayout layout{.count = frame.view.traces.size(), .axis = em(1.6F)};
    layout.difference = layout.count == 2 && frame.state.show_difference;
    while (true) {
        const auto plots = static_cast<float>(layout.count);
        const float space = ImGui::GetContentRegionAvail().y - layout.axis - (line + gap) * plots -
                            (layout.difference ? line + gap : 0);
        layout.difference_height =
            layout.difference ? std::floor(std::max(space * 0.22F, em(3))) : 0;
        layout.height = std::floor((space - layout.difference_height) / std::max(plots, 1.0F));
        if (layout.height >= least) return layout;
        if (layout.difference) {
            layout.difference = false;
        } else if (layout.count > 1) {
            --layout.count;
        } else {
            layout.height = std::max(layout.height, em(2));
            return layout;
        }
    }
}

/// A note beside the name of A that says why B is not drawn.
std::string note_on_b(const Frame& frame, const PlotLayout& layout) {
    const Selection& selection = frame.selection;
    if (selection.b && !selection.b->has_step) {
        return fmt::format("B, {}, holds no recorded step", selection.look_b.name);
    }
    return layout.count < frame.view.traces.size() ? "make the panel higher to see B" : "";
}

void draw_plots(Frame& frame) {
    const PlotLayout layout = lay_out_plots(frame);
    if (!ImPlot::BeginAlignedPlots("##aligned")) return;
    for (size_t i = 0; i < layout.count; ++i) {
        const bool last = i + 1 == layout.count && !layout.difference;
        draw_trace_header(frame, i, i == 0 ? note_on_b(frame, layout) : std::string());
        draw_trace_plot(frame, i, {-1, layout.height + (last ? layout.axis : 0)}, last);
    }
    if (layout.difference) {
        dim_text("B minus A");
        draw_difference_plot(frame, {-1, layout.difference_height + layout.axis});
    }
    ImPlot::EndAlignedPlots();
}

void handle_keys(Frame& frame) {
    const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows);
    if (hovered || ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) {
        move_time_with_keys(frame.time, frame.context.cursor_ns, frame.events);
    }
    if (!ImGui::IsWindowFocused()) return;
    const auto& range = frame.selection.range;
    if (range && ImGui::IsKeyPressed(ImGuiKey_Z)) {
        frame.state.start_ns = range->start_ns;
        frame.state.end_ns = range->end_ns;
    }
    if (range && ImGui::IsKeyPressed(ImGuiKey_Escape)) {
        frame.events.range = std::optional<profiler::TimeRange>();
    }
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
        state.range_anchor_ns.reset();
        draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().timeline.error());
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
    handle_keys(frame);
    draw_plots(frame);
    draw_readout(frame);
    clear_moment(frame);
    // Only what this panel changes: if A or B was chosen elsewhere in this frame, the window moves
    // for that reason too.
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, window, events);
    }
    set_width(static_cast<float>(frame.width_px), window, events);
    return events;
}

}  // namespace app
