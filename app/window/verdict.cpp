#include "app/window/verdict.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/layout.h"
#include "app/window/ui.h"
#include "app/window/windows.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

/// A change from A to B.
struct ChangeLine {
    std::string label;
    std::string text;  // "-30.0 %"; empty when A has none
    ImU32 color = 0;
    std::string of_both;  // "14.8 GiB in A, 10.3 GiB in B"
};

/// What the line says.
struct VerdictText {
    ImU32 color = 0;  // of the stripe at its left
    std::string headline;
    std::string details;              // behind figures of a pair, or in the place of them
    std::vector<ChangeLine> changes;  // of a pair
    std::string outlook;              // leads to the remedies
};

std::string text_of_both(std::string_view a, std::string_view b) {
    return fmt::format("{} in A, {} in B", a, b);
}

ChangeLine change_line(std::string label, int64_t from_bytes, int64_t to_bytes) {
    if (from_bytes <= 0) return {std::move(label), "", 0, ""};
    const double ratio =
        static_cast<double>(to_bytes - from_bytes) / static_cast<double>(from_bytes);
    const bool equal = std::abs(ratio) < 0.0005;  // reads as 0.0 %
    const ImU32 tone = ratio < 0 ? palette().good : palette().bad;
    return {std::move(label), profiler::format_percent(ratio, true), equal ? palette().text : tone,
            text_of_both(profiler::format_bytes(from_bytes), profiler::format_bytes(to_bytes))};
}

/// Green where B needs less, or does more.
ChangeLine change_line(const profiler::PairFigure& figure) {
    const bool is_good = (figure.sign > 0) == figure.more_is_good;
    const ImU32 tone = figure.sign == 0 ? palette().text : is_good ? palette().good : palette().bad;
    std::string label = figure.label;
    label.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(label.front())));
    return {std::move(label), figure.difference.empty() ? "same" : figure.difference, tone,
            text_of_both(figure.value[0], figure.value[1])};
}

bool is_pair(const Selection& selection) {
    return selection.a && selection.b && selection.a->has_step && selection.b->has_step;
}

/// The most important one first. None where memory ran out: nobody knows what it would have needed.
/// None of two different steps: their change means nothing.
std::vector<ChangeLine> changes(const Workspace& workspace) {
    const Document &a = *workspace.selection().a, &b = *workspace.selection().b;
    if (a.is_cut_off || b.is_cut_off || a.workload != b.workload) return {};
    std::vector<ChangeLine> lines{
        change_line("Peak", a.index->peak().allocated_bytes, b.index->peak().allocated_bytes)};
    for (const profiler::PairFigure& figure : workspace.pair_figures()) {
        lines.push_back(change_line(figure));
    }
    lines.push_back(change_line("Saved for backward", a.index->ledger().total_bytes,
                                b.index->ledger().total_bytes));
    std::erase_if(lines, [](const ChangeLine& line) { return line.text.empty(); });
    return lines;
}

/// "B, del logits after the loss, peaks at 33.5 GiB; A runs out of memory."
std::string plain_headline(const Selection& selection) {
    const auto peak = [](const Document& document) {
        return document.is_cut_off ? "runs out of memory at " + document.peak_text()
                                   : "peaks at " + document.peak_text();
    };
    return fmt::format("B {}; A {}.", peak(*selection.b), peak(*selection.a));
}

VerdictText verdict_of_pair(const Workspace& workspace) {
    const Selection& selection = workspace.selection();
    const int64_t less =
        selection.a->index->peak().allocated_bytes - selection.b->index->peak().allocated_bytes;
    VerdictText verdict{.color = selection.b->is_cut_off                ? palette().bad
                                 : less >= 0 || selection.a->is_cut_off ? palette().good
                                                                        : palette().warn,
                        .headline = workspace.headline(),
                        .details = {},
                        .changes = changes(workspace),
                        .outlook = {}};
    if (!verdict.headline.empty()) return verdict;
    verdict.headline = plain_headline(selection);
    if (selection.a->workload != selection.b->workload) {
        verdict.details =
            fmt::format("A is {}; B is {}.", selection.a->workload, selection.b->workload);
    }
    return verdict;
}

ImU32 color_of(profiler::Verdict verdict) {
    switch (verdict) {
        case profiler::Verdict::kOutOfMemory:
            return palette().bad;
        case profiler::Verdict::kGrows:
        case profiler::Verdict::kNearLimit:
            return palette().warn;
        case profiler::Verdict::kFits:
            break;
    }
    return palette().good;
}

VerdictText verdict_of(const Workspace& workspace) {
    const Selection& selection = workspace.selection();
    if (is_pair(selection)) return verdict_of_pair(workspace);
    if (const profiler::AdviceView* view = workspace.slots().advice.view()) {
        return {.color = color_of(view->explanation.verdict),
                .headline = view->explanation.sentence,
                .details = view->details,
                .changes = {},
                .outlook = view->outlook};
    }
    const auto comparison = workspace.comparison();
    if (!selection.a->has_step && comparison && !comparison->view.sentence.empty()) {
        return {.color = palette().accent,
                .headline = comparison->view.sentence,
                .details = {},
                .changes = {},
                .outlook = {}};
    }
    const std::string peak = selection.a->peak_text();
    return {.color = palette().dim,
            .headline = peak.empty() ? selection.a->workload : "The peak is " + peak + ".",
            .details = selection.a->workload,
            .changes = {},
            .outlook = {}};
}

constexpr float kHeadlineSize = 17;

/// The height of the headline, which wraps where it is wider than the window.
float headline_height(const std::string& headline, float width) {
    const ScopedFont bold(fonts().bold, kHeadlineSize);
    return ImGui::CalcTextSize(headline.c_str(), nullptr, false, width).y;
}

void draw_changes(const std::vector<ChangeLine>& lines, float right) {
    for (const ChangeLine& line : lines) {
        const float width = text_width(line.label) + text_width(line.text) + px(8);
        if (&line != &lines.front()) {
            ImGui::SameLine(0, px(22));
            if (ImGui::GetCursorPosX() + width > right) return ImGui::NewLine();
        }
        ImGui::BeginGroup();
        labelled_value(line.label, line.text, line.color);
        ImGui::EndGroup();
        ImGui::SetItemTooltip("%s", line.of_both.c_str());
    }
}

/// The line below the headline.
void draw_details(Ui& ui, const VerdictText& verdict, float right) {
    const float outlook = verdict.outlook.empty() ? 0 : text_width(verdict.outlook) + px(14);
    if (!verdict.changes.empty()) {
        draw_changes(verdict.changes, right);
    } else if (!verdict.details.empty()) {
        const std::string shown = fit_to(verdict.details, right - ImGui::GetCursorPosX() - outlook);
        dim_text(shown);
        if (shown != verdict.details) ImGui::SetItemTooltip("%s", verdict.details.c_str());
    }
    if (verdict.outlook.empty()) return;
    if (!verdict.details.empty() || !verdict.changes.empty()) ImGui::SameLine(0, px(10));
    const ScopedColor color(ImGuiCol_Text, palette().good);
    const ScopedColor ground(ImGuiCol_Button, 0);
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(2), 0});
    if (ImGui::Button((verdict.outlook + "###outlook").c_str())) show_panel(ui, "advice");
    ImGui::SetItemTooltip("Show the remedies");
}

}  // namespace

void draw_verdict(Ui& ui) {
    if (!ui.workspace.selection().a) return;
    const VerdictText verdict = verdict_of(ui.workspace);
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {px(16), px(7)});
    const ScopedStyle border(ImGuiStyleVar_WindowBorderSize, 0.0F);
    const ScopedStyle rounding(ImGuiStyleVar_WindowRounding, 0.0F);
    const float width = ImGui::GetMainViewport()->Size.x - px(32);
    const float headline = headline_height(verdict.headline, width);
    const float height = headline + ImGui::GetTextLineHeight() + px(22);
    if (begin_bar("##verdict", ImGuiDir_Up, height)) {
        const ImVec2 corner = ImGui::GetWindowPos();
        ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + px(4), corner.y + height},
                                                  verdict.color);
        {
            const ScopedFont bold(fonts().bold, kHeadlineSize);
            wrapped_text(verdict.headline);
        }
        draw_details(ui, verdict, ImGui::GetCursorPosX() + width);
    }
    ImGui::End();
}

}  // namespace app
