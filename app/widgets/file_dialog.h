#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// A file dialog that works over ssh and under Xvfb.
///
/// imgui-bundle has two others. portable-file-dialogs starts zenity or kdialog, which servers do
/// not have and tests cannot click. ImFileDialog replaces an existing file without asking, and
/// filters by the last extension only, so it cannot list `.tscope.partial`.
namespace app {

struct FileDialogState {
    bool request_open = false;     // set this to open the dialog
    std::filesystem::path folder;  // the folder shown; at first the working directory
    std::string name;              // typed or picked: a file name, or a path
    std::set<std::filesystem::path> picked;

    struct Entry {
        std::filesystem::path path;
        bool is_folder = false;
        uintmax_t size_bytes = 0;
    };
    std::vector<Entry> entries;  // of `folder`, read when it changes
    std::filesystem::path listed;
    std::string error;
    std::filesystem::path to_replace;  // existing file that the user was asked about
};

struct FileDialogOptions {
    const char* title = "";
    const char* button = "";
    std::vector<std::string> extensions;  // ".tscope"; only these files are listed
    bool for_saving = false;              // asks for one name and adds a missing extension
    std::string proposed_name;
    std::function<void(FileDialogState&)> draw_choices;  // above the list of files; optional
};

/// Draws the dialog while it is open. Returns the chosen files in the frame in which the user
/// confirms. Replacing an existing file needs a second confirmation.
std::optional<std::vector<std::filesystem::path>> draw_file_dialog(const FileDialogOptions& options,
                                                                   FileDialogState& state);

/// The file to which the typed `name` saves while `folder` is shown. Adds the first of `extensions`
/// unless the name ends in one of them, in any case.
std::filesystem::path file_to_save(const std::filesystem::path& folder, const std::string& name,
                                   const std::vector<std::string>& extensions);

}  // namespace app
