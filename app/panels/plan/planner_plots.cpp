#include "app/panels/plan/planner_plots.h"

#include "app/widgets/fonts.h"
#include "app/widgets/plot.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace app {
namespace {

using profiler::PlannerRecipe;
using profiler::PlannerView;

struct Label {
    std::string text;
    ImU32 color = 0;
    ImVec2 at;  // the point that it is about
};

void draw_line(const PlannerRecipe& recipe, ImU32 color, const std::vector<double>& x,
               const std::vector<double>& y, bool is_bold) {
    if (x.empty()) return;
    ImPlotSpec line;
    line.LineColor = to_vec4(color);
    line.LineWeight = px(is_bold ? 2.75F : 1.5F);
    ImPlot::PlotLine(recipe.name().c_str(), x.data(), y.data(), static_cast<int>(x.size()), line);
}

/// Where the times of a plan may be off.
void draw_band(const PlannerRecipe& recipe, ImU32 color) {
    if (recipe.speed_low.empty()) return;
    ImPlotSpec shade;
    shade.FillColor = to_vec4(color);
    shade.FillAlpha = 0.30F;
    ImPlot::PlotShaded(("##band" + recipe.name()).c_str(), recipe.speed_x.data(),
                       recipe.speed_low.data(), recipe.speed_high.data(),
                       static_cast<int>(recipe.speed_x.size()), shade);
}

/// The height of a line of points at `at`.
double value_at(const std::vector<double>& x, const std::vector<double>& y, double at) {
    const auto after = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), at) - x.begin());
    if (after == 0 || after >= x.size()) return after == 0 ? y.front() : y.back();
    const double share = (at - x[after - 1]) / (x[after] - x[after - 1]);
    return y[after - 1] + share * (y[after] - y[after - 1]);
}

/// The curves of the pins, each with its number at its end.
void draw_pins(std::span<const profiler::PlannerPin> pins, bool shows_memory) {
    const ScopedFont small(fonts().bold, kSmallSize);
    const profiler::Rect frame = to_rect(ImPlot::GetPlotPos(), ImPlot::GetPlotSize());
    for (size_t i = 0; i < pins.size(); ++i) {
        const PlannerRecipe& recipe = pins[i].recipe;
        const auto& x = shows_memory ? recipe.memory_x : recipe.speed_x;
        const auto& y = shows_memory ? recipe.memory_y : recipe.speed_y;
        if (x.empty()) continue;
        ImPlotSpec line;
        line.LineColor = to_vec4(with_alpha(palette().dim, 0.75F));
        line.LineWeight = px(1.25F);
        ImPlot::PlotLine(fmt::format("##pin{}", i).c_str(), x.data(), y.data(),
                         static_cast<int>(x.size()), line);
        const std::string number = std::to_string(i + 1);
        const double at_x = std::min(ImPlot::GetPlotLimits().X.Max, x.back());
        profiler::Point end = to_point(ImPlot::PlotToPixels(at_x, value_at(x, y, at_x)));
        end.y = std::clamp(end.y, frame.y, frame.bottom());
        const auto place = profiler::place_label(
            profiler::above_point(end, 0, {text_width(number), em(1)}, frame), {.frame = frame});
        if (!place) continue;
        ImPlot::GetPlotDrawList()->AddText(corner_of(*place), palette().dim, number.c_str());
    }
}

/// What the plot shows, above it. Returns the height that it takes.
float draw_title(const std::string& title, float width) {
    const ScopedFont small(fonts().text, kSmallSize);
    const ScopedStyle close(ImGuiStyleVar_ItemSpacing, ImVec2{0, px(2)});
    dim_text(fit_to(title, width));
    return ImGui::GetTextLineHeightWithSpacing();
}

/// Above their points or below them; labels on the left choose first.
void draw_labels(std::vector<Label> labels, std::vector<profiler::Rect> taken) {
    std::sort(labels.begin(), labels.end(),
              [](const Label& a, const Label& b) { return a.at.x < b.at.x; });
    const ImVec2 margin{px(5), 0};
    const profiler::Rect frame = to_rect(ImPlot::GetPlotPos(), ImPlot::GetPlotSize());
    std::vector<profiler::LabelWish> wishes;
    for (const Label& label : labels) {
        const ImVec2 size{text_width(label.text), ImGui::GetTextLineHeight() + px(1)};
        wishes.push_back(
            profiler::above_point(to_point(label.at), px(6), to_size(size + margin * 2), frame));
    }
    const auto places = profiler::place_labels(wishes, {.frame = frame, .taken = std::move(taken)});
    for (size_t i = 0; i < labels.size(); ++i) {
        if (!places[i]) continue;  // the table has it too
        text_on_plate(ImPlot::GetPlotDrawList(), corner_of(*places[i]) + margin, labels[i].text,
                      labels[i].color, with_alpha(palette().plot, 0.85F));
    }
}

/// The largest batch of each recipe, with its name: where its memory meets the ceiling, or below
/// that where something else limits it.
void draw_crossings(const PlannerView& view, const PlannerOverlay& overlay,
                    const profiler::Rect& ceiling_name) {
    const ScopedFont small(fonts().bold, kSmallSize);
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    const float ceiling = ImPlot::PlotToPixels(0.0, static_cast<double>(view.usable_bytes)).y;
    std::vector<Label> labels;
    for (size_t i = 0; i < view.recipes.size(); ++i) {
        const PlannerRecipe& recipe = view.recipes[i];
        const int64_t max_batch = recipe.row.max_batch_size.value_or(0);
        if (max_batch <= 0 || recipe.memory_x.empty()) continue;
        const auto batch = static_cast<double>(max_batch);
        const int64_t bytes = profiler::memory_at(recipe.row, batch).needed_bytes;
        const ImU32 color = recipe_color(overlay.colors[i]);
        const ImVec2 at = ImPlot::PlotToPixels(batch, static_cast<double>(bytes));
        draw->AddCircleFilled(at, px(4.5F), color);
        draw->AddCircle(at, px(4.5F), palette().plot, 0, px(1.25F));
        const ImVec2 foot{at.x, recipe.row.other_limit.empty() ? ceiling : at.y};
        labels.push_back(
            {fmt::format("{} {}{}", recipe.name(), profiler::max_batch_text(recipe.row),
                         profiler::max_batch_note(recipe.row)),
             color, foot});
    }
    draw_labels(std::move(labels), {ceiling_name});
}

/// The memory of the GPU. Its name is drawn later, over the curves.
void draw_ceiling(const PlannerView& view, const profiler::PlannerAxes& axes) {
    const auto usable = static_cast<double>(view.usable_bytes);
    const double above[2] = {usable, usable};
    const double top[2] = {axes.last_bytes, axes.last_bytes};
    const double ends[2] = {0, static_cast<double>(axes.last_batch)};
    ImPlotSpec shade;
    shade.FillColor = to_vec4(palette().bad);
    shade.FillAlpha = 0.07F;
    ImPlot::PlotShaded("##above", ends, above, top, 2, shade);
    const ImVec2 corner = ImPlot::GetPlotPos();
    const float y = ImPlot::PlotToPixels(0.0, usable).y;
    ImPlot::PushPlotClipRect();
    draw_dashed_line(ImPlot::GetPlotDrawList(), {corner.x, y},
                     {corner.x + ImPlot::GetPlotSize().x, y}, palette().text, px(1.5F));
    ImPlot::PopPlotClipRect();
}

/// Above the ceiling, where no curve is left of the first crossing; below it without room there.
profiler::Rect draw_name_of_ceiling(const PlannerView& view) {
    const auto usable = static_cast<double>(view.usable_bytes);
    const ScopedFont small(fonts().text, kSmallSize);
    const std::string name = fmt::format("{}: {}", profiler::short_gpu_name(view.gpu),
                                         profiler::format_bytes(view.usable_bytes));
    const ImVec2 foot = ImPlot::PlotToPixels(0.0, usable);
    const ImVec2 margin{px(7), 0};
    const profiler::Rect frame =
        to_rect(ImPlot::GetPlotPos() + margin, ImPlot::GetPlotSize() - margin);
    const auto place = profiler::place_label(
        profiler::above_point(to_point(foot), px(3), {text_width(name), ImGui::GetTextLineHeight()},
                              frame),
        {.frame = frame});
    if (!place) return {};
    text_on_plate(ImPlot::GetPlotDrawList(), corner_of(*place), name, palette().text,
                  palette().plot);
    return *place;
}

/// A line at the batch, with its number in the upper plot. It and the ceiling are neutral: every
/// other colour is a recipe's.
void draw_batch_cursor(int64_t batch_size, bool has_number) {
    const ScopedFont small(fonts().bold, kSmallSize);
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    const ImVec2 corner = ImPlot::GetPlotPos();
    const ImVec2 size = ImPlot::GetPlotSize();
    const float x = std::round(ImPlot::PlotToPixels(static_cast<double>(batch_size), 0.0).x);
    draw->AddLine({x, corner.y}, {x, corner.y + size.y}, palette().text, px(1.5F));
    if (!has_number) return;
    draw_tag(draw, {x, corner.y + size.y}, fmt::format("batch {}", batch_size), palette().text);
}

/// A press anywhere in the plot takes the cursor along.
std::optional<int64_t> dragged_batch(int64_t last_batch) {
    if (!ImPlot::IsPlotHovered()) return std::nullopt;
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) return std::nullopt;
    return std::clamp<int64_t>(std::llround(ImPlot::GetPlotMousePos().x), 1, last_batch);
}

/// One of the two plots; `draw` draws what is in it.
template <typename Draw>
void draw_plot(const char* id, const PlannerView& view, const PlannerOverlay& overlay, ImVec2 size,
               bool shows_memory, std::optional<int64_t>& dragged, Draw&& draw) {
    const std::string rates = view.band_text.empty()
                                  ? "Sequences per second"
                                  : fmt::format("Sequences per second, {}", view.band_text);
    size.y -= draw_title(
        shows_memory ? fmt::format("{} against the batch", profiler::kPeakOnGpu) : rates, size.x);
    if (!ImPlot::BeginPlot(id, size, kPlainPlot)) return;
    const profiler::PlannerAxes axes = profiler::axes_of(view, overlay.pins);
    setup_fixed_axes({.last = static_cast<double>(axes.last_batch),
                      .length_px = size.x,
                      .flags = shows_memory ? ImPlotAxisFlags_NoTickLabels : 0},
                     {.unit = shows_memory ? profiler::AxisUnit::kBytes : profiler::AxisUnit::kRate,
                      .last = shows_memory ? axes.last_bytes : axes.last_rate,
                      .length_px = size.y});
    if (shows_memory) draw_ceiling(view, axes);
    draw();
    ImPlot::PushPlotClipRect();
    draw_pins(overlay.pins, shows_memory);
    draw_batch_cursor(overlay.batch_size, shows_memory);
    if (shows_memory) draw_crossings(view, overlay, draw_name_of_ceiling(view));
    ImPlot::PopPlotClipRect();
    if (const auto batch = dragged_batch(axes.last_batch)) dragged = batch;
    ImPlot::EndPlot();
}

}  // namespace

std::optional<int64_t> draw_planner_plots(const PlannerView& view, const PlannerOverlay& overlay,
                                          ImVec2 size) {
    std::optional<int64_t> dragged;
    if (!ImPlot::BeginAlignedPlots("##planner")) return dragged;
    ImGui::BeginGroup();
    const float gap = ImGui::GetStyle().ItemSpacing.y;
    const float upper = std::round((size.y - gap) * 0.62F);
    draw_plot("##memory", view, overlay, {size.x, upper}, true, dragged, [&] {
        for (size_t i = 0; i < view.recipes.size(); ++i) {
            const PlannerRecipe& recipe = view.recipes[i];
            draw_line(recipe, recipe_color(overlay.colors[i]), recipe.memory_x, recipe.memory_y,
                      recipe.name() == overlay.focus);
        }
    });
    draw_plot("##speed", view, overlay, {size.x, size.y - gap - upper}, false, dragged, [&] {
        for (size_t i = 0; i < view.recipes.size(); ++i) {
            draw_band(view.recipes[i], recipe_color(overlay.colors[i]));
        }
        for (size_t i = 0; i < view.recipes.size(); ++i) {
            const PlannerRecipe& recipe = view.recipes[i];
            draw_line(recipe, recipe_color(overlay.colors[i]), recipe.speed_x, recipe.speed_y,
                      recipe.name() == overlay.focus);
        }
    });
    ImGui::EndGroup();
    ImPlot::EndAlignedPlots();
    return dragged;
}

}  // namespace app
