#include "app/panels/advice/advice_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/advice/advice_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::AdviceCard;
using profiler::AdviceView;
using profiler::Explanation;

struct Frame {
    const Workspace& workspace;
    const AdviceView& view;
    AdviceState& state;
    PanelEvents& events;
};

// ---- the target ---------------------------------------------------------------------------------

/// "to fit batch 96 on", and the GPU, which can be changed.
void draw_target(Frame& frame) {
    const profiler::ExplainTarget& target = frame.view.explanation.target;
    ImGui::AlignTextToFramePadding();
    dim_text(target.batch_size > 0 ? fmt::format("to fit batch {} on", target.batch_size)
                                   : "to fit it on");
    ImGui::SameLine(0, px(6));
    ImGui::SetNextItemWidth(std::min(em(13), ImGui::GetContentRegionAvail().x - em(2)));
    const std::string chosen = target.gpu.empty() ? "the recorded device" : target.gpu;
    if (const auto* gpu = gpu_list("##target", frame.workspace.gpus(), chosen)) {
        frame.events.advice.target = profiler::ExplainTarget{.gpu = gpu->id};
    }
    if (target.limit_bytes <= 0) return;
    ImGui::SameLine(0, px(8));
    const std::string limit = profiler::format_bytes(target.limit_bytes);
    if (text_width(limit) > ImGui::GetContentRegionAvail().x) return ImGui::NewLine();
    dim_text(limit);
    ImGui::SetItemTooltip("What the allocator may take there");
}

// ---- a card -------------------------------------------------------------------------------------

/// A word in a frame of its own colour.
void draw_badge(const profiler::TonedText& badge) {
    const ScopedFont small(fonts().text, kSmallSize);
    const ImU32 color =
        badge.tone == profiler::Tone::kNeutral ? palette().warn : tone_color(badge.tone);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 size{text_width(badge.text) + px(12), ImGui::GetTextLineHeight() + px(2)};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRect(corner, corner + size, with_alpha(color, 0.8F), px(4), px(1));
    draw->AddText({corner.x + px(6), corner.y + px(1)}, color, badge.text.c_str());
    ImGui::Dummy(size);
}

/// The place among the cards, in a disc.
void draw_number(size_t number) {
    const float side = ImGui::GetTextLineHeight() + px(3);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const std::string digits = std::to_string(number);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddCircleFilled(corner + ImVec2{side, side} / 2, side / 2, palette().raised);
    draw->AddText({std::round(corner.x + (side - text_width(digits)) / 2), corner.y + px(1.5F)},
                  palette().dim, digits.c_str());
    ImGui::Dummy({side, side});
}

constexpr float kFigureGap = 14;

/// The figures of each row, in a column of this width.
std::vector<std::span<const profiler::TonedText>> rows_of_figures(const AdviceCard& card,
                                                                  float width) {
    std::vector<std::span<const profiler::TonedText>> rows;
    const std::span figures(card.figures);
    for (size_t begin = 0, end = 0; begin < figures.size(); begin = end) {
        float used = text_width(figures[end++].text);
        for (; end < figures.size(); ++end) {
            used += px(kFigureGap) + text_width(figures[end].text);
            if (used > width) break;
        }
        rows.push_back(figures.subspan(begin, end - begin));
    }
    return rows;
}

void draw_figures(std::span<const profiler::TonedText> row) {
    for (const profiler::TonedText& figure : row) {
        if (&figure != &row.front()) ImGui::SameLine(0, px(kFigureGap));
        figure.tone == profiler::Tone::kNeutral
            ? dim_text(figure.text)
            : colored_text(tone_color(figure.tone), figure.text);
    }
}

/// What is to be pasted, as code on a ground of its own.
void draw_change(const profiler::PasteText& change) {
    if (!change.place.empty()) dim_text(change.place);
    const ScopedFont mono(fonts().mono, kSmallSize);
    const float width = ImGui::GetContentRegionAvail().x;
    const float margin = px(6);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height =
        ImGui::CalcTextSize(change.text.c_str(), nullptr, false, width - 2 * margin).y;
    ImGui::GetWindowDrawList()->AddRectFilled(corner, corner + ImVec2{width, height + 2 * margin},
                                              palette().plot, px(4));
    ImGui::SetCursorScreenPos(corner + ImVec2{margin, margin});
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width - 2 * margin);
    text(change.text);
    ImGui::PopTextWrapPos();
    ImGui::SetCursorScreenPos({corner.x, corner.y + height + 2 * margin});
    ImGui::Dummy({0, px(2)});
}

std::string paste_of(const AdviceCard& card) {
    std::string all;
    for (const profiler::PasteText& change : card.changes) {
        if (!all.empty()) all += '\n';
        all += change.text;
    }
    return all;
}

void draw_buttons(Frame& frame, const AdviceCard& card, const profiler::Remedy& remedy) {
    if (ImGui::Button(ICON_COPY "  Copy###copy")) ImGui::SetClipboardText(paste_of(card).c_str());
    ImGui::SetItemTooltip("Copy what is to be set or pasted");
    ImGui::SameLine();
    const DocumentPtr& a = frame.workspace.selection().a;
    if (frame.workspace.programs().is_trying(a, card.id)) return dim_text("running ...");
    const ScopedDisabled disabled(!remedy.can_be_run());
    if (ImGui::Button(ICON_PLAY "  Show as B###show_as_b")) {
        frame.events.advice.try_remedy = card.id;
    }
    ImGui::SetItemTooltip(
        "Run the program once more with this remedy, on a simulated GPU, and show it as B");
}

void draw_card(Frame& frame, size_t index) {
    const AdviceCard& card = frame.view.cards[index];
    const profiler::Remedy& remedy = frame.view.explanation.remedies[index];
    const ScopedId id(card.id.c_str());
    AdviceState& state = frame.state;
    const bool is_open =
        state.open_card.empty() ? index == 0 && !state.is_closed : state.open_card == card.id;
    const ImVec2 start = ImGui::GetCursorPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float left = start.x + px(12) + ImGui::GetTextLineHeight() + px(4);
    const auto rows = rows_of_figures(card, start.x + width - left);
    const float height = static_cast<float>(1 + rows.size()) * line + px(6);
    if (ImGui::Selectable("##card", is_open, ImGuiSelectableFlags_AllowOverlap, {width, height})) {
        state.open_card = is_open ? std::string() : card.id;
        state.is_closed = is_open;
    }
    ImGui::SetCursorPos({start.x + px(4), start.y + px(5)});
    draw_number(index + 1);
    ImGui::SetCursorPos({left, start.y + px(5)});
    float badge = 0;
    {
        const ScopedFont small(fonts().text, kSmallSize);
        badge = text_width(card.fits.text) + px(22);
    }
    const std::string title = fit_to(card.title, start.x + width - left - badge);
    bold_text(title);
    ImGui::SameLine(0, px(8));
    draw_badge(card.fits);
    for (size_t i = 0; i < rows.size(); ++i) {
        ImGui::SetCursorPos({left, start.y + px(7) + static_cast<float>(1 + i) * line});
        draw_figures(rows[i]);
    }
    ImGui::SetCursorPos({start.x, start.y + height + px(4)});
    ImGui::Dummy({0, 0});
    if (!is_open) return;
    ImGui::Indent(left - start.x);
    note_text(card.sentence);
    for (const profiler::PasteText& change : card.changes) draw_change(change);
    if (!card.problem.empty()) warning_note(palette().warn, card.problem);
    draw_buttons(frame, card, remedy);
    ImGui::Unindent(left - start.x);
    ImGui::Dummy({0, px(4)});
}

// ---- what is unusual ----------------------------------------------------------------------------

void draw_findings(const Explanation& explanation) {
    if (explanation.findings.empty() && explanation.notes.empty()) return;
    ImGui::Separator();
    for (const profiler::Finding& finding : explanation.findings) {
        colored_text(palette().accent, ICON_CIRCLE_INFO);
        ImGui::SameLine(0, px(7));
        wrapped_text(finding.sentence + ".");
    }
    for (const std::string& note : explanation.notes) {
        dim_text(ICON_CIRCLE_INFO);
        ImGui::SameLine(0, px(7));
        note_text(note);
    }
}

void draw_filled(Frame& frame) {
    draw_target(frame);
    ImGui::Dummy({0, px(1)});
    if (frame.view.cards.empty()) {
        colored_text(palette().good, ICON_CHECK);
        ImGui::SameLine(0, px(7));
        note_text("Nothing that is known saves memory here.");
    }
    for (size_t i = 0; i < frame.view.cards.size(); ++i) draw_card(frame, i);
    draw_findings(frame.view.explanation);
}

}  // namespace

PanelEvents draw_advice_panel(const PanelContext& context, AdviceState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const auto& slot = workspace.slots().advice;
    const auto view = slot.shared();
    if (view) {
        Frame frame{workspace, *view, state, events};
        draw_filled(frame);
        return events;
    }
    draw_unfilled({.icon = ICON_LIGHTBULB,
                   .purpose = "Remedies for the memory of a program are listed here, best first.",
                   .error_title = "The step could not be explained",
                   .working = "Looking for remedies ..."},
                  workspace.selection(), slot.error());
    return events;
}

}  // namespace app
