#include "app/panels/health_panel.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/window/icons.h"
#include "app/window/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

namespace app {
namespace {

void draw_item(const profiler::HealthItem& item) {
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
    if (item.count > 1) ImGui::SetItemTooltip("%s", fmt::format("{} times", item.count).c_str());
}

void draw_document(const char* letter, ImU32 color, const DocumentPtr& document) {
    if (!document) return;
    const ScopedId id(letter);
    letter_badge(letter, color);
    ImGui::SameLine(0, px(7));
    bold_text(document->recipe);
    if (document->health.empty()) {
        colored_text(palette().good, ICON_CHECK);
        ImGui::SameLine(0, px(7));
        note_text("Nothing was missed: every allocation has its op, and the step is whole.");
    }
    for (const profiler::HealthItem& item : document->health) draw_item(item);
    ImGui::Spacing();
}

}  // namespace

PanelEvents draw_health_panel(const Selection& selection, HealthState&) {
    if (!selection.a) {
        empty_state(ICON_HEART_PULSE, "No trace is open",
                    "What a capture could not see is said here.");
        return {};
    }
    draw_document("A", recipe_color(0), selection.a);
    draw_document("B", recipe_color(1), selection.b);
    return {};
}

}  // namespace app
