#include "app/panels/ranks/ranks_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace app {
namespace {

using profiler::CollectiveKind;
using profiler::CollectiveSpan;
using profiler::RankLane;
using profiler::RanksView;
using profiler::TextTable;

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

// ---- lanes ----------------------------------------------------------------------------------

struct RanksOptions {
    std::span<const LanePlace> places;
    bool shows_difference = false;
    std::optional<profiler::Category> category;
    bool is_hovered = false;  // the mouse is over the plot
};

float least_memory_height() { return px(40); }
float most_memory_height() { return px(220); }
float row_height() { return px(9); }
float lane_gap() { return px(7); }

/// Kinds of one shape share a colour (from or to one rank, between two): names tell them apart.
/// None is that of parameters or activations, which stand above.
ImU32 color_of(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return recipe_color(3);
        case CollectiveKind::kAllGather:
            return recipe_color(2);
        case CollectiveKind::kReduceScatter:
            return recipe_color(6);
        case CollectiveKind::kSend:
        case CollectiveKind::kRecv:
            return recipe_color(5);
        case CollectiveKind::kBroadcast:
        case CollectiveKind::kReduce:
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
            return recipe_color(4);
        case CollectiveKind::kAllToAll:
            return recipe_color(7);
        default:
            return palette().dim;
    }
}

using Box = ScreenBox;

/// A collective is drawn at least two pixels wide.
Box box_of(const PlotMap& map, const LanePlace& place, double start_ns, double end_ns, int row) {
    const float top = whole_pixel(map.corner.y + place.top + place.memory_height + px(2) +
                                  static_cast<float>(row) * row_height());
    const float left = whole_pixel(map.x(start_ns));
    return {{left, top},
            {std::max(left + px(2), whole_pixel(map.x(end_ns))), top + row_height() - px(1)}};
}

PlotMap memory_map(const PlotMap& map, const LanePlace& place, double y_min, double y_max) {
    PlotMap lane = map;
    lane.corner.y = whole_pixel(map.corner.y + place.top);
    lane.size.y = std::round(place.memory_height);
    lane.y_min = y_min;
    lane.y_max = y_max;
    return lane;
}

void draw_memory(ImDrawList* draw, const PlotMap& map, const RanksView& view, const RankLane& lane,
                 const LanePlace& place, const RanksOptions& options) {
    const double most = options.shows_difference ? std::max(view.max_difference_bytes, 1.0)
                                                 : std::max(view.max_bytes, 1.0);
    // The marker of a peak needs room above it.
    const double top = 1 + px(6) / std::max(place.memory_height - px(6), 1.0F);
    const PlotMap own =
        memory_map(map, place, options.shows_difference ? -top * most : 0, top * most);
    draw->AddRectFilled(own.corner, {own.right(), own.bottom()}, palette().plot);
    draw_phases(draw, own, lane.memory, /*with_names=*/false);
    if (options.shows_difference) {
        draw_difference(draw, own, lane.memory.edge_ns, lane.difference_bytes);
        return;
    }
    draw_stack(draw, own, lane.memory, options.category);
    draw_reserved_line(draw, own, lane.memory);
    draw_markers(draw, own, lane.memory, /*with_texts=*/false);
}

/// The span under the mouse, or null.
const CollectiveSpan* draw_collectives(ImDrawList* draw, const PlotMap& map, const RankLane& lane,
                                       const LanePlace& place, bool is_hovered) {
    const ScopedFont font(fonts().text, kSmallSize);
    const CollectiveSpan* hovered = nullptr;
    for (const CollectiveSpan& span : lane.collectives) {
        const Box box = box_of(map, place, span.start_ns, span.end_ns, span.row);
        if (box.lower.x < map.corner.x || box.upper.x > map.right()) continue;
        draw->AddRectFilled(box.upper, box.lower,
                            with_alpha(color_of(span.kind), span.count > 1 ? 0.6F : 0.95F), px(1));
        if (is_hovered && box.contains(ImGui::GetMousePos())) hovered = &span;
    }
    return hovered;
}

/// All lanes that can be seen, on a plot from 0 to its height. Returns the collective under the
/// mouse, or null.
const CollectiveSpan* draw_ranks(ImDrawList* draw, const PlotMap& map, const RanksView& view,
                                 const RanksOptions& options) {
    const CollectiveSpan* hovered = nullptr;
    for (size_t i = 0; i < view.lanes.size(); ++i) {
        const LanePlace& place = options.places[i];
        const float top = map.corner.y + place.top;
        if (!ImGui::IsRectVisible({map.corner.x, top}, {map.right(), top + place.height})) continue;
        draw_memory(draw, map, view, view.lanes[i], place, options);
        const auto* span = draw_collectives(draw, map, view.lanes[i], place, options.is_hovered);
        if (span) hovered = span;
    }
    return hovered;
}

/// A collective on all of its ranks, as one shape.
void draw_joined(ImDrawList* draw, const PlotMap& map, std::span<const LanePlace> places,
                 const profiler::JoinedSpan& joined) {
    const ImU32 color = color_of(joined.kind);
    std::vector<Box> boxes;
    for (const auto& one : joined.places) {
        boxes.push_back(box_of(map, places[one.lane], one.start_ns, one.end_ns, one.row));
    }
    for (size_t i = 1; i < boxes.size(); ++i) {
        const Box &above = boxes[i - 1], &below = boxes[i];
        draw->AddQuadFilled({above.upper.x, above.lower.y}, {above.lower.x, above.lower.y},
                            {below.lower.x, below.upper.y}, {below.upper.x, below.upper.y},
                            with_alpha(color, 0.22F));
        draw->AddLine({above.upper.x, above.lower.y}, {below.upper.x, below.upper.y}, color);
        draw->AddLine({above.lower.x, above.lower.y}, {below.lower.x, below.upper.y}, color);
    }
    for (const Box& box : boxes) draw->AddRect(box.upper, box.lower, palette().text, px(1));
}

/// `joined` is read_collective of the span, if that stands alone.
void draw_collective_tooltip(const CollectiveSpan& span, const profiler::JoinedSpan& joined) {
    if (!ImGui::BeginTooltip()) return;
    if (span.count > 1) {
        bold_text(fmt::format("{} collectives", profiler::format_count(span.count)));
        dim_text("Zoom in to see each.");
    } else {
        bold_text(joined.title);
        readout_table(joined.rows);
    }
    ImGui::EndTooltip();
}

/// Swatches and names of the kinds that occur.
void draw_collective_legend(std::span<const CollectiveKind> kinds) {
    if (kinds.empty()) return;
    std::vector<NamedColor> colors;
    for (const CollectiveKind kind : kinds) {
        colors.push_back({color_of(kind), profiler::name_of(kind)});
    }
    color_legend(colors);
    ImGui::SameLine(0, px(12));
}

// ---- above the lanes ------------------------------------------------------------------------

void draw_switches(Frame& frame) {
    using enum RanksShown;
    choose_one<RanksShown>(
        frame.state.shown,
        {{"Memory###by_class", "Memory of each rank over time, by class", kMemory},
         {"Difference###difference",
          "What a rank holds more or less than the median rank at that time", kDifference},
         {"Peaks###peaks", "A table of the ranks at their peaks", kPeaks},
         {"Times###times",
          "A table of the last step that every rank recorded completely: compute, exposed "
          "communication, idle, waits",
          kTimes}},
        px(3));
    ImGui::SameLine(0, px(8));
    if (ImGui::Button(ICON_EXPAND "###fit")) frame.events.time.fit = true;
    ImGui::SetItemTooltip("Show the whole capture (F)");
    ImGui::SameLine(0, px(10));
    // Level with the text of the buttons.
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);
    const bool is_picture = frame.state.shown == kMemory || frame.state.shown == kDifference;
    if (is_picture) draw_collective_legend(frame.view.kinds);
    help_marker(
        "One lane a rank, on the clock of A. Collectives are below the memory: point at one "
        "to see it on all ranks. A and B show a rank in all panels. The axis ends where "
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
    wrapped_text(frame.view.headline);
}

// ---- the picture ----------------------------------------------------------------------------

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
    if (letter_button("A", is_a, side_color(0))) {
        frame.events.traces.set_a = document;
    }
    ImGui::SameLine(0, px(3));
    if (letter_button("B", is_b, side_color(1))) {
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

void draw_header(const TextTable& table) {
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (const TextTable::Column& column : table.columns) {
        ImGui::TableNextColumn();
        const bool is_right = column.align == profiler::Align::kRight;
        if (is_right) {
            right_text(column.title);
        } else {
            dim_text(column.title);
        }
        if (!column.explanation.empty()) ImGui::SetItemTooltip("%s", column.explanation.c_str());
    }
}

void draw_cell(const TextTable& table, size_t row, size_t column) {
    const std::string& value = table.rows[row][column];
    if (table.columns[column].align == profiler::Align::kRight) {
        right_text(value);
    } else {
        text(value);
    }
}

/// Returns whether it was clicked.
bool draw_row(const TextTable& table, size_t row, const char* mark) {
    const ScopedId id(static_cast<int>(row));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked =
        ImGui::Selectable("##row", *mark != 0, ImGuiSelectableFlags_SpanAllColumns);
    ImGui::SetCursorPos(start);
    dim_text(mark);
    ImGui::SameLine(0, 0);
    draw_cell(table, row, 0);
    for (size_t column = 1; column < table.columns.size(); ++column) {
        ImGui::TableNextColumn();
        draw_cell(table, row, column);
    }
    return clicked;
}

/// That its title needs and its first rows; the others are alike.
float width_of(const TextTable& table, size_t column) {
    float width = text_width(table.columns[column].title);
    for (size_t row = 0; row < std::min<size_t>(table.rows.size(), 64); ++row) {
        width = std::max(width, text_width(table.rows[row][column]));
    }
    return width + px(8) + (column == 0 ? em(2) : 0);  // with room for A or B
}

/// Scrolls in both directions. A click on a row makes its rank B.
void draw_table(Frame& frame, const TextTable& table) {
    if (table.rows.empty()) {
        return empty_state(ICON_CLOCK, "No times are known",
                           "Kernels or collectives of measured ranks would show them.");
    }
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH |
                                       ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX |
                                       ImGuiTableFlags_SizingFixedFit;
    const auto count = static_cast<int>(table.columns.size());
    if (!ImGui::BeginTable("##ranks", count, kFlags)) return;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        ImGui::TableSetupColumn(table.columns[i].title.c_str(), ImGuiTableColumnFlags_WidthFixed,
                                width_of(table, i));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
    draw_header(table);
    draw_visible_rows(table.rows.size(), [&](size_t row) {
        const DocumentPtr& document = frame.ranks.documents[row];
        const bool is_a = document == frame.selection.a, is_b = document == frame.selection.b;
        const bool clicked = draw_row(table, row, is_a ? "A" : is_b ? "B" : "");
        if (clicked && !is_a) frame.events.traces.set_b = document;
    });
    ImGui::EndTable();
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

std::vector<LanePlace> place_lanes(const RanksView& view, float height) {
    std::vector<LanePlace> places;
    if (view.lanes.empty()) return places;
    float others = 0;  // all but the memory
    for (const RankLane& lane : view.lanes) {
        others += lane_gap() + px(2) + static_cast<float>(lane.num_rows) * row_height();
    }
    const float memory = std::clamp((height - others) / static_cast<float>(view.lanes.size()),
                                    least_memory_height(), most_memory_height());
    float top = 0;
    for (const RankLane& lane : view.lanes) {
        const float collectives = px(2) + static_cast<float>(lane.num_rows) * row_height();
        places.push_back({top, std::floor(memory), std::floor(memory) + collectives + lane_gap()});
        top += places.back().height;
    }
    return places;
}

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
