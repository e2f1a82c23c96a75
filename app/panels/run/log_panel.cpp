#include "app/panels/run/log_panel.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/view/run/log_view.h"

#include <utility>

namespace app {
namespace {

/// Splits the text again only if it has changed.
void update(LogState::Source& source, std::string text) {
    if (text == source.text) return;
    source.text = std::move(text);
    source.lines = profiler::log_lines(profiler::text_since(source.text, source.cleared));
}

void clear(LogState::Source& source) {
    source.cleared = source.text;
    source.lines.clear();
}

std::string all_lines(const LogState& state) {
    std::string text;
    for (const LogState::Source* source : {&state.capture, &state.predictions}) {
        for (const std::string& line : source->lines) text += line + "\n";
    }
    return text;
}

void draw_toolbar(LogState& state, bool is_empty) {
    const ScopedDisabled nothing(is_empty);
    if (ImGui::Button(ICON_COPY "  Copy###copy")) ImGui::SetClipboardText(all_lines(state).c_str());
    ImGui::SetItemTooltip("Copy all lines as text");
    ImGui::SameLine();
    if (ImGui::Button(ICON_XMARK "  Clear###clear")) {
        clear(state.capture);
        clear(state.predictions);
    }
    ImGui::SameLine();
    check_box("Follow", &state.follows);
    ImGui::SetItemTooltip("Stay at the newest line");
}

void draw_source(const char* title, const LogState::Source& source) {
    if (source.lines.empty()) return;
    {
        const ScopedFont bold(fonts().bold, kSmallSize);
        dim_text(title);
    }
    const ScopedFont mono(fonts().mono, 13.5F);
    draw_visible_rows(source.lines.size(), [&](size_t i) { text(source.lines[i]); });
    ImGui::Dummy({0, px(4)});
}

}  // namespace

void draw_log_panel(WorkerLogs logs, LogState& state) {
    update(state.capture, std::move(logs.capture));
    update(state.predictions, std::move(logs.predictions));
    const bool is_empty = state.capture.lines.empty() && state.predictions.lines.empty();
    draw_toolbar(state, is_empty);
    if (is_empty) {
        empty_state(ICON_TERMINAL,
                    logs.is_capturing ? "The worker has written nothing yet" : "No messages",
                    "What the workers of captures and predictions print appears here. Most print "
                    "nothing unless something is wrong.");
        return;
    }
    const ScopedColor ground(ImGuiCol_ChildBg, palette().plot);
    const ScopedChild lines("##lines", {}, ImGuiChildFlags_Borders,
                            ImGuiWindowFlags_HorizontalScrollbar);
    draw_source("Capture", state.capture);
    draw_source("Predictions", state.predictions);
    if (state.follows) ImGui::SetScrollHereY(1);
}

}  // namespace app
