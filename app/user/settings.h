#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// What the window remembers between starts. ImGui itself saves the layout.
namespace app {

struct Settings {
    static constexpr size_t kMaxRecentFiles = 12;

    bool dark = true;
    int window_width = 1600;
    int window_height = 1000;
    std::vector<std::filesystem::path> recent_files;  // newest first
    std::map<std::string, bool> shown_panels;         // by panel id; absent = shown
    std::map<std::string, std::string> capture_form;  // by field name
    std::string layout_placement;                     // of the last default layout
    bool layout_is_compact = false;                   // whether that layout was for a small window

    void remember_file(const std::filesystem::path& file);

    friend bool operator==(const Settings&, const Settings&) = default;
};

/// `$XDG_CONFIG_HOME/temposcope`, or `~/.config/temposcope`; empty when neither is set.
std::filesystem::path settings_folder();

/// A missing or damaged file gives the defaults, so that settings never stop the window.
Settings load_settings(const std::filesystem::path& file);

/// If two windows save at the same time, one of the two files stays, complete. If the folder cannot
/// be written, the settings are not remembered; this is not an error.
void save_settings(const Settings& settings, const std::filesystem::path& file);

}  // namespace app
