#include "app/panels/kernels/movement_plot.h"

#include "app/panels/parts/dot_labels.h"
#include "app/widgets/fonts.h"
#include "app/widgets/marks.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace app {
namespace {

using profiler::MovementDot;
using profiler::MovementRow;
using profiler::MovementView;
using profiler::PhaseKind;

constexpr float kLargestRadius = 13;
constexpr float kSmallestRadius = 2.5F;
constexpr float kReach = 5;  // of the mouse beyond a dot
constexpr float kMoved = 9;  // an op that moves less has no arrow
constexpr size_t kMostLabels = 18;
constexpr float kLeastBox = 5;       // a smaller rectangle is a click
constexpr double kGutterEdge = 1.8;  // right edge of the gutter, over the place of its dots

/// One frame's drawing: what the helpers below share.
struct RoofPlot {
    const MovementView& view;
    const MovementLook& look;
    ImDrawList* draw;
    ImVec2 corner;
    ImVec2 size;

    float right() const { return corner.x + size.x; }
    float bottom() const { return corner.y + size.y; }
    ImVec2 at(const MovementDot& dot) const { return ImPlot::PlotToPixels(dot.x, dot.y); }
    const MovementRow& row(MovementDotId id) const {
        const auto& trace = view.traces[id.trace];
        return trace.rows[trace.dots[id.dot].row].row;
    }
};

float radius_of(const MovementDot& dot) {
    return px(std::max(kSmallestRadius, kLargestRadius * static_cast<float>(dot.radius)));
}

ImU32 color_of(const MovementRow& row) {
    return activity_color(
        profiler::activity_class_of(row.op_class.value_or(profiler::OpClass::kOther)));
}

/// The tick of ops without arithmetic, which a logarithmic axis has no place for: shorter where it
/// would cover the next one.
std::string gutter_label(const MovementView& view, float width) {
    const std::string label = "no arithmetic";
    if (view.x_ticks.empty()) return label;
    const profiler::Tick& next = view.x_ticks.front();
    const double range = std::log(view.last_x / view.first_x);
    const auto gap = static_cast<float>(std::log(next.value / view.gutter_x) / range *
                                        static_cast<double>(width));
    return (text_width(label) + text_width(next.label)) / 2 + px(8) < gap ? label : "none";
}

void set_up_roof_axes(const MovementView& view, float width) {
    ImPlot::SetupAxes(nullptr, nullptr, kFixedAxis, kFixedAxis);
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    ImPlot::SetupAxisLimits(ImAxis_X1, view.first_x, view.last_x, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, view.first_y, view.last_y, ImPlotCond_Always);
    const auto ticks = [](ImAxis axis, const std::vector<profiler::Tick>& all) {
        std::vector<double> values;
        std::vector<const char*> labels;
        for (const profiler::Tick& tick : all) {
            values.push_back(tick.value);
            labels.push_back(tick.label.c_str());
        }
        ImPlot::SetupAxisTicks(axis, values.data(), static_cast<int>(values.size()), labels.data());
    };
    std::vector<profiler::Tick> x_ticks = view.x_ticks;
    if (view.has_gutter) x_ticks.push_back({view.gutter_x, gutter_label(view, width)});
    ticks(ImAxis_X1, x_ticks);
    ticks(ImAxis_Y1, view.y_ticks);
    ImPlot::SetupFinish();
}

void draw_gutter(const RoofPlot& plot) {
    if (!plot.view.has_gutter) return;
    const float edge =
        std::round(ImPlot::PlotToPixels(plot.view.gutter_x * kGutterEdge, plot.view.first_y).x);
    plot.draw->AddRectFilled(plot.corner, {edge, plot.bottom()}, with_alpha(palette().text, 0.04F));
}

/// Where memory is the limit lies under the slope, where arithmetic is under the flat part.
void draw_roof(const RoofPlot& plot) {
    const auto& peaks = plot.view.peaks;
    if (peaks.bytes_per_s <= 0) return;
    const double first = plot.view.first_x, last = plot.view.last_x;
    const double knee = plot.view.ridge > 0 ? std::min(plot.view.ridge, last) : last;
    const auto at = [&](double x) { return ImPlot::PlotToPixels(x, profiler::roof_at(peaks, x)); };
    const ImVec2 low = at(first), high = at(knee);
    const ImU32 color = with_alpha(palette().text, 0.72F);
    plot.draw->AddLine(low, high, color, px(2));
    const ScopedFont small(fonts().text, kSmallSize);
    std::string label = profiler::format_amount(peaks.bytes_per_s, "B/s");
    if (knee < last && peaks.flop_per_s > 0) {
        plot.draw->AddLine(high, {plot.right(), high.y}, color, px(2));
        plot.draw->AddLine(high, {high.x, plot.bottom()}, with_alpha(palette().text, 0.16F), px(1));
        label += ", " + profiler::format_amount(peaks.flop_per_s, "flop/s");
    }
    plot.draw->AddText({plot.right() - text_width(label) - px(6), plot.corner.y + px(4)},
                       palette().dim, label.c_str());
}

bool is_pale(const RoofPlot& plot, const MovementDot& dot) {
    return plot.look.box && !plot.look.box->contains(dot);
}

void draw_arrow(const RoofPlot& plot, ImVec2 from, ImVec2 to, float end_radius, ImU32 color) {
    const ImVec2 way = to - from;
    const float length = std::sqrt(way.x * way.x + way.y * way.y);
    const ImVec2 along = way / length;
    const ImVec2 tip = to - along * (end_radius + px(1.5F));
    const ImVec2 back = tip - along * px(6.5F);
    const ImVec2 across{-along.y * px(3.2F), along.x * px(3.2F)};
    plot.draw->AddLine(from, back, color, px(1.4F));
    plot.draw->AddTriangleFilled(tip, back + across, back - across, color);
}

/// From each op of A to what it became in B.
void draw_arrows(const RoofPlot& plot, std::optional<MovementDotId> hovered) {
    if (plot.view.traces.size() < 2) return;
    const auto& dots = plot.view.traces[0].dots;
    for (size_t i = 0; i < dots.size(); ++i) {
        if (!dots[i].other) continue;
        const MovementDot& other = plot.view.traces[1].dots[*dots[i].other];
        const ImVec2 from = plot.at(dots[i]), to = plot.at(other);
        const ImVec2 way = to - from;
        if (way.x * way.x + way.y * way.y < px(kMoved) * px(kMoved)) continue;
        const bool is_hovered = hovered && (*hovered == MovementDotId{0, i} ||
                                            *hovered == MovementDotId{1, *dots[i].other});
        const float alpha = is_pale(plot, dots[i]) ? 0.15F : is_hovered ? 1.0F : 0.6F;
        draw_arrow(plot, from, to, radius_of(other), with_alpha(plot.look.color_b, alpha));
    }
}

/// Of two traces A is drawn as outlines, because B's dots are where the arrows end.
void draw_dot(const RoofPlot& plot, MovementDotId id, bool is_hovered) {
    const MovementDot& dot = plot.view.traces[id.trace].dots[id.dot];
    const MovementRow& row = plot.row(id);
    const PhaseKind phase = row.phase.value_or(PhaseKind::kForward);
    const bool is_faint = plot.view.traces.size() > 1 && id.trace == 0;
    const float alpha = is_pale(plot, dot) ? 0.14F : is_faint ? 0.38F : 0.92F;
    const ImVec2 at = plot.at(dot);
    const float radius = radius_of(dot);
    const bool is_selected = plot.look.selected[id.trace] == dot.row;
    if (is_selected || is_hovered) {
        draw_phase_shape(plot.draw, phase, at, radius + px(4),
                         is_selected ? palette().accent : palette().text);
    }
    draw_phase_shape(plot.draw, phase, at, radius + px(1.25F), palette().plot);
    draw_phase_shape(plot.draw, phase, at, radius, with_alpha(color_of(row), alpha));
}

void draw_all_dots(const RoofPlot& plot, std::optional<MovementDotId> hovered) {
    for (size_t t = 0; t < plot.view.traces.size(); ++t) {
        const size_t count = plot.view.traces[t].dots.size();
        for (size_t i = 0; i < count; ++i) draw_dot(plot, {t, i}, false);
    }
    if (hovered) draw_dot(plot, *hovered, true);
}

void draw_names(const RoofPlot& plot, const LabelArea& legend) {
    const size_t t = plot.view.traces.size() - 1;
    std::vector<DotLabel> labels;
    std::vector<ImVec2> dots;
    for (const auto& trace : plot.view.traces) {
        for (const MovementDot& dot : trace.dots) dots.push_back(plot.at(dot));
    }
    for (size_t i = 0; i < plot.view.traces[t].dots.size(); ++i) {
        const MovementDot& dot = plot.view.traces[t].dots[i];
        if (labels.size() >= kMostLabels || is_pale(plot, dot)) continue;
        const std::string& name = plot.view.traces[t].rows[dot.row].label;
        const ImVec2 at = plot.at(dot);
        // Of several with one name in one place, one says it.
        const bool is_named = std::any_of(labels.begin(), labels.end(), [&](const DotLabel& other) {
            return other.text == name && std::abs(other.dot.x - at.x) < px(kMoved) &&
                   std::abs(other.dot.y - at.y) < px(kMoved);
        });
        if (is_named) continue;
        const MovementRow& row = plot.row({t, i});
        labels.push_back({.dot = at,
                          .radius = radius_of(dot),
                          .text = name,
                          .color = palette().text,
                          .is_bold = false,
                          .badge = {},
                          .badge_color = 0,
                          .shape = row.phase.value_or(PhaseKind::kForward),
                          .shape_color = color_of(row)});
    }
    const ScopedFont small(fonts().text, kSmallSize);
    const float roof = ImGui::GetTextLineHeight() + px(6);  // its figures stand at the top
    draw_dot_labels(plot.draw, labels, dots,
                    {plot.corner + ImVec2(0, roof), {plot.right(), plot.bottom()}}, {legend});
}

/// In the corner above the slope, where no dot can be. Returns its area.
LabelArea draw_roof_legend(const RoofPlot& plot) {
    const ScopedFont small(fonts().text, kSmallSize);
    const float height = ImGui::GetTextLineHeight();
    ImVec2 at{plot.corner.x + px(9), plot.corner.y + px(7)};
    float right = at.x;
    std::array<bool, profiler::kOpClassNames.size()> has_class{};
    std::array<bool, profiler::kPhaseKindNames.size()> has_phase{};
    for (const auto& trace : plot.view.traces) {
        for (const auto& row : trace.rows) {
            if (row.row.op_class) has_class[static_cast<size_t>(*row.row.op_class)] = true;
            if (row.row.phase) has_phase[static_cast<size_t>(*row.row.phase)] = true;
        }
    }
    const auto add = [&](PhaseKind phase, ImU32 color, std::string_view name) {
        draw_phase_shape(plot.draw, phase, {at.x + px(5), at.y + height / 2}, px(4.5F), color);
        plot.draw->AddText({at.x + px(15), at.y}, palette().text, name.data(),
                           name.data() + name.size());
        right = std::max(right, at.x + px(15) + text_width(name));
        at.y += height + px(2);
    };
    for (size_t i = 0; i < has_class.size(); ++i) {
        const auto of = profiler::activity_class_of(static_cast<profiler::OpClass>(i));
        if (has_class[i]) add(PhaseKind::kForward, activity_color(of), profiler::label_of(of));
    }
    at.y += px(4);
    for (size_t i = 0; i < has_phase.size(); ++i) {
        const auto phase = static_cast<PhaseKind>(i);
        if (has_phase[i]) add(phase, palette().dim, profiler::name_of(phase));
    }
    at.y += px(4);
    const auto note = [&](const char* text) {
        plot.draw->AddText(at, palette().dim, text);
        right = std::max(right, at.x + text_width(text));
        at.y += height + px(2);
    };
    note("area: time");
    if (plot.view.traces.size() > 1) note("pale: A, arrow: to B");
    return {plot.corner, {right, at.y}};
}

void draw_box(const RoofPlot& plot, const MovementPicture& picture) {
    if (picture.drag_start) {
        const ImVec2 mouse = ImGui::GetMousePos();
        plot.draw->AddRectFilled(*picture.drag_start, mouse, with_alpha(palette().accent, 0.14F));
        plot.draw->AddRect(*picture.drag_start, mouse, palette().accent);
        return;
    }
    if (!plot.look.box) return;
    const MovementBox& box = *plot.look.box;
    plot.draw->AddRect(ImPlot::PlotToPixels(box.low_x, box.high_y),
                       ImPlot::PlotToPixels(box.high_x, box.low_y),
                       with_alpha(palette().accent, 0.8F), px(2), px(1.2F));
}

// ---- mouse ----------------------------------------------------------------------------------

/// The smallest dot under the mouse, since it may lie on a large one.
std::optional<MovementDotId> dot_under(const RoofPlot& plot, ImVec2 mouse) {
    std::optional<MovementDotId> best;
    float least = 0;
    for (size_t t = 0; t < plot.view.traces.size(); ++t) {
        for (size_t i = 0; i < plot.view.traces[t].dots.size(); ++i) {
            const MovementDot& dot = plot.view.traces[t].dots[i];
            const ImVec2 way = plot.at(dot) - mouse;
            const float radius = radius_of(dot);
            const float reach = radius + px(kReach);
            const float distance = std::sqrt(way.x * way.x + way.y * way.y);
            if (distance > reach || (best && distance + radius >= least)) continue;
            least = distance + radius;
            best = MovementDotId{t, i};
        }
    }
    return best;
}

MovementBox box_between(ImVec2 a, ImVec2 b) {
    const ImPlotPoint first = ImPlot::PixelsToPlot(a), second = ImPlot::PixelsToPlot(b);
    return {std::min(first.x, second.x), std::max(first.x, second.x), std::min(first.y, second.y),
            std::max(first.y, second.y)};
}

MovementInput read_mouse(const RoofPlot& plot, MovementPicture& picture) {
    MovementInput input;
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool inside = ImPlot::IsPlotHovered();
    if (inside && !picture.drag_start) input.hovered = dot_under(plot, mouse);
    if (input.hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    if (inside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) picture.drag_start = mouse;
    if (!picture.drag_start) return input;
    if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) return input;
    const ImVec2 start = *picture.drag_start;
    picture.drag_start.reset();
    const ImVec2 way = mouse - start;
    if (std::max(std::abs(way.x), std::abs(way.y)) >= px(kLeastBox)) {
        input.box = box_between(start, mouse);
        return input;
    }
    input.clicked = dot_under(plot, start);
    input.clicked_nothing = !input.clicked;
    return input;
}

}  // namespace

ImVec2 MovementPicture::at(const MovementView& view, double x, double y) const {
    const double along = std::log(x / view.first_x) / std::log(view.last_x / view.first_x);
    const double up = std::log(y / view.first_y) / std::log(view.last_y / view.first_y);
    return {corner.x + size.x * static_cast<float>(along),
            corner.y + size.y * static_cast<float>(1 - up)};
}

MovementInput draw_movement_plot(const MovementView& view, const MovementLook& look, ImVec2 size,
                                 MovementPicture& picture) {
    MovementInput input;
    if (view.traces.empty() || !ImPlot::BeginPlot("##roofline", size, kPlainPlot)) return input;
    set_up_roof_axes(view, picture.size.x > 0 ? picture.size.x : size.x);
    const RoofPlot plot{view, look, ImPlot::GetPlotDrawList(), ImPlot::GetPlotPos(),
                        ImPlot::GetPlotSize()};
    picture.corner = plot.corner;
    picture.size = plot.size;
    input = read_mouse(plot, picture);
    ImPlot::PushPlotClipRect();
    draw_gutter(plot);
    draw_roof(plot);
    draw_axis_name(plot.draw, "flop per byte");
    draw_all_dots(plot, input.hovered);
    draw_arrows(plot, input.hovered);
    draw_names(plot, draw_roof_legend(plot));
    draw_box(plot, picture);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    return input;
}

}  // namespace app
