#include "app/widgets/command_palette.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace app {
namespace {

constexpr const char* kName = "##command_palette";

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::vector<PaletteEntry> matching(std::vector<PaletteEntry> entries, const std::string& query) {
    std::vector<std::pair<int, PaletteEntry>> scored;
    for (PaletteEntry& entry : entries) {
        const int score = match_score(query, entry.title);
        if (score >= 0) scored.emplace_back(score, std::move(entry));
    }
    std::stable_sort(scored.begin(), scored.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    entries.clear();
    for (auto& [score, entry] : scored) entries.push_back(std::move(entry));
    return entries;
}

void move_with_arrows(PaletteState& state, size_t count) {
    if (count == 0) return;
    state.picked = std::min(state.picked, count - 1);
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) state.picked = (state.picked + 1) % count;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) state.picked = (state.picked + count - 1) % count;
}

/// True when clicked.
bool draw_entry(const PaletteEntry& entry, bool picked, int id) {
    const ScopedId scoped(id);
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked =
        ImGui::Selectable("##entry", picked, ImGuiSelectableFlags_None, {0, em(1.5F)});
    if (picked) ImGui::SetScrollHereY();
    ImGui::SetCursorPos({start.x + px(4), start.y + em(0.22F)});
    dim_text(entry.icon);
    ImGui::SetCursorPos({start.x + em(2), start.y + em(0.22F)});
    text(entry.title);
    if (!entry.shortcut.empty()) {
        ImGui::SameLine();
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        right_text(entry.shortcut + " ");
    }
    ImGui::SetCursorPos({start.x, start.y + em(1.5F) + px(2)});
    ImGui::Dummy({});
    return clicked;
}

}  // namespace

int match_score(std::string_view query, std::string_view title) {
    int score = 0;
    size_t at = 0;
    bool together = false;
    for (char wanted : query) {
        if (wanted == ' ') continue;
        const size_t from = at;
        while (at < title.size() && lower(title[at]) != lower(wanted)) ++at;
        if (at == title.size()) return -1;
        together = together && at == from;
        const bool word_start = at == 0 || title[at - 1] == ' ';
        score += 1 + (together ? 3 : 0) + (word_start ? 4 : 0);
        together = true;
        ++at;
    }
    return score;
}

void draw_command_palette(PaletteState& state,
                          const std::function<std::vector<PaletteEntry>()>& entries) {
    if (std::exchange(state.request_open, false)) {
        state.query.clear();
        state.picked = 0;
        ImGui::OpenPopup(kName);
    }
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(
        {viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + em(2)}, 0,
        {0.5F, 0});
    ImGui::SetNextWindowSize({std::min(viewport->WorkSize.x - em(2), em(34)), 0});
    if (!ImGui::BeginPopup(kName, ImGuiWindowFlags_NoMove)) return;
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputTextWithHint("##query", ICON_MAGNIFIER "  Type a command", &state.query)) {
        state.picked = 0;
    }
    const std::vector<PaletteEntry> found = matching(entries(), state.query);
    move_with_arrows(state, found.size());
    std::function<void()> chosen;
    if (!found.empty() && ImGui::IsKeyPressed(ImGuiKey_Enter)) chosen = found[state.picked].run;
    {
        const ScopedChild list(
            "##list",
            {0,
             std::min(em(20), em(1.8F) * static_cast<float>(std::max<size_t>(found.size(), 1)))});
        for (size_t i = 0; i < found.size(); ++i) {
            if (draw_entry(found[i], i == state.picked, static_cast<int>(i))) chosen = found[i].run;
        }
        if (found.empty()) dim_text("No command matches.");
    }
    if (chosen) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    if (chosen) chosen();
}

}  // namespace app
