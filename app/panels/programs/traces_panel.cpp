#include "app/panels/programs/traces_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

namespace app {
namespace {

// ---- Traces ---------------------------------------------------------------------------------

std::string second_line(const Document& document) {
    if (!document.has_step) return document.state;
    return fmt::format("{}  ·  {}", document.peak_text(), document.state);
}

void draw_tooltip(const Document& document) {
    if (!ImGui::BeginItemTooltip()) return;
    bold_text(document.recipe);
    text(document.workload);
    if (!document.trace->sweep_points.empty()) {
        text(fmt::format("{}, sweep of {} batch sizes", document.state,
                         document.trace->sweep_points.size()));
    }
    dim_text(fmt::format(
        "{}  ·  {} allocations", document.source,
        profiler::format_count(static_cast<int64_t>(document.trace->allocations.size()))));
    dim_text(document.file.string());
    ImGui::EndTooltip();
}

void draw_menu(const DocumentPtr& document, bool is_kept, TraceEvents& events) {
    if (!ImGui::BeginPopupContextItem("##trace_menu")) return;
    if (!is_kept && ImGui::MenuItem(ICON_THUMBTACK "  Keep")) events.keep_prediction = true;
    if (ImGui::MenuItem("Show as A")) events.set_a = document;
    if (ImGui::MenuItem("Show as B")) events.set_b = document;
    if (ImGui::MenuItem(ICON_ROTATE "  Read again")) events.open.push_back(document->file);
    if (ImGui::MenuItem(ICON_COPY "  Copy path")) ImGui::SetClipboardText(document->file.c_str());
    ImGui::Separator();
    if (ImGui::MenuItem(ICON_XMARK "  Close")) events.close = document;
    ImGui::EndPopup();
}

/// Two lines: the recipe with buttons A and B, and below them peak and steps.
void draw_trace(const OpenTraces& traces, size_t index, TraceEvents& events) {
    const DocumentPtr& document = traces.documents[index];
    const DocumentLabel& label = traces.labels[index];
    const ScopedId id(static_cast<int>(index));
    const bool is_a = document == traces.a, is_b = document == traces.b;
    const float height = 2 * ImGui::GetTextLineHeight() + px(12);
    const ImVec2 start = ImGui::GetCursorPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const ScopedColor shown(ImGuiCol_Header, palette().raised);
    if (ImGui::Selectable("##trace", is_a || is_b, ImGuiSelectableFlags_AllowOverlap,
                          {width, height}) &&
        !is_a) {
        events.set_b = is_b ? nullptr : document;
    }
    draw_tooltip(*document);
    draw_menu(document, document != traces.prediction, events);
    const float buttons = em(3.7F), left = start.x + px(6);
    const bool warns = !document->diagnostics.empty() &&
                       document->diagnostics.front().severity != profiler::Severity::kInfo;
    ImGui::SetCursorPos({left, start.y + px(5)});
    recipe_swatch(label.color);
    {
        const ScopedFont bold(fonts().bold);
        const float name_end = start.x + width - buttons - px(4) - (warns ? em(1.6F) : 0);
        text(fit_to(label.name, name_end - ImGui::GetCursorPosX()));
    }
    if (warns) {
        ImGui::SameLine(0, px(6));
        colored_text(palette().warn, ICON_TRIANGLE_EXCLAMATION);
        ImGui::SetItemTooltip("%s", document->diagnostics.front().explanation.c_str());
    }
    ImGui::SetCursorPos({left, start.y + px(7) + ImGui::GetTextLineHeight()});
    dim_text(fit_to(second_line(*document), width - px(12)));
    ImGui::SetCursorPos({start.x + width - buttons, start.y + px(5)});
    if (letter_button("A", is_a, side_color(0))) events.set_a = document;
    ImGui::SameLine(0, px(3));
    if (letter_button("B", is_b, side_color(1))) events.set_b = is_b ? nullptr : document;
    ImGui::SetCursorPos({start.x, start.y + height + px(3)});
    ImGui::Dummy({});
}

// ---- Diagnostics ----------------------------------------------------------------------------

void draw_item(const profiler::DiagnosticItem& item) {
    switch (item.severity) {
        case profiler::Severity::kError:
            colored_text(palette().bad, ICON_TRIANGLE_EXCLAMATION);
            break;
        case profiler::Severity::kWarning:
            colored_text(palette().warn, ICON_TRIANGLE_EXCLAMATION);
            break;
        case profiler::Severity::kInfo:
            colored_text(palette().dim, ICON_CIRCLE_INFO);
            break;
    }
    ImGui::SameLine(0, px(7));
    wrapped_text(item.explanation);
    const std::string count = profiler::count_text(item);
    if (!count.empty()) ImGui::SetItemTooltip("%s", count.c_str());
}

void draw_document(const char* letter, const DocumentLabel& label, const DocumentPtr& document) {
    if (!document) return;
    const ScopedId id(letter);
    letter_badge(letter, side_color(*letter == 'A' ? 0 : 1));
    ImGui::SameLine(0, px(7));
    bold_text(fit_to(label.name, ImGui::GetContentRegionAvail().x));
    if (document->diagnostics.empty()) {
        colored_text(palette().good, ICON_CHECK);
        ImGui::SameLine(0, px(7));
        note_text(document->has_step
                      ? "Nothing is missing: every allocation has its op, and the step is complete."
                      : "Nothing is missing in the sweep. It holds no recorded step.");
    }
    for (const profiler::DiagnosticItem& item : document->diagnostics) draw_item(item);
    ImGui::Spacing();
}

}  // namespace

TraceEvents draw_traces_panel(const OpenTraces& traces) {
    TraceEvents events;
    for (size_t i = 0; i < traces.documents.size(); ++i) draw_trace(traces, i, events);
    if (traces.loading) {
        events.cancel_loading = draw_loading(*traces.loading);
    } else if (traces.documents.empty()) {
        empty_state(ICON_LAYERS, "No traces", "Open files, or drop them on the window.");
    }
    return events;
}

void draw_diagnostics_panel(const Selection& selection) {
    if (!selection.a) {
        return empty_state(ICON_HEART_PULSE, "No trace is open",
                           "What a capture could not see is listed here.");
    }
    draw_document("A", selection.label_a, selection.a);
    draw_document("B", selection.label_b, selection.b);
}

}  // namespace app
