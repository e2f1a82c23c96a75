#include "app/user/settings.h"

#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace app {
namespace {

using Json = nlohmann::json;

template <typename T>
void read(const Json& json, const char* key, T& value) {
    const auto found = json.find(key);
    if (found == json.end()) return;
    try {
        value = found->get<T>();
    } catch (const Json::exception&) {  // another type: an older or edited file
    }
}

}  // namespace

void Settings::remember_file(const std::filesystem::path& file) {
    std::error_code error;
    std::filesystem::path absolute = std::filesystem::absolute(file, error).lexically_normal();
    if (error) absolute = file;
    std::erase(recent_files, absolute);
    recent_files.insert(recent_files.begin(), absolute);
    if (recent_files.size() > kMaxRecentFiles) recent_files.resize(kMaxRecentFiles);
}

std::filesystem::path settings_folder() {
    if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config) {
        return std::filesystem::path(config) / "temposcope";
    }
    if (const char* home = std::getenv("HOME"); home && *home) {
        return std::filesystem::path(home) / ".config" / "temposcope";
    }
    return {};
}

Settings load_settings(const std::filesystem::path& file) {
    Settings settings;
    std::ifstream stream(file);
    const Json json = Json::parse(stream, nullptr, false);
    if (!json.is_object()) return settings;
    read(json, "dark", settings.dark);
    read(json, "window_width", settings.window_width);
    read(json, "window_height", settings.window_height);
    read(json, "shown_panels", settings.shown_panels);
    read(json, "capture_form", settings.capture_form);
    read(json, "layout_placement", settings.layout_placement);
    read(json, "layout_is_compact", settings.layout_is_compact);
    std::vector<std::string> files;
    read(json, "recent_files", files);
    settings.recent_files.assign(files.begin(), files.end());
    settings.window_width = std::clamp(settings.window_width, 720, 16384);
    settings.window_height = std::clamp(settings.window_height, 480, 16384);
    return settings;
}

void save_settings(const Settings& settings, const std::filesystem::path& file) {
    if (file.empty()) return;
    std::vector<std::string> files;
    for (const auto& path : settings.recent_files) files.push_back(path.string());
    const Json json{{"dark", settings.dark},
                    {"window_width", settings.window_width},
                    {"window_height", settings.window_height},
                    {"shown_panels", settings.shown_panels},
                    {"capture_form", settings.capture_form},
                    {"layout_placement", settings.layout_placement},
                    {"layout_is_compact", settings.layout_is_compact},
                    {"recent_files", files}};
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    // The window works without saved settings.
    (void)profiler::write_file(file,
                               json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace app
