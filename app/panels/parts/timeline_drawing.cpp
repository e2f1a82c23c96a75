#include "app/panels/parts/timeline_drawing.h"

#include "app/panels/parts/panel_context.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/imgui_canvas.h"
#include "app/widgets/plot.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::Category;

/// The columns [first, last) that are visible.
struct Columns {
    size_t first = 0;
    size_t last = 0;
};

Columns visible_columns(const PlotMap& map, const std::vector<double>& edge_ns) {
    if (edge_ns.size() < 2) return {};
    const auto begin = edge_ns.begin();
    const auto after = std::upper_bound(begin, edge_ns.end(), map.x_min);
    const auto end = std::lower_bound(begin, edge_ns.end(), map.x_max);
    const size_t first = after == begin ? 0 : static_cast<size_t>(after - begin) - 1;
    const size_t last = std::min(static_cast<size_t>(end - begin), edge_ns.size() - 1);
    return {first, std::max(first, last)};
}

/// The visible columns of a step function in whole pixels.
struct ColumnPixels {
    Columns columns;
    std::vector<float> edges;  // x, one more than columns

    ColumnPixels(const PlotMap& map, const std::vector<double>& edge_ns)
        : columns(visible_columns(map, edge_ns)) {
        if (columns.first == columns.last) return;
        for (size_t i = columns.first; i <= columns.last; ++i) {
            edges.push_back(whole_pixel(map.x(edge_ns[i])));
        }
    }
    size_t count() const { return columns.last - columns.first; }
    /// y of each column.
    std::vector<float> heights(const PlotMap& map, const std::vector<double>& values) const {
        std::vector<float> heights(count());
        for (size_t i = 0; i < heights.size(); ++i) {
            heights[i] = whole_pixel(map.y(values[columns.first + i]));
        }
        return heights;
    }
};

/// Fills between two step functions, given by y of each column. Neighbouring columns of equal
/// height become one rectangle, so that a flat layer costs one rectangle instead of a thousand.
void fill_between(ImDrawList* draw, const ColumnPixels& pixels, const std::vector<float>& lower,
                  const std::vector<float>& upper, ImU32 color) {
    const size_t count = pixels.count();
    const auto indices = [](size_t rectangles) { return static_cast<int>(6 * rectangles); };
    const auto vertices = [](size_t rectangles) { return static_cast<int>(4 * rectangles); };
    draw->PrimReserve(indices(count), vertices(count));
    size_t drawn = 0;
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        while (++end < count && upper[end] == upper[begin] && lower[end] == lower[begin]) {
        }
        const float left = pixels.edges[begin], right = pixels.edges[end];
        if (lower[begin] <= upper[begin] || right <= left) continue;
        draw->PrimRect({left, upper[begin]}, {right, lower[begin]}, color);
        ++drawn;
    }
    draw->PrimUnreserve(indices(count - drawn), vertices(count - drawn));
}

/// Hatches the area between two step functions: each line is clipped column by column, so that it
/// costs as many steps as it crosses columns. Where the area is thin it stays plain.
class StackHatch : public ImGuiCanvas {
public:
    StackHatch(ImDrawList* draw, const ColumnPixels& pixels, const std::vector<float>& lower,
               const std::vector<float>& upper)
        : ImGuiCanvas(draw), draw_(draw), pixels_(pixels), lower_(lower), upper_(upper) {}

    void draw_pattern(Category category, float alpha) {
        if (pixels_.count() == 0) return;
        const auto [top, foot] = std::pair(std::ranges::min(upper_), std::ranges::max(lower_));
        const ImVec2 corner{pixels_.edges.front(), top};
        const profiler::Color fill = profiler::color_of(current_theme(), category);
        hatch(to_canvas(corner, ImVec2{pixels_.edges.back(), foot} - corner),
              profiler::hatch_of(category), profiler::ink_on(fill), 0.2 * alpha, points(px(7)));
    }

protected:
    void stroke_inside(std::span<const profiler::Point>, std::span<const Segment> lines,
                       const profiler::LineStyle& style) override {
        const ImU32 ink = to_u32(style.color, static_cast<float>(style.alpha));
        const float width = pixels(style.width);
        for (const Segment& line : lines) {
            const ImVec2 from = to_screen(line.from), to = to_screen(line.to);
            from.x <= to.x ? stroke(from, to, ink, width) : stroke(to, from, ink, width);
        }
    }

private:
    /// From left to right, or upright. Pieces that meet are drawn as one.
    void stroke(ImVec2 from, ImVec2 to, ImU32 ink, float width) {
        const auto first = std::ranges::upper_bound(pixels_.edges, from.x);
        if (first == pixels_.edges.begin()) return;
        auto column = static_cast<size_t>(first - pixels_.edges.begin()) - 1;
        ImVec2 begin, end{-1, -1};
        const auto flush = [&] {
            if (end.x < 0) return;
            if (begin.x == end.x && begin.y == end.y) {
                draw_->AddCircleFilled(begin, width / 2, ink, 6);
            } else {
                draw_->AddLine(begin, end, ink, width);
            }
            end.x = -1;
        };
        for (; column < pixels_.count() && pixels_.edges[column] <= to.x; ++column) {
            const auto piece = clip(from, to, column);
            if (!piece) {
                flush();
                continue;
            }
            if (end.x < 0) begin = piece->first;
            end = piece->second;
        }
        flush();
    }

    /// What lies in a column between the two functions.
    std::optional<std::pair<ImVec2, ImVec2>> clip(ImVec2 from, ImVec2 to, size_t column) const {
        const float top = upper_[column], foot = lower_[column];
        if (foot - top < px(kThin)) return std::nullopt;
        const ImVec2 way = to - from;
        float first = 0, last = 1;
        const auto keep = [&](float start, float length, float low, float high) {
            if (length == 0) return low <= start && start <= high;
            const float a = (low - start) / length, b = (high - start) / length;
            first = std::max(first, std::min(a, b));
            last = std::min(last, std::max(a, b));
            return first <= last;
        };
        if (!keep(from.x, way.x, pixels_.edges[column], pixels_.edges[column + 1]) ||
            !keep(from.y, way.y, top, foot)) {
            return std::nullopt;
        }
        return std::pair(from + way * first, from + way * last);
    }

    static constexpr float kThin = 9;  // pixels at 100 %
    ImDrawList* draw_;
    const ColumnPixels& pixels_;
    const std::vector<float>& lower_;
    const std::vector<float>& upper_;
};

void label_in(ImDrawList* draw, const PlotMap& map, float left, float right, float top,
              float height, ImU32 color, const std::string& text) {
    left = std::max(left, map.corner.x) + px(5);
    right = std::min(right, map.right()) - px(4);
    const ImVec2 size = ImGui::CalcTextSize(text.c_str());
    if (right - left < size.x) return;
    draw->AddText({std::round(left), std::round(top + (height - size.y) / 2)}, color, text.c_str());
}

}  // namespace

void setup_time_axis(const profiler::TimeRange& limits, double& start_ns, double& end_ns,
                     float width_px) {
    const double length = std::max(limits.end_ns - limits.start_ns, kMinWindowNs);
    setup_ticks(ImAxis_X1, profiler::AxisUnit::kTime, start_ns, end_ns, width_px);
    ImPlot::SetupAxisLinks(ImAxis_X1, &start_ns, &end_ns);
    ImPlot::SetupAxisLimitsConstraints(ImAxis_X1, limits.start_ns, limits.start_ns + length);
    ImPlot::SetupAxisZoomConstraints(ImAxis_X1, std::min(kMinWindowNs, length), length);
}

void draw_time_labels(const PlotMap& map, double start_ns, double end_ns) {
    const ScopedFont font(fonts().text, kSmallSize);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float y = ImGui::GetCursorScreenPos().y;
    const int count = std::max(2, static_cast<int>(map.size.x / em(8)));
    for (const profiler::Tick& tick :
         profiler::make_ticks(profiler::AxisUnit::kTime, start_ns, end_ns, count)) {
        const float width = text_width(tick.label);
        const float x =
            std::clamp(map.x(tick.value) - width / 2, map.corner.x, map.right() - width);
        draw->AddText({std::round(x), y}, palette().dim, tick.label.c_str());
    }
    ImGui::Dummy({0, ImGui::GetTextLineHeight()});
}

void align_button(const TimeWindow& window, PanelEvents& events) {
    const bool phases = window.alignment == profiler::TimeAlignment::kPhases;
    if (toggle_button(ICON_ALIGN "###align", phases)) {
        events.time.window = window;
        events.time.window->alignment =
            phases ? profiler::TimeAlignment::kTime : profiler::TimeAlignment::kPhases;
    }
    ImGui::SetItemTooltip("Align phases: stretch B so that its phases align with the phases of A");
}

float phase_strip_height() { return px(18); }

void draw_stack(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                std::optional<Category> picked) {
    const ColumnPixels pixels(map, trace.edge_ns);
    std::vector<float> lower(pixels.count(), whole_pixel(map.y(0)));
    for (Category category : profiler::kCategoryStackOrder) {
        const std::vector<double>& top = trace.top_bytes[static_cast<size_t>(category)];
        if (top.size() != trace.column_count()) continue;
        std::vector<float> upper = pixels.heights(map, top);
        const bool faded = picked && *picked != category;
        fill_between(draw, pixels, lower, upper,
                     with_alpha(category_color(category), faded ? 0.18F : 0.92F));
        StackHatch(draw, pixels, lower, upper).draw_pattern(category, faded ? 0.3F : 1.0F);
        lower = std::move(upper);
    }
}

void draw_reserved_line(ImDrawList* draw, const PlotMap& map,
                        const profiler::TimelineTrace& trace) {
    if (!trace.has_reserved) return;
    const ColumnPixels pixels(map, trace.edge_ns);
    const std::vector<float> heights = pixels.heights(map, trace.reserved_bytes);
    const auto covers = [&](size_t i) { return trace.covers(pixels.columns.first + i); };
    const ImU32 color = with_alpha(palette().text, 0.75F);
    for (size_t begin = 0, end = 0; begin < heights.size(); begin = end) {
        const float y = heights[begin];
        end = begin + 1;
        if (!covers(begin)) continue;  // unknown, which is not 0
        while (end < heights.size() && heights[end] == y && covers(end)) ++end;
        const float left = pixels.edges[begin];
        draw->AddRectFilled({left, y}, {pixels.edges[end], y + px(1)}, color);
        if (begin == 0) continue;
        const float before = heights[begin - 1];
        draw->AddRectFilled({left, std::min(before, y)}, {left + px(1), std::max(before, y)},
                            color);
    }
}

void draw_difference(ImDrawList* draw, const PlotMap& map, const std::vector<double>& edge_ns,
                     const std::vector<double>& difference_bytes) {
    const ColumnPixels pixels(map, edge_ns);
    const float y = whole_pixel(map.y(0));
    const std::vector<float> zero(pixels.count(), y);
    std::vector<float> more = pixels.heights(map, difference_bytes), less = more;
    for (size_t i = 0; i < more.size(); ++i) {
        more[i] = std::min(more[i], y);
        less[i] = std::max(less[i], y);
    }
    fill_between(draw, pixels, zero, more, with_alpha(palette().bad, 0.85F));
    fill_between(draw, pixels, less, zero, with_alpha(palette().good, 0.85F));
    draw->AddRectFilled({map.corner.x, y}, {map.right(), y + 1}, with_alpha(palette().dim, 0.7F));
}

namespace {

/// Every second phase is a little lighter, so that neighbours differ.
bool is_lit(const profiler::PhaseBand& phase) { return static_cast<int>(phase.kind) % 2 == 0; }

/// Whether phases or steps can be told apart. A long capture has thousands of bands, each too
/// narrow to see when the whole capture is shown.
template <typename Band>
bool are_wide_enough(const PlotMap& map, const std::vector<Band>& bands) {
    constexpr float kNarrowest = 3;  // on average, in pixels at 100 %
    if (bands.empty()) return false;
    const float width = map.x(bands.back().end_ns) - map.x(bands.front().start_ns);
    return width >= px(kNarrowest) * static_cast<float>(bands.size());
}

}  // namespace

void draw_phase_strip(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                      float top) {
    const ScopedFont font(fonts().text, kSmallSize);
    const float height = phase_strip_height();
    const auto draw_band = [&](float left, float right, float alpha) {
        draw->AddRectFilled({left, top}, {right, top + height}, with_alpha(palette().text, alpha));
    };
    if (!trace.phases.empty() && !are_wide_enough(map, trace.phases)) {
        return draw_band(std::max(map.corner.x, map.x(trace.phases.front().start_ns)),
                         std::min(map.right(), map.x(trace.phases.back().end_ns)), 0.11F);
    }
    for (const profiler::PhaseBand& phase : trace.phases) {
        const float left = whole_pixel(map.x(phase.start_ns)),
                    right = whole_pixel(map.x(phase.end_ns));
        if (right - left < 1) continue;
        draw_band(left, std::max(left + 1, right - 1), is_lit(phase) ? 0.14F : 0.09F);
        const std::string name(profiler::name_of(phase.kind));
        const bool whole = ImGui::CalcTextSize(phase.text.c_str()).x + px(10) < right - left;
        label_in(draw, map, left, right, top, height, with_alpha(palette().text, 0.85F),
                 whole ? phase.text : name);
    }
}

void draw_phases(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                 bool with_names) {
    const float top = map.corner.y, strip = with_names ? phase_strip_height() : 0;
    if (are_wide_enough(map, trace.phases)) {
        for (const profiler::PhaseBand& phase : trace.phases) {
            if (!is_lit(phase)) continue;
            draw->AddRectFilled({whole_pixel(map.x(phase.start_ns)), top + strip},
                                {whole_pixel(map.x(phase.end_ns)), map.bottom()},
                                with_alpha(palette().text, 0.035F));
        }
    }
    if (with_names) draw_phase_strip(draw, map, trace, top);
    if (!are_wide_enough(map, trace.steps)) return;
    for (const profiler::StepBand& step : trace.steps) {
        const float left = whole_pixel(map.x(step.start_ns));
        draw->AddRectFilled({left, top}, {left + 1, map.bottom()},
                            with_alpha(palette().text, 0.3F));
    }
}

namespace {

/// Where labels may stand: the plot below its phases.
profiler::Rect label_frame(const PlotMap& map) {
    const ImVec2 strip{0, phase_strip_height()};
    return to_rect(map.corner + strip, map.size - strip);
}

/// On a plate beside a point: at its right, or at its left where there is no room. The curve shows
/// through it.
void draw_marker_text(ImDrawList* draw, const PlotMap& map, ImVec2 point, ImU32 color,
                      const std::string& text) {
    const ImVec2 margin{px(5), px(2)};
    const profiler::Rect frame = label_frame(map);
    const ImVec2 size = ImGui::CalcTextSize(text.c_str()) + margin * 2;
    const auto place = profiler::place_label(
        profiler::right_or_left(to_point(point), px(10), to_size(size), frame), {.frame = frame});
    if (!place) return;
    text_on_plate(draw, corner_of(*place) + margin, text, color, with_alpha(palette().popup, 0.66F),
                  {5, 2});
}

/// A ghost on top of what was allocated, as high as the bytes that were asked for.
void draw_failed_request(ImDrawList* draw, const PlotMap& map,
                         const profiler::FailedRequest& failed) {
    const double foot = static_cast<double>(failed.allocated_bytes);
    const float left = whole_pixel(map.x(failed.time_ns));
    const ImVec2 low{left, whole_pixel(map.y(foot + static_cast<double>(failed.requested_bytes)))};
    const ImVec2 high{std::min(left + px(64), map.right() - px(2)), whole_pixel(map.y(foot))};
    if (high.x <= low.x) return;
    ImGuiCanvas canvas(draw);
    const profiler::Rect rect = canvas.to_canvas(low, high - low);
    canvas.fill(rect, current_theme().bad, 0.16);
    canvas.hatch(rect, profiler::Hatch::kDiagonal, current_theme().bad, 0.55, canvas.points(px(6)));
    for (const auto& [from, to] :
         {std::pair(low, ImVec2{high.x, low.y}), std::pair(ImVec2{high.x, low.y}, high),
          std::pair(high, ImVec2{low.x, high.y}), std::pair(ImVec2{low.x, high.y}, low)}) {
        draw_dashed_line(draw, from, to, palette().bad, px(1));
    }
    const ImVec2 size = ImGui::CalcTextSize(failed.text.c_str());
    const float middle = (low.y + high.y - size.y) / 2;
    const float x = std::max(map.corner.x + px(4), low.x - size.x - px(10));
    text_on_plate(draw, {x, middle}, failed.text, palette().bad, with_alpha(palette().popup, 0.92F),
                  {5, 1});
}

void draw_limit(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace) {
    const float y = whole_pixel(map.y(trace.limit_bytes));
    draw_dashed_line(draw, {map.corner.x, y}, {map.right(), y}, palette().bad, px(1.5F));
    const ImVec2 size = ImGui::CalcTextSize(trace.limit_text.c_str());
    const float top = std::max(y - size.y - px(4), map.corner.y + phase_strip_height() + px(2));
    text_on_plate(draw, {map.corner.x + px(10), top}, trace.limit_text, palette().bad,
                  with_alpha(palette().popup, 0.92F), {5, 1});
}

}  // namespace

void draw_markers(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                  bool with_texts) {
    const ScopedFont font(fonts().text, kSmallSize);
    const auto point_of = [&](const profiler::PeakMarker& marker) {
        return ImVec2{map.x(marker.time_ns), map.y(static_cast<double>(marker.bytes))};
    };
    if (trace.limit_bytes > 0 && with_texts) draw_limit(draw, map, trace);
    if (const auto& end = trace.out_of_memory) {  // says more than the peak, which is near it
        const ImVec2 point = point_of(*end);
        draw_marker(draw, profiler::Marker::kCross, point, px(5), current_theme().bad);
        if (trace.failed_request) return draw_failed_request(draw, map, *trace.failed_request);
        if (with_texts) draw_marker_text(draw, map, point, palette().bad, end->text);
        return;
    }
    for (const profiler::PeakMarker& peak : trace.peaks) {
        if (peak.time_ns < map.x_min || peak.time_ns > map.x_max) continue;
        const ImVec2 point = point_of(peak);
        if (peak.uneven_bytes > 0) {  // a range, as an error bar
            const float top = map.y(static_cast<double>(peak.uneven_bytes));
            draw->AddLine(point, {point.x, top}, palette().text, px(1.5F));
            draw->AddLine({point.x - px(4), top}, {point.x + px(4), top}, palette().text, px(1.5F));
        }
        draw->AddCircleFilled(point, px(4.5F), palette().plot);
        draw->AddCircleFilled(point, px(3), palette().text);
        if (with_texts) draw_marker_text(draw, map, point, palette().text, peak.text);
    }
}

void draw_range(ImDrawList* draw, const PlotMap& map, const profiler::TimeRange& range) {
    const float left = whole_pixel(map.x(range.start_ns)), right = whole_pixel(map.x(range.end_ns));
    draw->AddRectFilled({left, map.corner.y}, {right, map.bottom()},
                        with_alpha(palette().accent, 0.16F));
    for (float x : {left, right}) {
        draw->AddRectFilled({x, map.corner.y}, {x + px(1), map.bottom()}, palette().accent);
    }
}

void draw_tensor_lifetime(ImDrawList* draw, const PlotMap& map, const SelectedTensor& tensor) {
    if (!tensor.alloc_ns) return;
    const ScopedFont font(fonts().text, kSmallSize);
    const float left = map.x(*tensor.alloc_ns);
    const float right = tensor.free_ns ? map.x(*tensor.free_ns) : map.right();
    const float top = map.corner.y + phase_strip_height() + px(3), height = px(18);
    draw->AddRectFilled({left, map.corner.y}, {right, map.bottom()},
                        with_alpha(palette().accent, 0.10F));
    draw->AddRectFilled({left, top}, {std::max(right, left + px(2)), top + height},
                        with_alpha(palette().accent, 0.80F), px(3));
    label_in(draw, map, left, right, top, height, palette().plot,
             fmt::format("{}  {}", tensor.name, profiler::format_bytes(tensor.size_bytes)));
}

void draw_call(ImDrawList* draw, const PlotMap& map, const SelectedCall& call) {
    const ScopedFont font(fonts().text, kSmallSize);
    const float left = whole_pixel(map.x(call.range.start_ns));
    const float right = std::max(left + px(2), whole_pixel(map.x(call.range.end_ns)));
    if (right < map.corner.x || left > map.right()) return;
    draw->AddRectFilled({left, map.corner.y}, {right, map.bottom()},
                        with_alpha(palette().text, 0.22F));
    const ImVec2 margin{px(5), px(2)};
    const profiler::Rect frame = label_frame(map);
    const ImVec2 size = ImGui::CalcTextSize(call.name.c_str()) + margin * 2;
    auto wish =
        profiler::right_or_left({right, frame.y + px(3) + size.y / 2}, px(2), to_size(size), frame);
    wish.places.back().x = left - px(2) - size.x;
    const auto place = profiler::place_label(wish, {.frame = frame});
    if (!place) return;
    text_on_plate(draw, corner_of(*place) + margin, call.name, palette().text,
                  with_alpha(palette().popup, 0.92F), {5, 2});
}

void draw_moment(ImDrawList* draw, const PlotMap& map, double time_ns) {
    if (time_ns < map.x_min || time_ns > map.x_max) return;
    const float x = whole_pixel(map.x(time_ns));
    draw->AddRectFilled({x, map.corner.y}, {x + px(1), map.bottom()}, palette().text);
    draw_moment_handle(draw, map, time_ns, palette().text);
}

void draw_moment_handle(ImDrawList* draw, const PlotMap& map, double time_ns, ImU32 color) {
    if (time_ns < map.x_min || time_ns > map.x_max) return;
    const float x = whole_pixel(map.x(time_ns));
    const float size = px(6), bottom = map.bottom();
    draw->AddTriangleFilled({x - size, bottom}, {x + size + 1, bottom}, {x, bottom - 1.4F * size},
                            color);
}

void draw_cursor(ImDrawList* draw, const PlotMap& map, double time_ns) {
    if (time_ns < map.x_min || time_ns > map.x_max) return;
    const float x = whole_pixel(map.x(time_ns));
    draw->AddRectFilled({x, map.corner.y}, {x + px(1), map.bottom()},
                        with_alpha(palette().text, 0.5F));
}

void set_range(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events) {
    if (!events.time.window) events.time.window = window;
    events.time.window->start_ns = start_ns;
    events.time.window->end_ns = end_ns;
}

void set_width(float width, const TimeWindow& window, PanelEvents& events) {
    const int width_px = static_cast<int>(width);
    if (width_px <= 0 || width_px == window.width_px) return;
    if (!events.time.window) events.time.window = window;
    events.time.window->width_px = width_px;
}

// ---- mouse and keys -------------------------------------------------------------------------

namespace {

void move_with_keys(const TimeAxis& time, std::optional<double> center_ns, PanelEvents& events) {
    constexpr double kZoom = 1.4;   // a press
    constexpr double kMove = 0.15;  // of what is shown
    const double shown_ns = time.window.end_ns - time.window.start_ns;
    double start_ns = time.window.start_ns;
    double end_ns = time.window.end_ns;
    const double center = center_ns.value_or((start_ns + end_ns) / 2);
    const auto zoom = [&](double factor) {
        start_ns = center + (start_ns - center) * factor;
        end_ns = center + (end_ns - center) * factor;
    };
    const auto move = [&](double share) {
        start_ns += share * shown_ns;
        end_ns += share * shown_ns;
    };
    if (ImGui::IsKeyPressed(ImGuiKey_W)) zoom(1 / kZoom);
    if (ImGui::IsKeyPressed(ImGuiKey_S)) zoom(kZoom);
    if (ImGui::IsKeyPressed(ImGuiKey_A)) move(-kMove);
    if (ImGui::IsKeyPressed(ImGuiKey_D)) move(kMove);
    if (start_ns == time.window.start_ns && end_ns == time.window.end_ns) return;
    const double most_ns = std::max(time.limits.end_ns - time.limits.start_ns, kMinWindowNs);
    const double length = std::clamp(end_ns - start_ns, kMinWindowNs, most_ns);
    const double last_ns = std::max(time.limits.start_ns, time.limits.end_ns - length);
    start_ns = std::clamp(start_ns, time.limits.start_ns, last_ns);
    set_range(start_ns, start_ns + length, time.window, events);
}

}  // namespace

void drag_range(RangeDrag& drag, PanelEvents& events) {
    if (ImPlot::IsPlotHovered() && ImGui::GetIO().KeyShift &&
        ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        drag.anchor_ns = ImPlot::GetPlotMousePos().x;
    }
    if (!drag.anchor_ns) return;
    const ImPlotRect shown = ImPlot::GetPlotLimits();
    const double time_ns = std::clamp(ImPlot::GetPlotMousePos().x, shown.X.Min, shown.X.Max);
    const profiler::TimeRange range{std::min(*drag.anchor_ns, time_ns),
                                    std::max(*drag.anchor_ns, time_ns)};
    // A click without a drag clears the range.
    const bool dragged =
        ImPlot::PlotToPixels(range.end_ns, 0).x - ImPlot::PlotToPixels(range.start_ns, 0).x > px(3);
    events.selection.range = dragged ? std::optional(range) : std::nullopt;
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) drag.anchor_ns.reset();
}

void setup_lane_axes(const profiler::TimeRange& limits, const RangeDrag& drag, double& start_ns,
                     double& end_ns, float width_px) {
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    // Shift + drag selects a range instead of moving.
    const bool is_selecting = ImGui::GetIO().KeyShift || drag.anchor_ns;
    ImPlot::SetupAxes(nullptr, nullptr,
                      quiet | ImPlotAxisFlags_NoTickLabels |
                          (is_selecting ? ImPlotAxisFlags_Lock : ImPlotAxisFlags_None),
                      kFixedAxis | ImPlotAxisFlags_NoDecorations);
    setup_time_axis(limits, start_ns, end_ns, width_px);
    ImPlot::SetupFinish();
}

bool is_plain_click() {
    const ImGuiIO& io = ImGui::GetIO();
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    return ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !io.KeyShift &&
           io.MouseClickedLastCount[ImGuiMouseButton_Left] == 1 &&
           std::abs(drag.x) + std::abs(drag.y) < px(4);
}

void zoom_to_span(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events) {
    const double middle = (start_ns + end_ns) / 2;
    const double half = std::max(end_ns - start_ns, kMinWindowNs / 2);
    set_range(middle - half, middle + half, window, events);
}

void handle_time_keys(const PanelContext& context, PanelEvents& events) {
    const bool is_meant = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) ||
                          ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows);
    const ImGuiIO& io = ImGui::GetIO();
    if (!is_meant || io.WantTextInput || io.KeyCtrl || io.KeyAlt) return;
    const TimeAxis& time = context.workspace.time();
    move_with_keys(time, context.cursor_ns, events);
    const auto& range = context.workspace.selection().range;
    if (range && ImGui::IsKeyPressed(ImGuiKey_Z)) {
        set_range(range->start_ns, range->end_ns, time.window, events);
    }
    if (range && ImGui::IsKeyPressed(ImGuiKey_Escape)) {
        events.selection.range = std::optional<profiler::TimeRange>();
    }
    if (ImGui::IsKeyPressed(ImGuiKey_Home)) events.selection.moment_ns.emplace(std::nullopt);
}

}  // namespace app
