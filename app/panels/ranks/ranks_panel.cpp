#include "app/panels/ranks/ranks_panel.h"

#include "app/panels/parts/unfilled.h"
#include "app/panels/ranks/ranks_drawing.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/text_table.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace app {
namespace {

using profiler::RankLane;
using profiler::RanksView;

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_SERVER,
    .purpose = "The ranks of a distributed run appear here above each other.",
    .error_title = "The ranks could not be drawn",
    .working = "Joining the ranks ..."};

constexpr float kNames_em = 9.5F;  // width of the column of names

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Selection& selection;
    const TimeAxis& time;
    const RanksView& view;
    const RanksOfRun& ranks;
    RanksState& state;
    PanelEvents& events;
    std::vector<LanePlace> places;
    const profiler::CollectiveSpan* hovered = nullptr;
    profiler::JoinedSpan joined;  // the hovered one
};

// ---- above the lanes ------------------------------------------------------------------------

void draw_switches(Frame& frame) {
    const auto choice = [&](const char* label, RanksShown shown, const char* tip) {
        if (toggle_button(label, frame.state.shown == shown)) frame.state.shown = shown;
        ImGui::SetItemTooltip("%s", tip);
        ImGui::SameLine(0, px(3));
    };
    choice("Memory###by_class", RanksShown::kMemory, "Memory of each rank over time, by class");
    choice("Difference###difference", RanksShown::kDifference,
           "What a rank holds more or less than the median rank at that time");
    choice("Peaks###peaks", RanksShown::kPeaks, "A table of the ranks at their peaks");
    choice("Times###times", RanksShown::kTimes,
           "A table of the last step that all ranks have whole: compute, exposed communication, "
           "idle, waits");
    ImGui::SameLine(0, px(8));
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.time.fit = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
    ImGui::SameLine(0, px(10));
    // Level with the text of the buttons.
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);
    const bool is_picture =
        frame.state.shown == RanksShown::kMemory || frame.state.shown == RanksShown::kDifference;
    if (is_picture) draw_collective_legend(frame.view.kinds);
    help_marker(
        "One lane a rank, on the clock of A. Below the memory stand the collectives: point at one "
        "to see it on all ranks. A and B make a rank that of the other panels. The axis ends where "
        "A and B do.\n" +
        frame.view.clocks);
}

void draw_category_key(Frame& frame) {
    if (frame.state.shown != RanksShown::kMemory) return;
    const auto clicked = category_legend(frame.view.categories, frame.selection.category,
                                         ImGui::GetContentRegionAvail().x);
    if (clicked) frame.events.selection.category = clicked;
}

void draw_headline(const Frame& frame) {
    const ScopedFont bold(fonts().bold);
    ImGui::PushTextWrapPos(0);
    text(frame.view.headline);
    ImGui::PopTextWrapPos();
}

// ---- lanes ----------------------------------------------------------------------------------

/// The name of a rank, its peak, and the buttons that make it A or B.
void draw_name(Frame& frame, size_t index) {
    const RankLane& lane = frame.view.lanes[index];
    const DocumentPtr& document = frame.ranks.documents[index];
    const Selection& selection = frame.selection;
    const ScopedId id(static_cast<int>(index));
    const ImVec2 start = ImGui::GetCursorPos();
    const bool is_a = document == selection.a, is_b = document == selection.b;
    {
        const ScopedFont bold(fonts().bold);
        text(fmt::format("rank {}", lane.rank));
    }
    ImGui::SetCursorPos({start.x + em(kNames_em) - em(4.2F), start.y});
    if (letter_button("A", is_a, recipe_color(selection.look_a.color))) {
        frame.events.traces.set_a = document;
    }
    ImGui::SameLine(0, px(3));
    if (letter_button("B", is_b, recipe_color(selection.look_b.color))) {
        frame.events.traces.set_b = is_b ? nullptr : document;
    }
    ImGui::SetCursorPos({start.x, start.y + ImGui::GetTextLineHeight() + px(4)});
    text(lane.peak);
    if (lane.difference.empty()) return;
    ImGui::SameLine(0, px(6));
    const ScopedFont small(fonts().text, kSmallSize);
    colored_text(tone_color(lane.difference_tone), lane.difference);
}

/// A click sets the moment of all panels, Shift + drag a range, and a vertical drag scrolls.
void handle_mouse(Frame& frame) {
    const bool was_dragging = frame.state.range.anchor_ns.has_value();
    drag_range(frame.state.range, frame.events);
    if (!ImPlot::IsPlotHovered() || was_dragging) return;
    const double time_ns = ImPlot::GetPlotMousePos().x;
    frame.events.time.cursor_ns = time_ns;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.time.fit = true;
    } else if (is_plain_click()) {
        frame.events.selection.moment_ns = std::optional(time_ns);
    }
    if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0) && !frame.state.range.anchor_ns) {
        ImGui::SetScrollY(ImGui::GetScrollY() - ImGui::GetIO().MouseDelta.y);
    }
}

PlotMap draw_lanes(Frame& frame, ImVec2 size) {
    const ScopedPlotPadding padding({0, 0});
    if (!ImPlot::BeginPlot("##ranks", size, kPlainPlot)) return {};
    setup_lane_axes(frame.time.limits, frame.state.range, frame.state.start_ns, frame.state.end_ns,
                    size.x);
    const PlotMap map = current_plot_map();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    frame.hovered = draw_ranks(draw, map, frame.view,
                               {.places = frame.places,
                                .shows_difference = frame.state.shown == RanksShown::kDifference,
                                .category = frame.selection.category,
                                .is_hovered = ImPlot::IsPlotHovered()});
    if (frame.hovered && frame.hovered->count == 1) {
        frame.joined = read_collective(frame.view, *frame.hovered);
        draw_joined(draw, map, frame.places, frame.joined);
    }
    if (frame.selection.range) draw_range(draw, map, *frame.selection.range);
    if (frame.selection.moment_ns) draw_moment(draw, map, *frame.selection.moment_ns);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
    handle_mouse(frame);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    frame.state.plot = map;
    return map;
}

/// Names at the left and the plot beside them scroll together; the labels of the axis stay below.
void draw_picture(Frame& frame) {
    const float axis = em(1.2F), names = em(kNames_em) + px(8);
    PlotMap map;
    {
        const ScopedChild lanes("##lanes", {0, -axis}, 0, ImGuiWindowFlags_NoScrollWithMouse);
        if (!lanes) return;
        frame.places = place_lanes(frame.view, ImGui::GetContentRegionAvail().y);
        const ImVec2 start = ImGui::GetCursorPos();
        const LanePlace& last = frame.places.back();
        ImGui::SetCursorPos({start.x + names, start.y});
        const float width = std::max(ImGui::GetContentRegionAvail().x, em(6));
        map = draw_lanes(frame, {width, last.top + last.height});
        for (size_t i = 0; i < frame.places.size(); ++i) {
            ImGui::SetCursorPos({start.x, start.y + frame.places[i].top + px(2)});
            draw_name(frame, i);
        }
        ImGui::SetCursorPos({start.x, start.y + last.top + last.height});
        ImGui::Dummy({});
        // Over the plot the wheel zooms.
        if (ImGui::IsWindowHovered() && ImGui::GetMousePos().x < map.corner.x) {
            ImGui::SetScrollY(ImGui::GetScrollY() - ImGui::GetIO().MouseWheel * em(3));
        }
    }
    if (map.size.x <= 0) return;
    draw_time_labels(map, frame.state.start_ns, frame.state.end_ns);
    frame.events.queries.ranks = RanksQuery{static_cast<int>(map.size.x)};
}

// ---- tables ---------------------------------------------------------------------------------

/// A click on a row makes its rank B.
void draw_table(Frame& frame, const profiler::TextTable& table) {
    if (table.rows.empty()) {
        return empty_state(ICON_CLOCK, "No times are known",
                           "Kernels or collectives of measured ranks would show them.");
    }
    std::vector<const char*> marks;
    for (const DocumentPtr& document : frame.ranks.documents) {
        const bool is_a = document == frame.selection.a, is_b = document == frame.selection.b;
        marks.push_back(is_a ? "A" : is_b ? "B" : "");
    }
    if (const auto row = draw_text_table(table, marks)) {
        const DocumentPtr& document = frame.ranks.documents[*row];
        if (document != frame.selection.a) frame.events.traces.set_b = document;
    }
}

void draw_filled(Frame& frame) {
    draw_switches(frame);
    draw_headline(frame);
    draw_category_key(frame);
    switch (frame.state.shown) {
        case RanksShown::kMemory:
        case RanksShown::kDifference:
            return draw_picture(frame);
        case RanksShown::kPeaks:
            return draw_table(frame, frame.ranks.peaks);
        case RanksShown::kTimes:
            return draw_table(frame, frame.ranks.times);
    }
}

/// A is no rank, or the panel has not been drawn yet.
void draw_without_ranks(const PanelContext& context, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const Selection& selection = workspace.selection();
    events.queries.ranks =
        RanksQuery{std::max(1, static_cast<int>(ImGui::GetContentRegionAvail().x - em(kNames_em)))};
    const bool is_rank = !ranks_beside(selection.a, workspace.documents()).empty();
    if (!selection.a || is_rank) {
        const std::string& error = workspace.slots().rank_run.error();
        return draw_unfilled(kUnfilled, selection,
                             error.empty() ? workspace.slots().ranks.error() : error);
    }
    empty_state(ICON_SERVER, "A is not a rank of a distributed run",
                "Record one with temposcope run -o FOLDER -- torchrun PROGRAM, and open the "
                "folder.");
}

}  // namespace

PanelEvents draw_ranks_panel(const PanelContext& context, RanksState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const RanksView* view = workspace.slots().ranks.view();
    const RanksOfRun* ranks = workspace.slots().rank_run.view();
    if (!view || !ranks || view->lanes.size() != ranks->documents.size()) {
        draw_without_ranks(context, events);
        return events;
    }
    const TimeWindow& window = workspace.time().window;
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    Frame frame{
        context, workspace.selection(), workspace.time(), *view, *ranks, state, events, {}, nullptr,
        {}};
    draw_filled(frame);
    if (frame.hovered && !state.range.anchor_ns) {
        draw_collective_tooltip(*frame.hovered, frame.joined);
    }
    handle_time_keys(context, events);
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, window, events);
    }
    return events;
}

}  // namespace app
