#include "app/panels/ranks/ranks_drawing.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::CollectiveKind;
using profiler::CollectiveSpan;
using profiler::RankLane;
using profiler::RanksView;

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

struct Box {
    ImVec2 corner, end;

    bool contains(ImVec2 point) const {
        return point.x >= corner.x && point.x < end.x && point.y >= corner.y && point.y < end.y;
    }
};

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
                 const LanePlace& place, const RanksLook& look) {
    const double most = look.shows_difference ? std::max(view.max_difference_bytes, 1.0)
                                              : std::max(view.max_bytes, 1.0);
    // The marker of a peak needs room above it.
    const double top = 1 + px(6) / std::max(place.memory_height - px(6), 1.0F);
    const PlotMap own = memory_map(map, place, look.shows_difference ? -top * most : 0, top * most);
    draw->AddRectFilled(own.corner, {own.right(), own.bottom()}, palette().plot);
    draw_phases(draw, own, lane.memory, /*with_names=*/false);
    if (look.shows_difference) {
        draw_difference(draw, own, lane.memory.edge_ns, lane.difference_bytes);
        return;
    }
    draw_stack(draw, own, lane.memory, look.category);
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
        if (box.end.x < map.corner.x || box.corner.x > map.right()) continue;
        draw->AddRectFilled(box.corner, box.end,
                            with_alpha(color_of(span.kind), span.count > 1 ? 0.6F : 0.95F), px(1));
        if (is_hovered && box.contains(ImGui::GetMousePos())) hovered = &span;
    }
    return hovered;
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

const CollectiveSpan* draw_ranks(ImDrawList* draw, const PlotMap& map, const RanksView& view,
                                 const RanksLook& look) {
    const CollectiveSpan* hovered = nullptr;
    for (std::size_t i = 0; i < view.lanes.size(); ++i) {
        const LanePlace& place = look.places[i];
        const float top = map.corner.y + place.top;
        if (!ImGui::IsRectVisible({map.corner.x, top}, {map.right(), top + place.height})) continue;
        draw_memory(draw, map, view, view.lanes[i], place, look);
        const auto* span = draw_collectives(draw, map, view.lanes[i], place, look.is_hovered);
        if (span) hovered = span;
    }
    return hovered;
}

void draw_joined(ImDrawList* draw, const PlotMap& map, std::span<const LanePlace> places,
                 const profiler::JoinedSpan& joined) {
    const ImU32 color = color_of(joined.kind);
    std::vector<Box> boxes;
    for (const auto& one : joined.places) {
        boxes.push_back(box_of(map, places[one.lane], one.start_ns, one.end_ns, one.row));
    }
    for (std::size_t i = 1; i < boxes.size(); ++i) {
        const Box &above = boxes[i - 1], &below = boxes[i];
        draw->AddQuadFilled({above.corner.x, above.end.y}, {above.end.x, above.end.y},
                            {below.end.x, below.corner.y}, {below.corner.x, below.corner.y},
                            with_alpha(color, 0.22F));
        draw->AddLine({above.corner.x, above.end.y}, {below.corner.x, below.corner.y}, color);
        draw->AddLine({above.end.x, above.end.y}, {below.end.x, below.corner.y}, color);
    }
    for (const Box& box : boxes) draw->AddRect(box.corner, box.end, palette().text, px(1));
}

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

void draw_collective_legend(std::span<const CollectiveKind> kinds) {
    if (kinds.empty()) return;
    std::vector<NamedColor> colors;
    for (const CollectiveKind kind : kinds) {
        colors.push_back({color_of(kind), profiler::name_of(kind)});
    }
    color_legend(colors);
    ImGui::SameLine(0, px(12));
}

}  // namespace app
