#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// What the window remembers from one start to the next, beside the layout that ImGui keeps.
namespace app {

struct Settings {
    static constexpr size_t kMaxRecentFiles = 12;

    bool dark = true;
    int window_width = 1600;
    int window_height = 1000;
    std::vector<std::filesystem::path> recent_files;  // newest first
    std::map<std::string, bool> shown_panels;         // by panel id; absent = shown
    std::map<std::string, std::string> capture_form;  // by field name
    std::string layout_placement;                     // of the layout last built by us
    bool layout_is_compact = false;                   // for what window it was built

    void remember_file(const std::filesystem::path& file);

    friend bool operator==(const Settings&, const Settings&) = default;
};

/// `$XDG_CONFIG_HOME/temposcope`, or `~/.config/temposcope`; empty when neither is set.
std::filesystem::path settings_folder();

/// A missing or damaged file gives the defaults: settings never stop the window.
Settings load_settings(const std::filesystem::path& file);

/// Two windows that write at the same time leave the file of one of them, whole. A folder that
/// cannot be written is not an error: the settings are then not remembered.
void save_settings(const Settings& settings, const std::filesystem::path& file);

}  // namespace app
