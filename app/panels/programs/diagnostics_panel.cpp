#include "app/panels/programs/diagnostics_panel.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

namespace app {
namespace {

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
    ImGui::PushTextWrapPos(0);
    text(item.explanation);
    ImGui::PopTextWrapPos();
    const std::string count = profiler::count_text(item);
    if (!count.empty()) ImGui::SetItemTooltip("%s", count.c_str());
}

void draw_document(const char* letter, const DocumentLabel& look, const DocumentPtr& document) {
    if (!document) return;
    const ScopedId id(letter);
    letter_badge(letter, recipe_color(look.color));
    ImGui::SameLine(0, px(7));
    bold_text(fit_to(look.name, ImGui::GetContentRegionAvail().x));
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

PanelEvents draw_diagnostics_panel(const PanelContext& context) {
    const Selection& selection = context.workspace.selection();
    if (!selection.a) {
        empty_state(ICON_HEART_PULSE, "No trace is open",
                    "What a capture could not see is listed here.");
        return {};
    }
    draw_document("A", selection.look_a, selection.a);
    draw_document("B", selection.look_b, selection.b);
    return {};
}

}  // namespace app
