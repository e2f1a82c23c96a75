#include "app/panels/blocks_panel.h"

#include "app/panels/blocks_details.h"
#include "app/panels/blocks_drawing.h"
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
#include <array>
#include <cmath>

namespace app {
namespace {

using profiler::BlockColoring;
using profiler::BlockOrder;
using profiler::BlocksView;
using Show = BlocksQuery::Show;

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Workspace& workspace;
    const Selection& selection;
    const TimeAxis& time;
    const BlocksView& view;
    BlocksState& state;
    PanelEvents& events;
    HoveredBlock hovered;

    BlocksQuery& query() const { return wanted_query(workspace, events); }
};

bool has_b(const Selection& selection) { return selection.b && selection.b->has_step; }

// ---- toolbar --------------------------------------------------------------------------------

struct Choice {
    const char* label;
    const char* tooltip;
};

/// Buttons side by side of which one is lit. Returns the one that was clicked, or `chosen`.
template <size_t N>
size_t choose(const std::array<Choice, N>& choices, size_t chosen) {
    size_t clicked = chosen;
    for (size_t i = 0; i < N; ++i) {
        if (i > 0) ImGui::SameLine(0, px(1));
        if (toggle_button(choices[i].label, i == chosen)) clicked = i;
        ImGui::SetItemTooltip("%s", choices[i].tooltip);
    }
    return clicked;
}

void draw_trace_switch(Frame& frame) {
    if (!has_b(frame.selection)) return;
    constexpr std::array<Choice, 3> kChoices{
        {{"A###show_a", "The blocks of A"},
         {"B###show_b", "The blocks of B, on the time axis of A"},
         {"A \xe2\x88\x92 B###show_difference",
          "The blocks of A; hollow where B does not hold them"}}};
    BlocksQuery& query = frame.query();
    query.show = static_cast<Show>(choose(kChoices, static_cast<size_t>(query.show)));
    ImGui::SameLine(0, px(10));
}

void draw_order_switch(Frame& frame) {
    constexpr std::array<Choice, 2> kChoices{
        {{"Stack###stack", "In the order of allocation: a block falls when one below it is freed"},
         {"Addresses###addresses",
          "Where the blocks lie; addresses that are never used are left "
          "out"}}};
    BlocksQuery& query = frame.query();
    const auto order = static_cast<BlockOrder>(choose(kChoices, static_cast<size_t>(query.order)));
    if (order != query.order) query.low_bytes = query.high_bytes = 0;
    query.order = order;
    ImGui::SameLine(0, px(10));
}

void draw_coloring(Frame& frame) {
    constexpr std::array kNames{"Category", "Layer", "Op", "Size"};
    BlocksQuery& query = frame.query();
    ImGui::SetNextItemWidth(em(6));
    const char* op = frame.selection.a->trace->ops.empty() ? "Line of code" : "Op";
    const auto name = [&](size_t i) { return i == 2 ? op : kNames[i]; };
    if (ImGui::BeginCombo("###color", name(static_cast<size_t>(query.coloring)))) {
        for (size_t i = 0; i < kNames.size(); ++i) {
            const bool chosen = i == static_cast<size_t>(query.coloring);
            if (ImGui::Selectable(name(i), chosen)) query.coloring = static_cast<BlockColoring>(i);
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("What the colours mean");
    ImGui::SameLine(0, px(10));
}

void draw_toolbar(Frame& frame) {
    draw_trace_switch(frame);
    draw_order_switch(frame);
    draw_coloring(frame);
    const float buttons = em(11.5F);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0F, ImGui::GetContentRegionAvail().x - buttons));
    BlocksState& state = frame.state;
    if (toggle_button(ICON_LIST " Live###list", state.show_live)) state.show_live ^= true;
    ImGui::SetItemTooltip("List what lives at the moment");
    ImGui::SameLine(0, px(4));
    if (toggle_button(ICON_MEMORY " Segments###segments", state.show_segments)) {
        state.show_segments ^= true;
    }
    ImGui::SetItemTooltip("Show the allocator's segments at the moment");
    ImGui::SameLine(0, px(4));
    if (ImGui::Button(ICON_EXPAND "###fit")) {
        frame.events.fit_time = true;
        frame.query().low_bytes = frame.query().high_bytes = 0;
    }
    ImGui::SetItemTooltip("Show the whole capture (F)");
}

/// Colours at the left, what is not drawn at the right.
void draw_legend(Frame& frame) {
    const ScopedFont font(fonts().text, kSmallSize);
    const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    const std::string& merged = frame.view.merged_text;
    std::string note = merged;
    if (frame.view.difference) note = "hollow: B does not hold it then   " + note;
    const float note_width = std::min(text_width(note), width * 0.6F);
    if (frame.workspace.blocks_query().coloring == BlockColoring::kCategory) {
        std::vector<profiler::Category> categories;
        for (const profiler::Category category : profiler::kCategoryStackOrder) {
            const auto index = static_cast<uint8_t>(category);
            const auto& used = frame.view.used_groups;
            if (std::find(used.begin(), used.end(), index) != used.end()) {
                categories.push_back(category);
            }
        }
        const auto clicked = category_legend(categories, frame.selection.category, 1e6F);
        if (clicked) frame.events.category = clicked;
        ImGui::SameLine(0, px(12));
    } else {
        draw_group_legend(frame.view, width - note_width - px(16));
    }
    const float room = left + width - ImGui::GetCursorPosX();
    note = fit_to(note, room);
    ImGui::SetCursorPosX(left + width - text_width(note));
    dim_text(note);
}

// ---- the plot -------------------------------------------------------------------------------

/// The mouse moves the time axis. With Ctrl it moves the vertical axis instead.
void setup_axes(Frame& frame, ImVec2 size) {
    const bool vertical = ImGui::GetIO().KeyCtrl;
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    BlocksState& state = frame.state;
    ImPlot::SetupAxes(nullptr, nullptr, quiet | (vertical ? ImPlotAxisFlags_Lock : 0),
                      quiet | (vertical ? 0 : ImPlotAxisFlags_Lock));
    setup_time_axis(frame.time.limits, state.start_ns, state.end_ns, size.x);
    setup_ticks(ImAxis_Y1, profiler::AxisUnit::kBytes, state.low_bytes, state.high_bytes, size.y);
    ImPlot::SetupAxisLinks(ImAxis_Y1, &state.low_bytes, &state.high_bytes);
    ImPlot::SetupAxisLimitsConstraints(ImAxis_Y1, 0, frame.view.max_bytes);
    ImPlot::SetupAxisZoomConstraints(ImAxis_Y1, std::min(4096.0, frame.view.max_bytes),
                                     frame.view.max_bytes);
    ImPlot::SetupFinish();
}

BlockMarks marks_of(const Frame& frame) {
    BlockMarks marks{.category = frame.selection.category};
    const auto& tensor = frame.selection.tensor;
    const size_t shown = shown_trace(frame.selection, frame.workspace.blocks_query());
    if (!tensor || tensor->in_b != (shown == 1)) return marks;
    marks.selected = tensor->allocation;
    const auto sources = block_sources(frame.selection);
    if (shown < sources.size()) marks.family = profiler::family_of(sources[shown], marks.selected);
    return marks;
}

/// The peak as a line across the plot. In address order, heights are no sums.
void draw_peak_line(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    if (frame.workspace.blocks_query().order != BlockOrder::kStack) return;
    for (const profiler::PeakMarker& peak : frame.view.bands.peaks) {
        const auto bytes = static_cast<double>(peak.bytes);
        if (bytes < map.y_min || bytes > map.y_max) continue;
        const float y = std::round(map.y(bytes));
        const ImU32 color = with_alpha(palette().text, 0.45F);
        for (float x = map.corner.x; x < map.right(); x += px(8)) {
            draw->AddRectFilled({x, y}, {x + px(4), y + px(1)}, color);
        }
    }
    draw_peaks(draw, map, frame.view.bands);
}

void draw_moment(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    const double moment_ns = moment_of(frame.selection);
    if (moment_ns < map.x_min || moment_ns > map.x_max) return;
    const float x = std::round(map.x(moment_ns));
    draw->AddRectFilled({x, map.corner.y}, {x + px(1), map.bottom()}, palette().text);
    const float size = px(5), bottom = map.bottom();
    draw->AddTriangleFilled({x - size, bottom}, {x + size + 1, bottom}, {x, bottom - 1.4F * size},
                            palette().text);
}

/// A click selects the block under the mouse, and its time is the moment. A double click shows all.
void handle_mouse(Frame& frame) {
    if (!ImPlot::IsPlotHovered()) return;
    const double time_ns = ImPlot::GetPlotMousePos().x;
    frame.events.cursor_ns = time_ns;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.fit_time = true;
        frame.query().low_bytes = frame.query().high_bytes = 0;
        return;
    }
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                         std::abs(drag.x) + std::abs(drag.y) < px(4);
    if (!clicked) return;
    frame.events.moment_ns = std::optional(time_ns);
    if (frame.hovered.allocation().valid()) {
        pick_block(frame.workspace, frame.hovered.allocation(), frame.events);
    } else {
        frame.events.clear_tensor = true;
    }
}

void draw_hovered(const Frame& frame) {
    if (frame.hovered.allocation().valid()) {
        return draw_block_readout(frame.workspace, frame.hovered.allocation());
    }
    const profiler::MergedBlocks* merged = frame.hovered.merged;
    if (!merged || !ImGui::BeginTooltip()) return;
    bold_text(merged->count > 0
                  ? fmt::format("{} blocks, {}", profiler::format_count(merged->count),
                                profiler::format_bytes(
                                    std::llround(merged->high_bytes - merged->low_bytes)))
                  : std::string("Blocks below a pixel"));
    dim_text("Zoom in to see them one by one: wheel for time, Ctrl + wheel for bytes");
    ImGui::EndTooltip();
}

/// Left and right go to the change of memory before and after the moment.
void step_moment(Frame& frame, int direction) {
    const size_t shown = shown_trace(frame.selection, frame.workspace.blocks_query());
    const auto sources = block_sources(frame.selection);
    if (shown >= sources.size()) return;
    const profiler::TimeMap map =
        shown == 1 && frame.time.alignment ? frame.time.alignment->second : profiler::TimeMap();
    const profiler::BlockHistory& history = *sources[shown].history;
    const int64_t now_ns = std::llround(map.to_own(moment_of(frame.selection)));
    const uint32_t rank =
        direction > 0 ? history.first_change_after(now_ns) : history.first_change_at(now_ns) - 1;
    if (rank >= history.change_count()) return;  // also before the first one
    frame.events.moment_ns =
        std::optional(map.to_shared(static_cast<double>(history.time_ns(rank))));
}

void handle_keys(Frame& frame) {
    if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows) || ImGui::GetIO().WantTextInput) {
        return;
    }
    if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) step_moment(frame, -1);
    if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) step_moment(frame, 1);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape)) frame.events.moment_ns = std::optional<double>();
}

void draw_plot(Frame& frame, ImVec2 size) {
    if (!ImPlot::BeginPlot("##blocks", size, kPlainPlot)) return;
    setup_axes(frame, size);
    const PlotMap map = current_plot_map();
    frame.query().width_px = static_cast<int>(map.size.x);
    frame.query().height_px = static_cast<int>(map.size.y);
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    const std::optional<ImVec2> mouse =
        ImPlot::IsPlotHovered() ? std::optional(ImGui::GetMousePos()) : std::nullopt;
    draw_phases(draw, map, frame.view.bands, false);
    frame.hovered = draw_blocks(draw, map, frame.view, marks_of(frame), mouse);
    draw_phases(draw, map, frame.view.bands, true);
    draw_peak_line(frame, draw, map);
    if (frame.selection.range) draw_range(draw, map, *frame.selection.range);
    draw_moment(frame, draw, map);
    handle_mouse(frame);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    draw_hovered(frame);
}

// ---- the layout -----------------------------------------------------------------------------

void draw_minimap_row(Frame& frame) {
    const ImVec2 size{ImGui::GetContentRegionAvail().x, px(26)};
    frame.query().minimap_px = static_cast<int>(size.x);
    const TimeWindow& window = frame.time.window;
    const auto wanted_ns =
        draw_minimap(frame.view, frame.time.limits, window, moment_of(frame.selection), size);
    if (!wanted_ns) return;
    const double length_ns = window.end_ns - window.start_ns;
    const double most_ns =
        std::max(frame.time.limits.start_ns, frame.time.limits.end_ns - length_ns);
    const double start_ns =
        std::clamp(*wanted_ns - length_ns / 2, frame.time.limits.start_ns, most_ns);
    set_range(start_ns, start_ns + length_ns, window, frame.events);
}

/// What stands in the place of the segments until they are there.
void draw_segment_area(Frame& frame, float height) {
    const ScopedChild area("##segment_area", {-1, height});
    if (!area) return;
    frame.query().segment_px = segment_width(ImGui::GetContentRegionAvail().x);
    const auto& slot = frame.workspace.slots().segments;
    if (!slot.view()) {
        slot.error().empty() ? working_line("Drawing the segments ...") : dim_text(slot.error());
        return;
    }
    if (!slot.view()->has_segments) {
        dim_text("No segments: this allocator holds no more than its blocks.");
        return;
    }
    draw_segments(frame.context, *slot.view(), frame.events);
}

float segment_height(const Frame& frame, float space) {
    if (!frame.state.show_segments || space < em(16)) return 0;
    const profiler::SegmentMapView* view = frame.workspace.slots().segments.view();
    const float line = ImGui::GetTextLineHeightWithSpacing();
    if (view && !view->has_segments) return line;
    return std::floor(std::clamp(space * 0.34F, em(5), space - em(10)));
}

void draw_left(Frame& frame) {
    draw_minimap_row(frame);
    const float gap = ImGui::GetStyle().ItemSpacing.y;
    const float space = ImGui::GetContentRegionAvail().y;
    const float below = segment_height(frame, space);
    draw_plot(frame, {-1, std::max(em(4), space - (below > 0 ? below + gap : 0))});
    if (below > 0) draw_segment_area(frame, below);
}

void draw_live_area(Frame& frame) {
    const auto& slot = frame.workspace.slots().live_blocks;
    if (slot.view()) return draw_live_blocks(frame.context, *slot.view(), frame.events);
    slot.error().empty() ? working_line("Listing the live blocks ...") : dim_text(slot.error());
}

void draw_areas(Frame& frame) {
    const float width = ImGui::GetContentRegionAvail().x;
    const bool list = frame.state.show_live && width > em(44);
    const float list_width = list ? std::clamp(width * 0.28F, em(20), em(34)) : 0;
    {
        const ScopedChild left("##left", {list ? width - list_width - px(10) : -1.0F, -1}, 0,
                               ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
        if (left) draw_left(frame);
    }
    if (!list) return;
    ImGui::SameLine(0, px(10));
    const ScopedChild right("##right", {-1, -1});
    if (right) draw_live_area(frame);
}

/// From the plot's axes to what other panels and the view need to know.
void report_axes(Frame& frame, double start_ns, double end_ns) {
    const BlocksState& state = frame.state;
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, frame.time.window, frame.events);
    }
    const BlocksQuery& now = frame.workspace.blocks_query();
    BlocksQuery& query = frame.query();
    if (query.low_bytes != now.low_bytes || query.high_bytes != now.high_bytes) return;
    const bool all = state.low_bytes <= 0 && state.high_bytes >= frame.view.max_bytes * 0.9999;
    query.low_bytes = all ? 0 : state.low_bytes;
    query.high_bytes = all ? 0 : state.high_bytes;
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_MEMORY,
    .purpose = "Every block of memory appears here from its allocation to its free.",
    .error_title = "The blocks could not be drawn",
    .working = "Laying out the blocks ..."};

}  // namespace

PanelEvents draw_blocks_panel(const PanelContext& context, BlocksState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const BlocksView* view = workspace.slots().blocks.view();
    if (!view || view->max_bytes <= 0) {
        draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().blocks.error());
        // Nothing can be laid out before the size is known.
        BlocksQuery& query = wanted_query(workspace, events);
        const ImVec2 space = ImGui::GetContentRegionAvail();
        if (query.width_px == 0) query.width_px = static_cast<int>(space.x);
        if (query.height_px == 0) query.height_px = static_cast<int>(std::max(space.y, 1.0F));
        return events;
    }
    const TimeWindow& window = workspace.time().window;
    const BlocksQuery& query = workspace.blocks_query();
    Frame frame{context, workspace, workspace.selection(), workspace.time(), *view, state,
                events,  {}};
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const bool has_part = query.high_bytes > query.low_bytes;
    state.low_bytes = has_part ? query.low_bytes : 0;
    state.high_bytes = has_part ? query.high_bytes : view->max_bytes;
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    draw_toolbar(frame);
    draw_legend(frame);
    handle_keys(frame);
    draw_areas(frame);
    report_axes(frame, start_ns, end_ns);
    return events;
}

}  // namespace app
