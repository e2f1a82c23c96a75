#include "app/window/toasts.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

constexpr size_t kMaxToasts = 5;

struct Look {
    const char* icon;
    ImU32 color;
};

Look look_of(const Notice& notice) {
    if (!notice.reload.empty()) return {ICON_ROTATE, palette().accent};  // nothing is done yet
    switch (notice.severity) {
        case profiler::Severity::kError:
            return {ICON_TRIANGLE_EXCLAMATION, palette().bad};
        case profiler::Severity::kWarning:
            return {ICON_TRIANGLE_EXCLAMATION, palette().warn};
        case profiler::Severity::kInfo:
            break;
    }
    return {ICON_CHECK, palette().good};
}

/// True when the user wants to read the file again.
bool draw_reload(const ToastState::Toast& toast) {
    if (toast.notice.reload.empty()) return false;
    ImGui::Dummy({em(1.4F), 0});
    ImGui::SameLine(0, 0);
    const bool clicked = ImGui::Button(ICON_ROTATE "  Reload###reload");
    ImGui::SetItemTooltip("%s", toast.notice.reload.c_str());
    return clicked;
}

/// Returns false when the user closed it. `bottom` moves up by the toast's height.
bool draw_toast(ToastState::Toast& toast, float& bottom,
                std::vector<std::filesystem::path>& reload) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float width = 26 * ImGui::GetFontSize();
    const Look look = look_of(toast.notice);
    ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - em(0.8F), bottom}, 0,
                            {1, 1});
    ImGui::SetNextWindowSize({width, 0});
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {em(0.8F), em(0.6F)});
    const ScopedColor background(ImGuiCol_WindowBg, palette().popup);
    const std::string name = fmt::format("##toast{}", toast.id);
    bool keep = true;
    {
        const ScopedWindow window(name.c_str(), nullptr,
                                  ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                                      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoFocusOnAppearing |
                                      ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoNav);
        const ImVec2 corner = ImGui::GetWindowPos();
        const float height = ImGui::GetWindowHeight();
        ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + em(0.2F), corner.y + height},
                                                  look.color, em(0.2F));
        {
            const ScopedColor color(ImGuiCol_Text, look.color);
            ImGui::TextUnformatted(look.icon);
        }
        ImGui::SameLine(0, em(0.5F));
        ImGui::PushTextWrapPos(width - em(2.4F));
        ImGui::TextUnformatted(toast.notice.text.c_str());
        ImGui::PopTextWrapPos();
        if (draw_reload(toast)) {
            reload.push_back(toast.notice.reload);
            keep = false;
        }
        ImGui::SameLine();
        ImGui::SetCursorPos({width - em(2.1F), em(0.35F)});
        const ScopedColor quiet(ImGuiCol_Button, 0);
        if (ImGui::SmallButton(ICON_XMARK)) keep = false;
        bottom -= height + em(0.5F);
        if (ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem)) {
            toast.until_s = std::max(toast.until_s, ImGui::GetTime() + 2);
        }
    }
    return keep && ImGui::GetTime() < toast.until_s;
}

}  // namespace

void add_toast(ToastState& state, Notice notice) {
    constexpr double kUntilClosed = 1e9;
    const double seconds = !notice.reload.empty()                         ? kUntilClosed
                           : notice.severity == profiler::Severity::kInfo ? 5
                                                                          : 12;
    const double until_s = ImGui::GetTime() + seconds;
    std::erase_if(state.toasts, [&](const auto& t) {
        return t.notice.text == notice.text && t.notice.reload == notice.reload;
    });
    state.toasts.push_back({state.next_id++, std::move(notice), until_s});
    if (state.toasts.size() <= kMaxToasts) return;
    // An offer to read a file again is not made twice, so it stays the longest.
    const auto least = std::find_if(state.toasts.begin(), state.toasts.end(),
                                    [](const auto& t) { return t.notice.reload.empty(); });
    state.toasts.erase(least != state.toasts.end() ? least : state.toasts.begin());
}

std::vector<std::filesystem::path> draw_toasts(ToastState& state) {
    std::vector<std::filesystem::path> reload;
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    float bottom = viewport->WorkPos.y + viewport->WorkSize.y - em(0.8F);
    for (auto toast = state.toasts.rbegin(); toast != state.toasts.rend(); ++toast) {
        if (!draw_toast(*toast, bottom, reload)) toast->until_s = 0;
    }
    std::erase_if(state.toasts, [](const auto& toast) { return toast.until_s == 0; });
    return reload;
}

void drop_reload(ToastState& state, const std::filesystem::path& file) {
    std::erase_if(state.toasts, [&](const auto& toast) {
        return !toast.notice.reload.empty() && toast.notice.reload == file;
    });
}

double seconds_to_next_change(const ToastState& state) {
    double seconds = 1e9;
    for (const auto& toast : state.toasts) {
        seconds = std::min(seconds, std::max(0.0, toast.until_s - ImGui::GetTime()));
    }
    return seconds;
}

}  // namespace app
