#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// A file dialog of our own: it works over ssh and under Xvfb, where desktop ones are missing.
namespace app {

struct FileDialogState {
    bool request_open = false;     // set to open it
    std::filesystem::path folder;  // shown; the working directory at first
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
    std::filesystem::path to_replace;  // exists; the user was asked whether to replace it
};

struct FileDialogOptions {
    const char* title = "";
    const char* button = "";
    std::vector<std::string> extensions;  // ".tscope"; only these files are listed
    bool for_saving = false;              // one name, which gets an extension if it has none
    std::string proposed_name;
};

/// The chosen files, in the frame in which the user confirms. A file that exists is saved to only
/// after a second confirmation.
std::optional<std::vector<std::filesystem::path>> draw_file_dialog(const FileDialogOptions& options,
                                                                   FileDialogState& state);

/// The file that `name`, typed while `folder` is shown, saves to: with the first of `extensions`
/// unless it ends in one of them, in any case.
std::filesystem::path file_to_save(const std::filesystem::path& folder, const std::string& name,
                                   const std::vector<std::string>& extensions);

}  // namespace app
