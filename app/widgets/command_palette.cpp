#include "app/widgets/command_palette.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/text.h"
#include "profiler/view/search_words.h"

#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <cfloat>
#include <utility>

namespace app {
namespace {

constexpr const char* kName = "##command_palette";

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

void move_with_arrows(PaletteState& state, size_t count) {
    if (count == 0) return;
    state.picked = std::min(state.picked, count - 1);
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) state.picked = (state.picked + 1) % count;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) state.picked = (state.picked + count - 1) % count;
}

float line_height() { return em(1.5F); }

/// From the right end: the kind or the shortcut in a column of its own, the value before it.
/// Returns where the title must end.
float draw_right_end(const PaletteEntry& entry, float right) {
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    const float top = ImGui::GetCursorPosY();
    const auto put = [&](const std::string& content, float end) {
        ImGui::SetCursorPos({end - text_width(content), top});
        text(content);
    };
    put(entry.shortcut.empty() ? entry.kind : entry.shortcut, right);
    if (entry.value.empty()) return right - em(entry.shortcut.empty() ? 4.0F : 8.0F);
    put(entry.value, right - em(4));
    return right - em(9);
}

/// Names of files may be longer than the line.
void draw_whole(const PaletteEntry& entry) {
    const bool is_short = entry.whole == entry.title && text_width(entry.whole) < em(18);
    if (entry.whole.empty() || is_short || !ImGui::BeginItemTooltip()) return;
    wrapped_text(entry.whole, em(38));
    ImGui::EndTooltip();
}

/// True when clicked.
bool draw_entry(const PaletteEntry& entry, bool picked, int id) {
    const ScopedId scoped(id);
    const ImVec2 start = ImGui::GetCursorPos();
    const float right = start.x + ImGui::GetContentRegionAvail().x - px(6);
    const bool clicked =
        ImGui::Selectable("##entry", picked, ImGuiSelectableFlags_None, {0, line_height()});
    draw_whole(entry);
    if (picked) ImGui::SetScrollHereY();
    const float top = start.y + em(0.22F);
    ImGui::SetCursorPos({start.x + px(4), top});
    dim_text(entry.icon);
    ImGui::SetCursorPosY(top);
    const float end = draw_right_end(entry, right);
    ImGui::SetCursorPos({start.x + em(2), top});
    const float detail_width = entry.detail.empty() ? 0 : text_width(entry.detail) + px(10);
    text(fit_to(entry.title, end - start.x - em(2) - detail_width));
    if (!entry.detail.empty()) {
        ImGui::SameLine(0, px(10));
        dim_text(entry.detail);
    }
    ImGui::SetCursorPos({start.x, start.y + line_height() + px(2)});
    ImGui::Dummy({});
    return clicked;
}

void draw_heading(const std::string& title) {
    const ScopedFont small(fonts().bold, kSmallSize);
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    ImGui::Dummy({0, px(2)});
    text(title);
}

/// Returns the entry that was clicked, or else null.
const PaletteEntry* draw_groups(const PaletteState& state, const PaletteContent& content) {
    const PaletteEntry* clicked = nullptr;
    size_t number = 0;
    for (const PaletteGroup& group : content.groups) {
        draw_heading(group.title);
        for (const PaletteEntry& entry : group.entries) {
            const bool picked = number == state.picked;
            if (draw_entry(entry, picked, static_cast<int>(number))) clicked = &entry;
            ++number;
        }
        if (!group.note.empty()) {
            ImGui::SetCursorPosX(ImGui::GetCursorPosX() + em(2));
            dim_text(group.note);
        }
    }
    if (number == 0) {
        dim_text(content.is_complete ? "Nothing has a name like this." : "Searching ...");
    }
    return clicked;
}

const PaletteEntry* entry_at(const PaletteContent& content, size_t number) {
    for (const PaletteGroup& group : content.groups) {
        if (number < group.entries.size()) return &group.entries[number];
        number -= group.entries.size();
    }
    return nullptr;
}

size_t count_entries(const PaletteContent& content) {
    size_t count = 0;
    for (const PaletteGroup& group : content.groups) count += group.entries.size();
    return count;
}

/// Where the palette opens: below the bars, in the middle.
void place_window() {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(
        {viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + em(2)}, 0,
        {0.5F, 0});
    ImGui::SetNextWindowSize({std::min(viewport->WorkSize.x - em(2), em(46)), 0});
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

namespace {

/// By the title, or by one of the other words.
int score_by_words(const PaletteEntry& entry, const std::vector<std::string>& words) {
    int best = profiler::search_score(profiler::to_lower(entry.title), words);
    std::string_view rest = entry.also;
    while (!rest.empty()) {
        const size_t comma = rest.find(", ");
        const std::string_view one = rest.substr(0, comma);
        best = std::max(best, profiler::search_score(one, words));
        rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 2);
    }
    return best;
}

}  // namespace

PaletteGroup matching(std::string title, std::vector<PaletteEntry> entries,
                      const std::string& query) {
    // Letters in order are the weakest match: below every word that occurs as it was typed.
    constexpr int kLettersOnly = PaletteGroup::kLettersOnly;
    const std::vector<std::string> words = profiler::search_words(query);
    struct Scored {
        int words;
        int letters;
        PaletteEntry entry;
    };
    std::vector<Scored> scored;
    for (PaletteEntry& entry : entries) {
        const int letters = match_score(query, entry.title);
        const int by_words = score_by_words(entry, words);
        if (letters < 0 && by_words < 0) continue;
        scored.push_back({std::max(by_words, kLettersOnly), letters, std::move(entry)});
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored& one, const Scored& other) {
        return std::pair(one.words, one.letters) > std::pair(other.words, other.letters);
    });
    PaletteGroup group{.title = std::move(title)};
    if (!scored.empty()) group.best_score = scored.front().words;
    for (Scored& one : scored) group.entries.push_back(std::move(one.entry));
    return group;
}

void draw_command_palette(PaletteState& state,
                          const std::function<PaletteContent(const std::string&)>& content) {
    if (std::exchange(state.request_open, false)) {
        state.query.clear();
        state.picked = 0;
        state.enter_pressed = false;
        ImGui::OpenPopup(kName);
    }
    place_window();
    state.is_open = ImGui::BeginPopup(kName, ImGuiWindowFlags_NoMove);
    if (!state.is_open) return;
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputTextWithHint("##query",
                                 ICON_MAGNIFIER
                                 "  Type a command, a tensor, an op, a kernel, a module or a file",
                                 &state.query)) {
        state.picked = 0;
        state.enter_pressed = false;
    }
    const PaletteContent found = content(state.query);
    move_with_arrows(state, count_entries(found));
    if (ImGui::IsKeyPressed(ImGuiKey_Enter)) state.enter_pressed = true;
    if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
    const PaletteEntry* chosen = nullptr;
    if (state.enter_pressed && found.is_complete) {
        chosen = entry_at(found, state.picked);
        state.enter_pressed = false;
    }
    {
        const float most = ImGui::GetMainViewport()->WorkSize.y * 0.72F;
        ImGui::SetNextWindowSizeConstraints({0, em(1.8F)}, {FLT_MAX, most});
        const ScopedChild list("##list", {0, 0}, ImGuiChildFlags_AutoResizeY);
        if (const PaletteEntry* clicked = draw_groups(state, found)) chosen = clicked;
    }
    const std::function<void()> run = chosen ? chosen->run : nullptr;
    if (run) {
        ImGui::CloseCurrentPopup();
        state.is_open = false;
    }
    ImGui::EndPopup();
    if (run) run();
}

}  // namespace app
