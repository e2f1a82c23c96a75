#pragma once

#include "app/user/fields.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What the window remembers between starts. ImGui itself saves the layout.
namespace app {

/// What was open when a window ended.
struct Session {
    std::vector<std::filesystem::path> files;  // of the open traces
    std::filesystem::path a;                   // of these; empty: none
    std::filesystem::path b;
    std::string gpu;  // for which recipes are planned; its id
    Fields planner;   // the Planner's step; empty: that of A

    friend bool operator==(const Session&, const Session&) = default;
};

/// Where panels lie in a layout that is not shown, and which of them are open there.
struct KeptLayout {
    std::string places;  // as ImGui writes them
    std::map<std::string, bool> shown_panels;

    friend bool operator==(const KeptLayout&, const KeptLayout&) = default;
};

struct Settings {
    static constexpr size_t kMaxRecentFiles = 12;

    bool dark = true;
    int window_width = 1600;
    int window_height = 1000;
    std::vector<std::filesystem::path> recent_files;  // newest first
    std::map<std::string, bool> shown_panels;         // by window id; absent: as the layout has it
    int layout = 0;                                   // app::Layout that is shown
    std::map<std::string, KeptLayout> kept_layouts;   // the others, by name
    /// What further windows show, by window id: the fields of their queries.
    std::map<std::string, Fields> further_windows;
    Fields capture_form;
    Session session;
    std::string layout_placement;       // of the last default layout
    int layout_areas = 0;               // of that layout: areas_for; 0: it is to be built
    float text_scale = 1;               // of text and everything around it; 1 to kMostTextScale
    bool reload_changed_files = false;  // without asking
    std::map<std::string, std::string> keys;  // of commands, where they are not the defaults

    static constexpr float kMostTextScale = 3;
    /// To the next larger size (1) or the next smaller one (-1).
    void step_text_scale(int direction);

    void remember_file(const std::filesystem::path& file);

    friend bool operator==(const Settings&, const Settings&) = default;
};

/// `$XDG_CONFIG_HOME/temposcope`, or `~/.config/temposcope`; empty when neither is set.
std::filesystem::path settings_folder();

struct LoadedSettings {
    Settings settings;
    std::string problem;  // a sentence about a damaged file; empty: the file is whole, or missing
};

/// What save_settings wrote into `file`, which only a problem names. Damaged text gives the
/// defaults, so that settings never stop the window.
LoadedSettings parse_settings(std::string_view text, const std::filesystem::path& file);
/// The text that parse_settings reads.
std::string to_text(const Settings& settings);

/// A missing file gives the defaults.
LoadedSettings load_settings(const std::filesystem::path& file);

/// If two windows save at the same time, one of the two files stays, complete. If the folder cannot
/// be written, the settings are not remembered; this is not an error.
void save_settings(const Settings& settings, const std::filesystem::path& file);

/// The program's folder for a purpose, as the XDG base directory specification has it:
/// `$VARIABLE/temposcope`, or `BELOW_HOME/temposcope` in the home folder. Empty where neither is
/// set: a folder that all users share could be another user's.
std::filesystem::path user_folder(const char* variable, const char* below_home);

}  // namespace app
