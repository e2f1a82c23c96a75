#include "app/widgets/file_dialog.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
using Entry = FileDialogState::Entry;

bool ends_in_one_of(const fs::path& path, const std::vector<std::string>& extensions) {
    std::string name = path.filename().string();
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const std::string& extension) { return name.ends_with(extension); });
}

void list_folder(const FileDialogOptions& options, FileDialogState& state) {
    if (state.listed == state.folder) return;
    state.listed = state.folder;
    state.entries.clear();
    state.picked.clear();
    state.error.clear();
    std::error_code error;
    for (fs::directory_iterator entry(state.folder, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        const fs::path& path = entry->path();
        const bool is_folder = entry->is_directory(ignored);
        const bool hidden = path.filename().string().starts_with(".");
        if (hidden || (!is_folder && !ends_in_one_of(path, options.extensions))) continue;
        state.entries.push_back({path, is_folder, is_folder ? 0 : entry->file_size(ignored)});
    }
    if (error) state.error = "This folder cannot be read: " + error.message() + ".";
    std::sort(state.entries.begin(), state.entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(!a.is_folder, a.path) < std::pair(!b.is_folder, b.path);
    });
}

void go_to(FileDialogState& state, const fs::path& folder) {
    state.folder = folder;
    state.name.clear();
}

void draw_path(FileDialogState& state) {
    if (ImGui::Button(ICON_ARROW_UP "##parent")) go_to(state, state.folder.parent_path());
    ImGui::SetItemTooltip("Parent folder");
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    dim_text(state.folder.string());
}

void pick(FileDialogState& state, const FileDialogOptions& options, const fs::path& path) {
    const bool add = ImGui::GetIO().KeyCtrl && !options.for_saving;
    if (!add) state.picked.clear();
    if (!state.picked.erase(path)) state.picked.insert(path);
    state.name = state.picked.size() == 1 ? state.picked.begin()->filename().string() : "";
}

/// Returns true when a file was double-clicked.
bool draw_entries(const FileDialogOptions& options, FileDialogState& state) {
    const ScopedColor ground(ImGuiCol_ChildBg, palette().plot);
    const ScopedChild list("##entries", {0, em(18)}, ImGuiChildFlags_Borders);
    if (!state.error.empty()) note_text(state.error);
    if (state.entries.empty() && state.error.empty()) {
        dim_text(options.for_saving ? "No such file here yet." : "Nothing to open here.");
    }
    bool chosen = false;
    std::optional<fs::path> enter;
    for (const Entry& entry : state.entries) {
        const std::string name = entry.path.filename().string();
        const ScopedId id(name.c_str());
        const ImVec2 start = ImGui::GetCursorPos();
        if (ImGui::Selectable(
                "##entry", state.picked.contains(entry.path),
                ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_NoAutoClosePopups)) {
            const bool twice = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
            if (entry.is_folder && twice) {
                enter = entry.path;
            } else {
                pick(state, options, entry.path);
                chosen = twice && !entry.is_folder;
                if (chosen) state.picked = {entry.path};
            }
        }
        ImGui::SetCursorPos(start);
        colored_text(entry.is_folder ? palette().accent : palette().dim,
                     entry.is_folder ? ICON_FOLDER_OPEN : ICON_FILE);
        ImGui::SameLine(em(2));
        text(name);
        if (!entry.is_folder) {
            ImGui::SameLine();
            const ScopedColor dim(ImGuiCol_Text, palette().dim);
            right_text(profiler::format_bytes(static_cast<int64_t>(entry.size_bytes)));
        }
    }
    if (enter) go_to(state, *enter);
    return chosen;
}

/// Empty if the name is a folder, which is then shown, or if the user must first agree to replace a
/// file.
std::vector<fs::path> confirm_saving(const FileDialogOptions& options, FileDialogState& state) {
    if (state.name.empty()) return {};
    std::error_code error;
    if (const fs::path folder = state.folder / state.name; fs::is_directory(folder, error)) {
        go_to(state, folder);
        return {};
    }
    const fs::path file = file_to_save(state.folder, state.name, options.extensions);
    if (fs::exists(file, error) && state.to_replace != file) {
        state.to_replace = file;
        return {};
    }
    return {file};
}

/// The files that were clicked or typed.
std::vector<fs::path> confirm(const FileDialogOptions& options, FileDialogState& state) {
    if (options.for_saving) return confirm_saving(options, state);
    if (state.picked.size() > 1) return {state.picked.begin(), state.picked.end()};
    return {state.name.empty() ? state.folder : state.folder / state.name};
}

/// The user has confirmed the name of an existing file once and has not changed it since.
bool asks_to_replace(const FileDialogOptions& options, const FileDialogState& state) {
    return options.for_saving && !state.to_replace.empty() &&
           state.to_replace == file_to_save(state.folder, state.name, options.extensions);
}

void draw_replace_question(const FileDialogState& state) {
    warning_note(palette().warn,
                 state.to_replace.filename().string() + " is there already. Replace it?");
}

bool draw_buttons(const char* button, bool& cancelled) {
    const float width = em(7);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - 2 * width -
                         ImGui::GetStyle().ItemSpacing.x);
    cancelled = ImGui::Button("Cancel", {width, 0}) || ImGui::IsKeyPressed(ImGuiKey_Escape);
    ImGui::SameLine();
    return ImGui::Button((std::string(button) + "###confirm").c_str(), {width, 0});
}

}  // namespace

fs::path file_to_save(const fs::path& folder, const std::string& name,
                      const std::vector<std::string>& extensions) {
    const fs::path file = folder / name;
    if (extensions.empty() || ends_in_one_of(file, extensions)) return file;
    return file.string() + extensions.front();
}

std::optional<std::vector<fs::path>> draw_file_dialog(const FileDialogOptions& options,
                                                      FileDialogState& state) {
    if (std::exchange(state.request_open, false)) {
        std::error_code error;
        if (state.folder.empty()) state.folder = fs::current_path(error);
        state.listed.clear();  // read again: files may have come
        state.name = options.proposed_name;
        state.to_replace.clear();
        ImGui::OpenPopup(options.title);
    }
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
    ImGui::SetNextWindowSize({std::min(viewport->WorkSize.x - em(2), em(40)), 0});
    if (!ImGui::BeginPopupModal(options.title, nullptr,
                                ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoResize)) {
        return std::nullopt;
    }
    if (options.draw_choices) options.draw_choices(state);
    list_folder(options, state);
    draw_path(state);
    bool chosen = draw_entries(options, state);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    chosen |= ImGui::InputTextWithHint(
        "##name", options.for_saving ? "File name" : "File name or path; empty opens the folder",
        &state.name, ImGuiInputTextFlags_EnterReturnsTrue);
    const bool replaces = asks_to_replace(options, state);
    if (replaces) draw_replace_question(state);
    bool cancelled = false;
    chosen |= draw_buttons(replaces ? "Replace" : options.button, cancelled);
    std::optional<std::vector<fs::path>> result;
    if (chosen) {
        std::vector<fs::path> files = confirm(options, state);
        if (!files.empty()) result = std::move(files);
    }
    if (result || cancelled) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    return result;
}

}  // namespace app
