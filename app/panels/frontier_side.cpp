#include "app/panels/frontier_side.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace app {
namespace {

using profiler::PathStep;
using profiler::RecipeDot;
using profiler::RecipeFrontierView;
using profiler::RecipePath;

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows figures_of(const RecipeFrontierView& view, const RecipeDot& dot) {
    const std::string at = fmt::format(" at batch {}", view.batch_size);
    Rows rows{{profiler::kPeakOnGpu + at, dot.memory_text},
              {"Step" + at, dot.step_text},
              {"Sequences/s" + at, dot.rate_text},
              {profiler::kLargestBatch, dot.max_batch_text},
              {profiler::kBestRate, dot.best_text}};
    return rows;
}

void draw_figures(const Rows& rows) {
    if (!ImGui::BeginTable("##figures", 2, ImGuiTableFlags_SizingStretchProp)) return;
    for (const auto& [label, value] : rows) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(label);
        ImGui::TableNextColumn();
        right_text(value);
    }
    ImGui::EndTable();
}

void draw_buttons(const FrontierSide& side, size_t dot, FrontierSideInput& input) {
    {
        const ScopedDisabled nothing(!side.can_show_as_b);
        if (ImGui::Button(ICON_CODE_COMPARE "  Show as B###show_as_b")) input.show_as_b = dot;
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
        ImGui::SetTooltip("%s", side.can_show_as_b
                                    ? "Predict the step of A with this recipe and show it as B"
                                    : "Open a trace first: B is its step with this recipe");
    }
    ImGui::SameLine(0, px(5));
    if (ImGui::Button(ICON_RECORD "  Capture to verify###verify")) input.capture = dot;
    ImGui::SetItemTooltip(
        "Put this recipe into the Capture panel. Its trace is then drawn as a solid dot, joined to "
        "the prediction");
}

void draw_best(const RecipeFrontierView& view, const FrontierSide& side, FrontierSideInput& input) {
    const ScopedId id("best");
    dim_text("Fastest " + side.limit_text);
    if (!side.best) {
        colored_text(palette().bad, ICON_TRIANGLE_EXCLAMATION);
        ImGui::SameLine(0, px(6));
        note_text(view.axis == profiler::FrontierAxis::kPeakMemory
                      ? "No recipe needs so little. Move the limit to the right, or choose a "
                        "smaller batch."
                      : "No recipe fits so large a batch. Move the limit to the left.");
        return;
    }
    const RecipeDot& dot = view.dots[*side.best];
    {
        const ScopedColor ink(ImGuiCol_Text, palette().good);
        const ScopedFont bold(fonts().bold);
        ImGui::PushTextWrapPos(0);
        text(dot.title);
        ImGui::PopTextWrapPos();
    }
    note_text(dot.detail);
    draw_figures(figures_of(view, dot));
    draw_buttons(side, *side.best, input);
}

void draw_near_tie(const RecipeFrontierView& view, const FrontierSide& side) {
    const auto smaller = side.best ? profiler::smaller_near_tie(view, *side.best) : std::nullopt;
    if (!smaller) return;
    ImGui::Dummy({0, px(8)});
    dim_text("Almost as fast");
    const RecipeDot& dot = view.dots[*smaller];
    note_text(fmt::format("{}: {}, {} sequences/s.", dot.title, dot.memory_text, dot.rate_text));
}

void draw_path_row(const PathStep& step, const std::string& number) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    dim_text(number);
    ImGui::TableNextColumn();
    text(fit_to(step.change, ImGui::GetContentRegionAvail().x));
    ImGui::SetItemTooltip("%s\n%s", step.change.c_str(), step.recipe.c_str());
    for (const std::string* value : {&step.memory_text, &step.time_text, &step.gain_text}) {
        ImGui::TableNextColumn();
        right_text(*value);
    }
}

void draw_path_table(const RecipePath& path) {
    const ImGuiTableFlags flags =
        ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH;
    const ScopedFont small(fonts().text, kSmallSize);
    if (!ImGui::BeginTable("##path", 5, flags)) return;
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, em(0.8F));
    ImGui::TableSetupColumn("Switch to", ImGuiTableColumnFlags_WidthStretch);
    constexpr std::array<const char*, 3> kFigures{"Memory", "Step", "Gain"};
    for (const char* figure : kFigures) ImGui::TableSetupColumn(figure);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    ImGui::TableNextColumn();
    ImGui::TableHeader("Switch to");
    for (const char* figure : kFigures) {
        ImGui::TableNextColumn();
        right_text(figure);
    }
    int number = 0;
    for (const PathStep& step : path.steps) draw_path_row(step, std::to_string(++number));
    if (path.steps.size() > 1) {
        const ScopedFont bold(fonts().bold, kSmallSize);
        draw_path_row(path.total, "");
    }
    ImGui::EndTable();
}

void draw_path(const RecipeFrontierView& view, const RecipePath& path, const FrontierSide& side,
               bool has_selection, FrontierSideInput& input) {
    if (!side.from || !side.to) return;
    const ScopedId id("path");
    const RecipeDot &from = view.dots[*side.from], &to = view.dots[*side.to];
    dim_text("What to switch, in this order");
    ImGui::SameLine(0, px(6));
    help_marker(
        "From the first dot to the second, one switch a step, each from its own plan. First what "
        "saves memory and costs no time, then by memory saved for each millisecond lost.\nClick a "
        "dot and then another to choose the two; Ctrl + click replaces the second.");
    if (has_selection) {
        ImGui::SameLine(0, px(6));
        if (ImGui::SmallButton(ICON_XMARK "###forget")) input.forget_selection = true;
        ImGui::SetItemTooltip("Forget the two dots");
    }
    {
        const ScopedFont bold(fonts().bold);
        ImGui::PushTextWrapPos(0);
        text(from.title + "  " ICON_ARROW_RIGHT "  " + to.title);
        ImGui::PopTextWrapPos();
    }
    if (!path.why_none.empty()) note_text(path.why_none);
    if (!path.steps.empty()) draw_path_table(path);
    if (side.to != side.best) draw_buttons(side, *side.to, input);
}

void draw_measured(const RecipeFrontierView& view) {
    if (view.measured.empty()) return;
    dim_text("Measured");
    ImGui::SameLine(0, px(6));
    help_marker(
        "Open traces of this step: solid in the picture, with a line to their prediction. The CUDA "
        "context of the plan is added to their memory. A trace of the CPU tells nothing of the "
        "time on a GPU; it is a diamond at its predicted throughput.");
    for (const profiler::MeasuredDot& dot : view.measured) {
        const ScopedFont bold(fonts().bold);
        colored_text(palette().warn, ICON_CIRCLE);
        ImGui::SameLine(0, px(6));
        text(fit_to(dot.name, ImGui::GetContentRegionAvail().x));
        const ScopedFont regular(fonts().text);
        note_text(fmt::format("{} {}", profiler::kPeakOnGpu, dot.memory_text));
        if (!dot.rate_text.empty()) note_text("Sequences/s " + dot.rate_text);
    }
}

}  // namespace

FrontierSideInput draw_frontier_side(const RecipeFrontierView& view, const RecipePath& path,
                                     const FrontierSide& side, bool has_selection) {
    FrontierSideInput input;
    // What was asked for comes first.
    if (has_selection) {
        draw_path(view, path, side, has_selection, input);
        ImGui::Dummy({0, px(8)});
    }
    draw_best(view, side, input);
    if (!has_selection) {
        ImGui::Dummy({0, px(8)});
        draw_path(view, path, side, has_selection, input);
    }
    draw_near_tie(view, side);
    ImGui::Dummy({0, px(8)});
    draw_measured(view);
    return input;
}

void draw_dot_tooltip(const RecipeFrontierView& view, size_t index) {
    const RecipeDot& dot = view.dots[index];
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(26));
    bold_text(dot.title);
    note_text(dot.detail);
    readout_table(figures_of(view, dot));
    for (const profiler::MeasuredDot& measured : view.measured) {
        if (measured.dot != index) continue;
        colored_text(palette().warn, "Measured peak on the GPU " + measured.memory_text);
        if (!measured.rate_text.empty()) {
            colored_text(palette().warn, "Measured sequences/s " + measured.rate_text);
        }
    }
    if (dot.beaten_by) {
        dim_text(fmt::format("{} is at least as good in both.", view.dots[*dot.beaten_by].title));
    }
    if (!dot.fits) {
        colored_text(palette().bad,
                     fmt::format("Batch {} does not fit on {}.", view.batch_size, view.gpu));
    }
    dim_text("Predicted. Click to select, double click to show as B.");
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

}  // namespace app
