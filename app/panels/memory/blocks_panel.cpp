#include "app/panels/memory/blocks_panel.h"

#include "app/panels/memory/blocks_details.h"
#include "app/panels/memory/blocks_drawing.h"
#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/jobs/wake.h"
#include "profiler/trace/units.h"
#include "profiler/view/memory/blocks_view.h"

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

    BlocksQuery& query() const { return wanted_query(context, events); }
};

// ---- toolbar and legend ---------------------------------------------------------------------

void draw_trace_switch(const Selection& selection, BlocksQuery& query) {
    if (!selection.b || !selection.b->has_step) return;
    choose_one<Show>(query.show,
                     {{"A###show_a", "The blocks of A", Show::kA},
                      {"B###show_b", "The blocks of B, on the time axis of A", Show::kB},
                      {"A, not in B###show_difference",
                       "The blocks of A; hollow where B does not hold them", Show::kDifference}},
                     px(1));
    ImGui::SameLine(0, px(10));
}

void draw_order_switch(BlocksQuery& query) {
    if (choose_one<BlockOrder>(
            query.order,
            {{"Stack###stack",
              "In the order of allocation: a block falls when one below it is freed",
              BlockOrder::kStack},
             {"Addresses###addresses",
              "Where the blocks lie; addresses that are never used are left out",
              BlockOrder::kAddress}},
            px(1))) {
        query.low_bytes = query.high_bytes = 0;
    }
    ImGui::SameLine(0, px(10));
}

void draw_coloring(const Selection& selection, BlocksQuery& query) {
    constexpr std::array kNames{"Category", "Layer", "Op", "Size"};
    ImGui::SetNextItemWidth(em(8));
    const char* op = selection.a->trace->ops.empty() ? "Line of code" : "Op";
    const auto name = [&](size_t i) { return i == 2 ? op : kNames[i]; };
    const auto coloring = static_cast<size_t>(coloring_of(selection, query));
    if (ImGui::BeginCombo("###color", name(coloring))) {
        for (size_t i = 0; i < kNames.size(); ++i) {
            const bool chosen = i == coloring;
            if (ImGui::Selectable(name(i), chosen)) query.coloring = static_cast<BlockColoring>(i);
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("What the colours mean");
    ImGui::SameLine(0, px(10));
}

/// What is shown and in which colours, and the switches of the parts of the panel.
void draw_blocks_toolbar(const PanelContext& context, BlocksState& state, PanelEvents& events) {
    const Selection& selection = context.workspace.selection();
    BlocksQuery& query = wanted_query(context, events);
    draw_trace_switch(selection, query);
    draw_order_switch(query);
    draw_coloring(selection, query);
    const float room = ImGui::GetContentRegionAvail().x;
    const bool with_words = room >= em(20.2F);
    const float buttons = em(with_words ? 20.2F : 12);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, room - buttons));
    if (toggle_button(state.is_playing ? ICON_STOP "###play" : ICON_PLAY "###play",
                      state.is_playing)) {
        state.is_playing ^= true;
    }
    ImGui::SetItemTooltip("Move the moment through the visible part");
    ImGui::SameLine(0, px(4));
    const bool lists = state.show_live && !query.what_if.is_open;
    if (toggle_button(with_words ? ICON_LIST " Live###list" : ICON_LIST "###list", lists)) {
        state.show_live = !lists;
        query.what_if.is_open = false;
    }
    ImGui::SetItemTooltip("List what lives at the moment");
    ImGui::SameLine(0, px(4));
    if (toggle_button(with_words ? ICON_SLIDERS " What if###what_if" : ICON_SLIDERS "###what_if",
                      query.what_if.is_open)) {
        query.what_if.is_open ^= true;
        query.what_if.shows_map = false;
    }
    ImGui::SetItemTooltip("What other settings of the allocator would do");
    ImGui::SameLine(0, px(4));
    switch_button({with_words ? ICON_MEMORY " Segments###segments" : ICON_MEMORY "###segments",
                   "Show the allocator's segments at the moment", state.has_room_for_segments},
                  state.show_segments);
    ImGui::SameLine(0, px(4));
    if (ImGui::Button(ICON_EXPAND "###fit")) {
        events.time.fit = true;
        query.low_bytes = query.high_bytes = 0;
    }
    ImGui::SetItemTooltip("Show the whole capture (F)");
}

/// Colours at the left, what is not drawn at the right.
void draw_blocks_legend(const PanelContext& context, const BlocksView& view, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const Selection& selection = workspace.selection();
    const ScopedFont font(fonts().text, kSmallSize);
    const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    const std::string& merged = view.merged_text;
    std::string note = merged;
    if (view.difference) note = "hollow or pale: not in B at that time   " + note;
    const float note_width = std::min(text_width(note), width * 0.6F);
    if (coloring_of(selection, context.views.queries.blocks) == BlockColoring::kCategory) {
        const auto& used = view.used_groups;
        const auto categories = profiler::categories_where([&](profiler::Category category) {
            return std::ranges::find(used, static_cast<uint8_t>(category)) != used.end();
        });
        const auto clicked = category_legend(categories, selection.category, 1e6F);
        draw_inferred_mark(selection);
        if (clicked) events.selection.category = clicked;
        ImGui::SameLine(0, px(12));
    } else {
        draw_group_legend(view, width - note_width - px(16));
    }
    const float room = left + width - ImGui::GetCursorPosX();
    note = fit_to(note, room);
    ImGui::SetCursorPosX(left + width - text_width(note));
    dim_text(note);
}

// ---- the plot -------------------------------------------------------------------------------

void setup_axes(Frame& frame, ImVec2 size) {
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    BlocksState& state = frame.state;
    ImPlot::SetupAxes(nullptr, nullptr, quiet, kFixedAxis);
    setup_time_axis(frame.time.limits, state.start_ns, state.end_ns, size.x);
    setup_ticks(ImAxis_Y1, profiler::AxisUnit::kBytes, state.low_bytes, state.high_bytes, size.y);
    ImPlot::SetupAxisLimits(ImAxis_Y1, state.low_bytes, state.high_bytes, ImPlotCond_Always);
    ImPlot::SetupFinish();
}

/// With Ctrl, wheel and drag zoom and move the vertical axis. ImPlot ignores the mouse then.
void move_vertically(Frame& frame, const PlotMap& map) {
    const ImGuiIO& io = ImGui::GetIO();
    if (!io.KeyCtrl || !ImPlot::IsPlotHovered()) return;
    BlocksState& state = frame.state;
    const double most = frame.view.max_bytes;
    const double shown = state.high_bytes - state.low_bytes;
    if (io.MouseWheel != 0) {
        const double share = (map.bottom() - io.MousePos.y) / std::max(1.0F, map.size.y);
        const double at = state.low_bytes + share * shown;
        const double wanted =
            std::clamp(shown * std::pow(0.8, io.MouseWheel), std::min(4096.0, most), most);
        state.low_bytes = at - share * wanted;
        state.high_bytes = state.low_bytes + wanted;
    }
    if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0)) {
        const double moved = io.MouseDelta.y / std::max(1.0F, map.size.y) * shown;
        state.low_bytes += moved;
        state.high_bytes += moved;
    }
    const double length = state.high_bytes - state.low_bytes;
    state.low_bytes = std::clamp(state.low_bytes, 0.0, std::max(0.0, most - length));
    state.high_bytes = state.low_bytes + length;
}

BlockHighlights highlights_of(const Frame& frame) {
    BlockHighlights highlights{.category = frame.selection.category};
    const auto& tensor = frame.selection.tensor;
    const size_t shown = shown_trace(frame.selection, frame.context.views.queries.blocks);
    if (!tensor || tensor->in_b != (shown == 1)) return highlights;
    highlights.selected = tensor->allocation;
    const profiler::Steps steps = recorded_steps(frame.selection);
    if (shown < steps.size())
        highlights.family = profiler::family_of(steps[shown], highlights.selected);
    return highlights;
}

/// The peak as a line across the plot. In address order, heights are no sums.
void draw_peak_line(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    if (frame.context.views.queries.blocks.order != BlockOrder::kStack) return;
    for (const profiler::PeakMarker& peak : frame.view.bands.peaks) {
        const auto bytes = static_cast<double>(peak.bytes);
        if (bytes < map.y_min || bytes > map.y_max) continue;
        const float y = whole_pixel(map.y(bytes));
        const ImU32 color = with_alpha(palette().text, 0.45F);
        for (float x = map.corner.x; x < map.right(); x += px(8)) {
            draw->AddRectFilled({x, y}, {x + px(4), y + px(1)}, color);
        }
    }
    draw_markers(draw, map, frame.view.bands);
}

/// When the selected tensor lives, also if its block is too small to be outlined.
void draw_selected_life(const Frame& frame, ImDrawList* draw, const PlotMap& map) {
    const auto& tensor = frame.selection.tensor;
    if (!tensor || !tensor->alloc_ns) return;
    const double end_ns = std::min(tensor->free_ns.value_or(map.x_max), map.x_max);
    const float left = std::max(map.x(std::max(*tensor->alloc_ns, map.x_min)), map.corner.x);
    const float right = std::max(map.x(end_ns), left + px(2));
    if (*tensor->alloc_ns > map.x_max || end_ns < map.x_min) return;
    const float top = map.corner.y + phase_strip_height();
    draw->AddRectFilled({left, top}, {right, top + px(3)}, palette().accent);
}

/// A click selects the block under the mouse, and its time is the moment. A double click shows all.
void handle_mouse(Frame& frame) {
    if (!ImPlot::IsPlotHovered()) return;
    const double time_ns = ImPlot::GetPlotMousePos().x;
    frame.events.time.cursor_ns = time_ns;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        frame.events.time.fit = true;
        frame.query().low_bytes = frame.query().high_bytes = 0;
        return;
    }
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                         std::abs(drag.x) + std::abs(drag.y) < px(4);
    if (!clicked) return;
    frame.events.selection.moment_ns = std::optional(time_ns);
    if (frame.hovered.allocation().valid()) {
        pick_block(frame.context, frame.hovered.allocation(), frame.events);
    } else {
        frame.events.selection.clear_tensor = true;
    }
}

/// Which groups the merged blocks belong to, the largest first.
void draw_merged(const profiler::BlocksView& view, const profiler::MergedBlocks& merged) {
    if (!ImGui::BeginTooltip()) return;
    const double bytes = merged.high_bytes - merged.low_bytes;
    const bool is_counted = merged.count > 0;
    bold_text(is_counted ? fmt::format("{} merged blocks, {}", profiler::format_count(merged.count),
                                       profiler::format_bytes(std::llround(bytes)))
                         : std::string("Merged blocks below a pixel"));
    std::vector<profiler::MergedPart> parts = merged.parts;
    std::ranges::sort(parts, std::greater(), &profiler::MergedPart::share);
    for (const profiler::MergedPart& part : parts) {
        const profiler::BlockGroup& group = view.groups[part.group];
        swatch(group_color(group));
        text(fmt::format("{}  {}{}",
                         is_counted ? profiler::format_bytes(std::llround(part.share * bytes))
                                    : profiler::format_percent(part.share),
                         group.label, group.gone ? ", not in B" : ""));
    }
    dim_text("Zoom in to see them one by one: wheel for time, Ctrl + wheel for bytes");
    ImGui::EndTooltip();
}

void draw_hovered(const Frame& frame) {
    if (frame.hovered.allocation().valid()) {
        return draw_block_readout(frame.context, frame.hovered.allocation());
    }
    if (frame.hovered.merged) draw_merged(frame.view, *frame.hovered.merged);
}

/// Left and right go to the change of memory before and after the moment.
void step_moment(Frame& frame, int direction) {
    const size_t shown = shown_trace(frame.selection, frame.context.views.queries.blocks);
    const profiler::Steps steps = recorded_steps(frame.selection);
    if (shown >= steps.size()) return;
    const profiler::TimeMap map =
        shown == 1 && frame.time.alignment ? frame.time.alignment->second : profiler::TimeMap();
    const profiler::BlockHistory& history = steps[shown].blocks();
    const int64_t now_ns = std::llround(map.to_own(moment_of(frame.selection)));
    const uint32_t rank =
        direction > 0 ? history.first_change_after(now_ns) : history.first_change_at(now_ns) - 1;
    if (rank >= history.change_count()) return;  // also before the first one
    frame.events.selection.moment_ns =
        std::optional(map.to_shared(static_cast<double>(history.time_ns(rank))));
}

void handle_keys(Frame& frame) {
    if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows) || ImGui::GetIO().WantTextInput) {
        return;
    }
    if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) step_moment(frame, -1);
    if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) step_moment(frame, 1);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape))
        frame.events.selection.moment_ns = std::optional<double>();
}

/// While it plays, the moment goes through the visible part in some seconds, from where it stands.
void play(Frame& frame) {
    if (!frame.state.is_playing) return;
    constexpr double kSeconds = 12;
    constexpr double kMostSecondsPerFrame = 0.1;  // after a slow frame it does not jump
    const TimeWindow& window = frame.time.window;
    const double seconds = std::min<double>(ImGui::GetIO().DeltaTime, kMostSecondsPerFrame);
    const double step_ns = (window.end_ns - window.start_ns) * seconds / kSeconds;
    const double moment_ns = std::max(moment_of(frame.selection), window.start_ns) + step_ns;
    frame.events.selection.moment_ns = std::optional(std::min(moment_ns, window.end_ns));
    frame.state.is_playing = moment_ns < window.end_ns;
    wake_window();
}

void draw_plot(Frame& frame, ImVec2 size) {
    const float left = ImGui::GetCursorScreenPos().x;
    if (!ImPlot::BeginPlot("##blocks", size, kPlainPlot)) return;
    setup_axes(frame, size);
    const PlotMap map = current_plot_map();
    frame.state.plot_left = map.corner.x - left;
    frame.state.plot_width = map.size.x;
    frame.query().width_px = static_cast<int>(map.size.x);
    frame.query().height_px = static_cast<int>(map.size.y);
    const bool has_phases = !frame.view.bands.phases.empty();
    frame.query().phase_strip_px = has_phases ? static_cast<int>(phase_strip_height()) : 0;
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    const std::optional<ImVec2> mouse =
        ImPlot::IsPlotHovered() ? std::optional(ImGui::GetMousePos()) : std::nullopt;
    draw_phases(draw, map, frame.view.bands, false);
    frame.hovered = draw_blocks(draw, map, frame.view, highlights_of(frame), mouse);
    draw_phases(draw, map, frame.view.bands, true);
    draw_peak_line(frame, draw, map);
    if (frame.selection.range) draw_range(draw, map, *frame.selection.range);
    draw_selected_life(frame, draw, map);
    draw_moment(draw, map, moment_of(frame.selection));
    handle_mouse(frame);
    move_vertically(frame, map);
    if (frame.context.cursor_ns) draw_cursor(draw, map, *frame.context.cursor_ns);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    draw_hovered(frame);
}

// ---- the layout -----------------------------------------------------------------------------

void draw_minimap_row(Frame& frame) {
    BlocksState& state = frame.state;
    const float width = ImGui::GetContentRegionAvail().x;
    // Right above the plot, whose place is known from the frame before.
    const bool known = state.plot_width > 0 && state.plot_left + state.plot_width <= width + 1;
    if (known) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + state.plot_left);
    const ImVec2 size{known ? state.plot_width : width, px(24)};
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
    const auto& slot = frame.context.views.segments;
    if (!slot.view()) {
        slot.error().empty() ? working_line("Drawing the segments ...") : dim_text(slot.error());
        return;
    }
    if (!slot.view()->has_segments) {
        draw_segment_choice(frame.context, frame.events);
        dim_text("No segments: this allocator holds no more than its blocks.");
        return;
    }
    draw_segments(frame.context, *slot.view(), frame.events);
}

float segment_height(const Frame& frame, float space) {
    if (!frame.state.show_segments || !frame.state.has_room_for_segments) return 0;
    const profiler::SegmentMapView* view = frame.context.views.segments.view();
    const float line = ImGui::GetTextLineHeightWithSpacing();
    if (view && !view->has_segments) return line;
    return std::floor(std::clamp(space * 0.30F, em(5), space - em(10)));
}

void draw_left(Frame& frame) {
    draw_minimap_row(frame);
    const float gap = ImGui::GetStyle().ItemSpacing.y;
    const float space = ImGui::GetContentRegionAvail().y;
    frame.state.has_room_for_segments = space >= em(16);
    const float below = segment_height(frame, space);
    draw_plot(frame, {ImGui::GetContentRegionAvail().x,
                      std::max(em(4), space - (below > 0 ? below + gap : 0))});
    if (below > 0) draw_segment_area(frame, below);
}

void draw_right(Frame& frame) {
    if (frame.query().what_if.is_open) {
        return draw_what_if(frame.context, frame.state.what_if, frame.events);
    }
    const auto& slot = frame.context.views.live_blocks;
    if (slot.view()) return draw_live_blocks(frame.context, *slot.view(), frame.events);
    slot.error().empty() ? working_line("Listing the live blocks ...") : dim_text(slot.error());
}

void draw_areas(Frame& frame) {
    const float width = ImGui::GetContentRegionAvail().x;
    const bool settings = frame.query().what_if.is_open;
    const bool list = (frame.state.show_live || settings) && width > em(44);
    const float list_width = list ? std::clamp(width * 0.31F, em(20), em(settings ? 28 : 38)) : 0;
    {
        const ScopedChild left("##left", {list ? width - list_width - px(10) : -1.0F, -1}, 0,
                               ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
        if (left) draw_left(frame);
    }
    if (!list) return;
    ImGui::SameLine(0, px(10));
    const ScopedChild right("##right", {-1, -1});
    if (right) draw_right(frame);
}

/// From the plot's axes to what other panels and the view need to know.
void report_axes(Frame& frame, double start_ns, double end_ns) {
    const BlocksState& state = frame.state;
    if (state.start_ns != start_ns || state.end_ns != end_ns) {
        set_range(state.start_ns, state.end_ns, frame.time.window, frame.events);
    }
    const BlocksQuery& now = frame.context.views.queries.blocks;
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
    const BlocksView* view = context.views.blocks.view();
    if (!view || view->max_bytes <= 0) {
        draw_unfilled(kUnfilled, workspace.selection(), context.views.blocks.error());
        // Nothing can be laid out before the size is known.
        BlocksQuery& query = wanted_query(context, events);
        const ImVec2 space = ImGui::GetContentRegionAvail();
        if (query.width_px == 0) query.width_px = static_cast<int>(space.x);
        if (query.height_px == 0) query.height_px = static_cast<int>(std::max(space.y, 1.0F));
        return events;
    }
    const TimeWindow& window = workspace.time().window;
    const BlocksQuery& query = context.views.queries.blocks;
    Frame frame{context, workspace, workspace.selection(), workspace.time(), *view, state,
                events,  {}};
    state.start_ns = window.start_ns;
    state.end_ns = std::max(window.end_ns, state.start_ns + 1);
    const bool has_part = query.high_bytes > query.low_bytes;
    state.low_bytes = has_part ? query.low_bytes : 0;
    state.high_bytes = has_part ? query.high_bytes : view->max_bytes;
    const double start_ns = state.start_ns, end_ns = state.end_ns;
    draw_blocks_toolbar(context, state, events);
    draw_blocks_legend(context, *view, events);
    handle_keys(frame);
    play(frame);
    draw_areas(frame);
    report_axes(frame, start_ns, end_ns);
    return events;
}

}  // namespace app
