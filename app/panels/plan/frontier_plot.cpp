#include "app/panels/plan/frontier_plot.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/imgui_canvas.h"
#include "app/widgets/plot.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/charts/figure.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace app {
namespace {

using profiler::FrontierAxis;
using profiler::RecipeDot;
using profiler::RecipeFrontierView;

constexpr float kDotRadius = 3.5F;
constexpr float kFrontierRadius = 5.5F;
constexpr float kReach = 12;     // of the mouse to a dot
constexpr float kSnap = 6;       // of the limit to a ceiling
constexpr float kGripReach = 7;  // of the mouse to the limit
constexpr float kMostName_em = 20;
constexpr const char* kNotFromZero = ", axis not from 0";

/// One frame's drawing: what the helpers below share.
struct Plot {
    const RecipeFrontierView& view;
    const FrontierOverlay& overlay;
    ImDrawList* draw;
    ImVec2 corner;
    ImVec2 size;
    double first_y;  // where the axis starts

    bool by_memory() const { return view.axis == FrontierAxis::kPeakMemory; }
    ImVec2 at(const RecipeDot& dot) const { return ImPlot::PlotToPixels(dot.x, dot.y); }
    ImVec2 at(size_t i) const { return at(view.dots[i]); }
    /// Of the GPU whose memory is the limit; null: the limit is another.
    const profiler::MemoryCeiling* ceiling_at_limit() const {
        for (const profiler::MemoryCeiling& ceiling : view.ceilings) {
            if (std::abs(ceiling.bytes - overlay.limit) < 1) return &ceiling;
        }
        return nullptr;
    }
    float bottom() const { return corner.y + size.y; }
    float right() const { return corner.x + size.x; }
    /// At the edge if it lies outside.
    float limit_x() const {
        return std::round(std::clamp(ImPlot::PlotToPixels(overlay.limit, 0.0).x, corner.x + px(1),
                                     right() - px(1)));
    }
};

float radius_of(const RecipeDot& dot) {
    return px(dot.is_on_frontier ? kFrontierRadius : kDotRadius);
}

/// Of the texts at the top of the plot: the title of y; the reason if all recipes have one largest
/// batch; two rows of names of GPUs if there are ceilings.
float height_of_names(const RecipeFrontierView& view) {
    const ScopedFont small(fonts().text, kSmallSize);
    const float rows = 1.0F + (view.same_batch_reason.empty() ? 0.0F : 1.0F) +
                       (view.ceilings.empty() ? 0.0F : 2.0F);
    return rows * (ImGui::GetTextLineHeight() + px(1)) + px(18);  // with room for a ring
}

/// What stands at the bottom: the tag of the limit and the title of x.
float height_of_tags() {
    const ScopedFont small(fonts().text, kSmallSize);
    return 2 * ImGui::GetTextLineHeight() + px(10);
}

/// The view's range of y, wider where dots would lie behind the texts at the top and the bottom of
/// a plot of this height.
std::pair<double, double> y_clear_of_texts(const RecipeFrontierView& view, float height) {
    if (view.dots.empty()) return {view.first_y, view.last_y};
    const auto [low, high] =
        std::minmax_element(view.dots.begin(), view.dots.end(),
                            [](const RecipeDot& a, const RecipeDot& b) { return a.y < b.y; });
    const double above = static_cast<double>(height_of_names(view) / height);
    const double below = static_cast<double>(height_of_tags() / height);
    const double range = (high->y - low->y) / std::max(0.3, 1 - above - below);
    return {std::clamp(low->y - below * range, 0.0, view.first_y),
            std::max(view.last_y, high->y + above * range)};
}

void set_up_axes(const RecipeFrontierView& view, ImVec2 size, FrontierPicture& picture) {
    using profiler::AxisUnit;
    const bool by_memory = view.axis == FrontierAxis::kPeakMemory;
    const auto [first_y, last_y] = y_clear_of_texts(view, size.y);
    picture.first_y = first_y;
    picture.last_y = last_y;
    setup_fixed_axes(
        {.unit = by_memory ? AxisUnit::kBytes : AxisUnit::kCount,
         .first = view.first_x,
         .last = view.last_x,
         .length_px = size.x},
        {.unit = AxisUnit::kRate, .first = first_y, .last = last_y, .length_px = size.y});
}

/// What the axes show, at their ends.
void draw_titles(const Plot& plot) {
    const ScopedFont small(fonts().text, kSmallSize);
    std::string y = plot.by_memory()
                        ? fmt::format("Sequences per second at batch {}", plot.view.batch_size)
                        : "Sequences per second at each recipe's best batch";
    std::string x = plot.by_memory()
                        ? profiler::kPeakOnGpu
                        : fmt::format("{} on {}", profiler::kLargestBatch, plot.view.gpu);
    if (plot.first_y > 0) y += kNotFromZero;
    if (plot.view.first_x > 0) x += kNotFromZero;
    const ImVec2 at = plot.corner + ImVec2(px(7), px(4));
    plot.draw->AddText(at, palette().dim, y.c_str());
    if (!plot.view.same_batch_reason.empty()) {
        const std::string why = fit_to(plot.view.same_batch_reason, plot.right() - at.x - px(7));
        plot.draw->AddText({at.x, at.y + ImGui::GetTextLineHeight() + px(1)}, palette().text,
                           why.c_str());
    }
    plot.draw->AddText(
        {plot.right() - text_width(x) - px(7), plot.bottom() - ImGui::GetTextLineHeight() - px(4)},
        palette().dim, x.c_str());
}

ImU32 color_of(const profiler::MemoryCeiling& ceiling) {
    return ceiling.is_chosen ? palette().bad : palette().dim;
}

float x_of(const profiler::MemoryCeiling& ceiling) {
    return std::round(ImPlot::PlotToPixels(ceiling.bytes, 0.0).x);
}

bool is_inside(const Plot& plot, const profiler::MemoryCeiling& ceiling) {
    return x_of(ceiling) >= plot.corner.x && x_of(ceiling) <= plot.right();
}

void draw_lines_of_ceilings(const Plot& plot) {
    for (const profiler::MemoryCeiling& ceiling : plot.view.ceilings) {
        if (!is_inside(plot, ceiling)) continue;
        const float x = x_of(ceiling);
        if (ceiling.is_chosen) {
            plot.draw->AddRectFilled({x, plot.corner.y}, {plot.right(), plot.bottom()},
                                     with_alpha(palette().bad, 0.06F));
        }
        plot.draw->AddLine({x, plot.corner.y}, {x, plot.bottom()},
                           with_alpha(color_of(ceiling), ceiling.is_chosen ? 0.9F : 0.45F),
                           px(ceiling.is_chosen ? 2.0F : 1.0F));
    }
}

/// At the top, one below the other where they would overlap. A ceiling that equals the limit and is
/// off the axis gets no name here: the limit's tag names it.
void draw_names_of_ceilings(const Plot& plot) {
    constexpr int kMostRows = 4;
    struct Name {
        const profiler::MemoryCeiling* ceiling = nullptr;
        std::string text;
    };
    const auto font_of = [](const profiler::MemoryCeiling& ceiling) {
        return ceiling.is_chosen ? fonts().bold : fonts().text;
    };
    const float margin = px(5);  // around a name
    const profiler::Rect frame = to_rect(plot.corner, plot.size);
    std::vector<Name> names;
    std::vector<profiler::LabelWish> wishes;
    for (const profiler::MemoryCeiling& ceiling : plot.view.ceilings) {
        const float x = x_of(ceiling);
        if (!is_inside(plot, ceiling) && &ceiling == plot.ceiling_at_limit()) continue;
        const ScopedFont font(font_of(ceiling), kSmallSize);
        std::string name = fmt::format("{}  {}", ceiling.label,
                                       profiler::format_bytes(std::llround(ceiling.bytes)));
        if (x > plot.right()) name += "  " ICON_ARROW_RIGHT;
        if (x < plot.corner.x) name = ICON_ARROW_LEFT "  " + name;
        const float line = ImGui::GetTextLineHeight() + px(1);  // the first is the title of y
        wishes.push_back(profiler::in_rows({x, plot.corner.y + px(4) + line}, kMostRows,
                                           {text_width(name) + 2 * margin, line}, frame));
        names.push_back({&ceiling, std::move(name)});
    }
    const auto places = profiler::place_labels(wishes, {.frame = frame});
    for (size_t i = 0; i < names.size(); ++i) {
        if (!places[i]) continue;
        const ScopedFont font(font_of(*names[i].ceiling), kSmallSize);
        text_on_plate(plot.draw, corner_of(*places[i]) + ImVec2(margin, 0), names[i].text,
                      color_of(*names[i].ceiling), palette().plot, {2, 0});
    }
}

void draw_frontier_line(const RecipeFrontierView& view) {
    if (view.line_x.empty()) return;
    ImPlotSpec line;
    line.LineColor = to_vec4(palette().accent);
    line.LineWeight = px(2.25F);
    ImPlot::PlotLine("##frontier", view.line_x.data(), view.line_y.data(),
                     static_cast<int>(view.line_x.size()), line);
}

/// From dot to dot, one switch a step.
void draw_path(const Plot& plot) {
    ImGuiCanvas canvas(plot.draw);
    const profiler::LineStyle style{.color = current_theme().text, .width = 1.3, .alpha = 0.75};
    for (size_t i = 1; i < plot.overlay.path.size(); ++i) {
        profiler::draw_arrow(canvas, canvas.to_canvas(plot.at(plot.overlay.path[i - 1])),
                             canvas.to_canvas(plot.at(plot.overlay.path[i])), 5, style);
    }
}

/// Hollow: predicted. Dots of the frontier lie above the others.
void draw_dots(const Plot& plot, std::optional<size_t> hovered) {
    const auto draw = [&](size_t i) {
        const RecipeDot& dot = plot.view.dots[i];
        const float radius = radius_of(dot);
        const ImU32 color =
            dot.is_on_frontier ? palette().accent : with_alpha(palette().dim, 0.65F);
        plot.draw->AddCircleFilled(plot.at(dot), radius, palette().plot);
        plot.draw->AddCircle(plot.at(dot), radius, color, 0, px(dot.is_on_frontier ? 2.25F : 1.2F));
    };
    for (size_t i = 0; i < plot.view.dots.size(); ++i) {
        if (!plot.view.dots[i].is_on_frontier) draw(i);
    }
    for (const size_t i : plot.view.frontier) draw(i);
    const auto ring = [&](size_t i, ImU32 color) {
        plot.draw->AddCircle(plot.at(i), radius_of(plot.view.dots[i]) + px(3.5F), color, 0,
                             px(1.75F));
    };
    if (!plot.overlay.path.empty()) {
        ring(plot.overlay.path.front(), palette().text);
        ring(plot.overlay.path.back(), palette().text);
    }
    for (const profiler::MarkedDot& mark : plot.view.marks) {
        ring(mark.dot, mark.letter == "A" ? plot.overlay.color_a : plot.overlay.color_b);
    }
    if (plot.overlay.best) ring(*plot.overlay.best, palette().good);
    if (hovered) ring(*hovered, palette().text);
}

/// Solid: measured, with a line to its prediction. A diamond has only its memory measured.
void draw_measured(const Plot& plot) {
    for (const profiler::MeasuredDot& dot : plot.view.measured) {
        const ImVec2 at = ImPlot::PlotToPixels(dot.x, dot.y);
        const ImVec2 predicted = plot.at(dot.dot);
        plot.draw->AddLine(at, predicted, palette().warn, px(2));
        if (dot.is_memory_only) {
            plot.draw->AddNgonFilled(at, px(5.5F), palette().warn, 4);
        } else {
            plot.draw->AddCircleFilled(at, px(4.5F), palette().warn);
        }
    }
}

/// The panel says beside the plot which recipe is the fastest; its words would be too long here.
std::string name_in_plot(const Plot& plot, size_t i) {
    const RecipeDot& dot = plot.view.dots[i];
    return plot.overlay.best == i && !dot.is_preset ? "fastest" : dot.title;
}

struct DotLabel {
    ImVec2 dot;
    float radius = 0;
    std::string text;
    ImU32 color = 0;
    bool is_bold = false;
    std::string badge;  // "A"; empty: none
    ImU32 badge_color = 0;

    ImFont* font() const { return is_bold ? fonts().bold : fonts().text; }
};

std::vector<DotLabel> make_labels(const Plot& plot) {
    std::vector<DotLabel> labels;
    std::vector<size_t> named;
    const auto add = [&](size_t i, ImU32 color, bool is_bold) {
        if (std::find(named.begin(), named.end(), i) != named.end()) return;
        named.push_back(i);
        const RecipeDot& dot = plot.view.dots[i];
        DotLabel label{.dot = plot.at(dot),
                       .radius = radius_of(dot),
                       .text = fit_to(name_in_plot(plot, i), em(kMostName_em)),
                       .color = color,
                       .is_bold = is_bold,
                       .badge = {}};
        for (const profiler::MarkedDot& mark : plot.view.marks) {
            if (mark.dot != i) continue;
            label.badge_color = mark.letter == "A" ? plot.overlay.color_a : plot.overlay.color_b;
            label.badge = mark.letter;
            break;
        }
        labels.push_back(std::move(label));
    };
    for (const profiler::MarkedDot& mark : plot.view.marks) add(mark.dot, palette().text, true);
    if (plot.overlay.best) add(*plot.overlay.best, palette().good, true);
    if (!plot.overlay.path.empty()) {
        add(plot.overlay.path.front(), palette().text, true);
        add(plot.overlay.path.back(), palette().text, true);
    }
    for (const size_t i : plot.view.frontier) {
        if (plot.view.dots[i].is_preset) add(i, palette().text, false);
    }
    for (size_t i = 0; i < plot.view.dots.size(); ++i) {
        if (plot.view.dots[i].is_preset) add(i, palette().dim, false);
    }
    return labels;
}

/// From the edge of the dot to the label: which of several dots it names.
void draw_leader(ImDrawList* draw, const DotLabel& label, ImVec2 low, ImVec2 high) {
    const ImVec2 near{std::clamp(label.dot.x, low.x, high.x),
                      std::clamp(label.dot.y, low.y, high.y)};
    const ImVec2 way = near - label.dot;
    const float length = std::hypot(way.x, way.y);
    if (length <= label.radius) return;
    draw->AddLine(label.dot + way * (label.radius / length), near, label.color, px(1));
}

/// With its badge before the name.
ImVec2 size_of(const DotLabel& label) {
    const ScopedFont font(label.font(), kSmallSize);
    const float badge = label.badge.empty() ? 0 : letter_badge_size() + px(4);
    return {text_width(label.text) + badge + px(6), ImGui::GetTextLineHeight() + px(2)};
}

void draw_label(ImDrawList* draw, const DotLabel& label, ImVec2 low) {
    const ScopedFont font(label.font(), kSmallSize);
    const ImVec2 high = low + size_of(label);
    draw_leader(draw, label, low, high);
    draw->AddRectFilled(low, high, with_alpha(palette().plot, 0.82F), px(2));
    ImVec2 at{low.x + px(3), low.y + px(1)};
    if (!label.badge.empty()) {
        draw_letter_badge(draw, at, label.badge.c_str(), label.badge_color);
        at.x += letter_badge_size() + px(4);
    }
    draw->AddText(at, label.color, label.text.c_str());
}

/// Names stand between the texts at the top and at the bottom. A bold one may cover dots.
void draw_labels(const Plot& plot) {
    const float top = height_of_names(plot.view);
    const float below = height_of_tags();
    profiler::LabelRoom room{
        .frame = to_rect(plot.corner + ImVec2(0, top), plot.size - ImVec2(0, top + below))};
    for (const RecipeDot& dot : plot.view.dots) {
        room.dots.push_back(profiler::square_around(to_point(plot.at(dot)), px(2)));
    }
    const std::vector<DotLabel> labels = make_labels(plot);
    std::vector<profiler::LabelWish> wishes;
    for (const DotLabel& label : labels) {
        wishes.push_back(profiler::beside_dot(to_point(label.dot), label.radius + px(4),
                                              to_size(size_of(label))));
        wishes.back().may_cover_dots = label.is_bold;
    }
    const auto places = profiler::place_labels(wishes, room);
    for (size_t i = 0; i < labels.size(); ++i) {
        if (places[i]) draw_label(plot.draw, labels[i], corner_of(*places[i]));
    }
}

/// A line with its value in a tag at the bottom, by which it is dragged. A limit outside of the
/// axis has only the tag, with an arrow to where it is.
void draw_limit(const Plot& plot) {
    const ScopedFont bold(fonts().bold, kSmallSize);
    const float x = plot.limit_x();
    const bool is_outside =
        plot.overlay.limit < plot.view.first_x || plot.overlay.limit > plot.view.last_x;
    const auto* const ceiling = is_outside ? plot.ceiling_at_limit() : nullptr;
    std::string text = plot.by_memory() ? "limit " : "at least ";
    if (ceiling != nullptr) text += ceiling->label + "  ";
    text += plot.overlay.limit_text;
    if (plot.overlay.limit < plot.view.first_x) {
        text = ICON_ARROW_LEFT "  " + text;
    } else if (plot.overlay.limit > plot.view.last_x) {
        text += "  " ICON_ARROW_RIGHT;
    } else {
        plot.draw->AddLine({x, plot.corner.y}, {x, plot.bottom()}, palette().good, px(1.5F));
    }
    draw_tag(plot.draw, {x, plot.bottom() - tag_height() - px(4)}, text, palette().good);
}

std::optional<size_t> dot_under_mouse(const Plot& plot) {
    const ImVec2 mouse = ImGui::GetMousePos();
    std::optional<size_t> nearest;
    float least = px(kReach) * px(kReach);
    for (size_t i = 0; i < plot.view.dots.size(); ++i) {
        const ImVec2 at = plot.at(i);
        const float x = at.x - mouse.x, y = at.y - mouse.y;
        // The mouse prefers dots of the frontier: they are drawn above the others.
        const float squared = (x * x + y * y) * (plot.view.dots[i].is_on_frontier ? 0.6F : 1.0F);
        if (squared >= least) continue;
        least = squared;
        nearest = i;
    }
    return nearest;
}

/// Where the mouse drags the limit: at a ceiling if one is near.
double dragged_limit(const Plot& plot) {
    const ImVec2 mouse = ImGui::GetMousePos();
    for (const profiler::MemoryCeiling& ceiling : plot.view.ceilings) {
        const float x = ImPlot::PlotToPixels(ceiling.bytes, 0.0).x;
        if (std::abs(x - mouse.x) < px(kSnap)) return ceiling.bytes;
    }
    const double value = ImPlot::GetPlotMousePos().x;
    const double limit = std::clamp(value, plot.view.first_x, plot.view.last_x);
    return plot.by_memory() ? limit : std::round(limit);
}

FrontierInput read_mouse(const Plot& plot, bool& is_dragging) {
    FrontierInput input;
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) is_dragging = false;
    const bool is_over = ImPlot::IsPlotHovered();
    if (!is_dragging && !is_over) return input;
    if (!is_dragging) input.hovered = dot_under_mouse(plot);
    const bool at_grip = std::abs(ImGui::GetMousePos().x - plot.limit_x()) < px(kGripReach);
    const bool pressed = is_over && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
    if (!input.hovered && at_grip && pressed) is_dragging = true;
    if (is_dragging || (!input.hovered && at_grip)) {
        ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    } else if (input.hovered) {
        ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    }
    if (is_dragging) {
        input.limit = dragged_limit(plot);
    } else if (pressed && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        input.double_clicked = input.hovered;
    } else if (pressed) {
        input.clicked = input.hovered;
        input.clicked_nothing = !input.hovered;
    }
    return input;
}

}  // namespace

ImVec2 FrontierPicture::at(const RecipeFrontierView& view, size_t dot) const {
    const double x = (view.dots[dot].x - view.first_x) / (view.last_x - view.first_x);
    const double y = (view.dots[dot].y - first_y) / (last_y - first_y);
    return {corner.x + size.x * static_cast<float>(x),
            corner.y + size.y * static_cast<float>(1 - y)};
}

FrontierInput draw_frontier_plot(const RecipeFrontierView& view, const FrontierOverlay& overlay,
                                 ImVec2 size, FrontierPicture& picture) {
    FrontierInput input;
    if (!ImPlot::BeginPlot("##frontier", size, kPlainPlot)) return input;
    set_up_axes(view, size, picture);
    const Plot plot{view,
                    overlay,
                    ImPlot::GetPlotDrawList(),
                    ImPlot::GetPlotPos(),
                    ImPlot::GetPlotSize(),
                    picture.first_y};
    picture.corner = plot.corner;
    picture.size = plot.size;
    picture.limit_x = plot.limit_x();
    input = read_mouse(plot, picture.is_dragging);
    ImPlot::PushPlotClipRect();
    draw_lines_of_ceilings(plot);
    draw_names_of_ceilings(plot);
    ImPlot::PopPlotClipRect();
    draw_frontier_line(view);
    ImPlot::PushPlotClipRect();
    draw_titles(plot);
    draw_limit(plot);
    draw_path(plot);
    draw_dots(plot, input.hovered);
    draw_measured(plot);
    draw_labels(plot);
    ImPlot::PopPlotClipRect();
    ImPlot::EndPlot();
    return input;
}

}  // namespace app
