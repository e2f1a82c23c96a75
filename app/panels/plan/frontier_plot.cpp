#include "app/panels/plan/frontier_plot.h"

#include "app/panels/parts/dot_labels.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/marks.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
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
constexpr const char* kNotFromZero = ", axis not from 0";

/// One frame's drawing: what the helpers below share.
struct Plot {
    const RecipeFrontierView& view;
    const FrontierLook& look;
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
            if (std::abs(ceiling.bytes - look.limit) < 1) return &ceiling;
        }
        return nullptr;
    }
    float bottom() const { return corner.y + size.y; }
    float right() const { return corner.x + size.x; }
    /// At the edge if it lies outside.
    float limit_x() const {
        return std::round(
            std::clamp(ImPlot::PlotToPixels(look.limit, 0.0).x, corner.x + px(1), right() - px(1)));
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
    ImPlot::SetupAxes(nullptr, nullptr, kFixedAxis, kFixedAxis);
    setup_ticks(ImAxis_X1, by_memory ? AxisUnit::kBytes : AxisUnit::kCount, view.first_x,
                view.last_x, size.x);
    setup_ticks(ImAxis_Y1, AxisUnit::kRate, first_y, last_y, size.y);
    ImPlot::SetupAxisLimits(ImAxis_X1, view.first_x, view.last_x, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, first_y, last_y, ImPlotCond_Always);
    ImPlot::SetupFinish();
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
    float free_from = plot.corner.x;
    float row = 0;
    for (const profiler::MemoryCeiling& ceiling : plot.view.ceilings) {
        const float x = x_of(ceiling);
        if (!is_inside(plot, ceiling) && &ceiling == plot.ceiling_at_limit()) continue;
        const ScopedFont font(ceiling.is_chosen ? fonts().bold : fonts().text, kSmallSize);
        std::string name = fmt::format("{}  {}", ceiling.label,
                                       profiler::format_bytes(std::llround(ceiling.bytes)));
        if (x > plot.right()) name += "  " ICON_ARROW_RIGHT;
        if (x < plot.corner.x) name = ICON_ARROW_LEFT "  " + name;
        const float width = text_width(name);
        const float left =
            std::clamp(x + px(5), plot.corner.x + px(5),
                       std::max(plot.corner.x + px(5), plot.right() - width - px(5)));
        row = left < free_from ? row + 1 : 0;
        free_from = left + width + px(10);
        const float step = ImGui::GetTextLineHeight() + px(1);
        text_on_plate(plot.draw, {std::round(left), plot.corner.y + px(4) + step * (row + 1)}, name,
                      color_of(ceiling), palette().plot, {2, 0});
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
    for (size_t i = 1; i < plot.look.path.size(); ++i) {
        const ImVec2 from = plot.at(plot.look.path[i - 1]);
        const ImVec2 to = plot.at(plot.look.path[i]);
        plot.draw->AddLine(from, to, with_alpha(palette().text, 0.75F), px(1.5F));
        const float x = to.x - from.x, y = to.y - from.y;
        const float length = std::sqrt(x * x + y * y);
        if (length < px(14)) continue;
        const ImVec2 along{x / length, y / length};
        const ImVec2 tip = to - along * px(6);
        const ImVec2 back = tip - along * px(7);
        const ImVec2 across{-along.y * px(3.5F), along.x * px(3.5F)};
        plot.draw->AddTriangleFilled(tip, back + across, back - across, palette().text);
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
    if (!plot.look.path.empty()) {
        ring(plot.look.path.front(), palette().text);
        ring(plot.look.path.back(), palette().text);
    }
    for (const profiler::MarkedDot& mark : plot.view.marks) {
        ring(mark.dot, mark.letter == "A" ? plot.look.color_a : plot.look.color_b);
    }
    if (plot.look.best) ring(*plot.look.best, palette().good);
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
    return plot.look.best == i && !dot.is_preset ? "fastest" : dot.title;
}

std::vector<DotLabel> make_labels(const Plot& plot) {
    std::vector<DotLabel> labels;
    std::vector<size_t> named;
    const auto add = [&](size_t i, ImU32 color, bool is_bold) {
        if (std::find(named.begin(), named.end(), i) != named.end()) return;
        named.push_back(i);
        const RecipeDot& dot = plot.view.dots[i];
        DotLabel label{.dot = plot.at(dot),
                       .radius = radius_of(dot),
                       .text = name_in_plot(plot, i),
                       .color = color,
                       .is_bold = is_bold,
                       .badge = {},
                       .shape = {}};
        for (const profiler::MarkedDot& mark : plot.view.marks) {
            if (mark.dot != i) continue;
            label.badge_color = mark.letter == "A" ? plot.look.color_a : plot.look.color_b;
            label.badge = mark.letter;
            break;
        }
        labels.push_back(std::move(label));
    };
    for (const profiler::MarkedDot& mark : plot.view.marks) add(mark.dot, palette().text, true);
    if (plot.look.best) add(*plot.look.best, palette().good, true);
    if (!plot.look.path.empty()) {
        add(plot.look.path.front(), palette().text, true);
        add(plot.look.path.back(), palette().text, true);
    }
    for (const size_t i : plot.view.frontier) {
        if (plot.view.dots[i].is_preset) add(i, palette().text, false);
    }
    for (size_t i = 0; i < plot.view.dots.size(); ++i) {
        if (plot.view.dots[i].is_preset) add(i, palette().dim, false);
    }
    return labels;
}

void draw_labels(const Plot& plot) {
    std::vector<ImVec2> dots;
    for (const RecipeDot& dot : plot.view.dots) dots.push_back(plot.at(dot));
    const ScopedFont small(fonts().text, kSmallSize);
    const float top = height_of_names(plot.view);
    const float below = height_of_tags();
    draw_dot_labels(plot.draw, make_labels(plot), dots,
                    {{plot.corner.x, plot.corner.y + top}, {plot.right(), plot.bottom() - below}});
}

/// A line with its value in a tag at the bottom, by which it is dragged. A limit outside of the
/// axis has only the tag, with an arrow to where it is.
void draw_limit(const Plot& plot) {
    const ScopedFont bold(fonts().bold, kSmallSize);
    const float x = plot.limit_x();
    const bool is_outside =
        plot.look.limit < plot.view.first_x || plot.look.limit > plot.view.last_x;
    const auto* const ceiling = is_outside ? plot.ceiling_at_limit() : nullptr;
    std::string text = plot.by_memory() ? "limit " : "at least ";
    if (ceiling != nullptr) text += ceiling->label + "  ";
    text += plot.look.limit_text;
    if (plot.look.limit < plot.view.first_x) {
        text = ICON_ARROW_LEFT "  " + text;
    } else if (plot.look.limit > plot.view.last_x) {
        text += "  " ICON_ARROW_RIGHT;
    } else {
        plot.draw->AddLine({x, plot.corner.y}, {x, plot.bottom()}, palette().good, px(1.5F));
    }
    const ImVec2 box{text_width(text) + px(10), ImGui::GetTextLineHeight() + px(3)};
    const float left = std::clamp(x - box.x / 2, plot.corner.x, plot.right() - box.x);
    const float top = plot.bottom() - 2 * box.y - px(4);
    text_on_plate(plot.draw, {left + px(5), top + px(1)}, text, ink_on(palette().good),
                  palette().good, {5, 1});
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

FrontierInput draw_frontier_plot(const RecipeFrontierView& view, const FrontierLook& look,
                                 ImVec2 size, FrontierPicture& picture) {
    FrontierInput input;
    if (!ImPlot::BeginPlot("##frontier", size, kPlainPlot)) return input;
    set_up_axes(view, size, picture);
    const Plot plot{view,
                    look,
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
