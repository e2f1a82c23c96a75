#include "app/user/settings.h"

#include "profiler/trace/file/write_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace app {
namespace {

using Json = nlohmann::json;

constexpr std::array<float, 9> kTextScales{1, 1.1F, 1.25F, 1.5F, 1.75F, 2, 2.25F, 2.5F, 3};

/// Reads members of an object, and notes those of another type: an older or edited file.
class Reader {
public:
    explicit Reader(const Json& json) : json_(json) {}

    template <typename T>
    void read(const char* key, T& value) {
        const auto found = json_.find(key);
        if (found == json_.end()) return;
        try {
            value = found->get<T>();
        } catch (const Json::exception&) {
            unread_.emplace_back(key);
        }
    }
    const std::vector<std::string>& unread() const { return unread_; }

private:
    const Json& json_;
    std::vector<std::string> unread_;
};

std::vector<std::string> to_texts(const std::vector<std::filesystem::path>& paths) {
    std::vector<std::string> texts;
    for (const auto& path : paths) texts.push_back(path.string());
    return texts;
}

void read_paths(Reader& reader, const char* key, std::vector<std::filesystem::path>& paths) {
    std::vector<std::string> texts;
    reader.read(key, texts);
    paths.assign(texts.begin(), texts.end());
}

void read_session(Reader& reader, Session& session) {
    std::string a, b;
    read_paths(reader, "open_files", session.files);
    reader.read("a", a);
    reader.read("b", b);
    reader.read("gpu", session.gpu);
    reader.read("planner", session.planner);
    session.a = a;
    session.b = b;
}

void read_layouts(const Json& json, std::map<std::string, KeptLayout>& layouts) {
    const auto found = json.find("kept_layouts");
    if (found == json.end() || !found->is_object()) return;
    for (const auto& [name, one] : found->items()) {
        if (!one.is_object()) continue;
        Reader reader(one);
        KeptLayout layout;
        reader.read("places", layout.places);
        reader.read("shown_panels", layout.shown_panels);
        if (reader.unread().empty()) layouts[name] = std::move(layout);
    }
}

Json to_json(const std::map<std::string, KeptLayout>& layouts) {
    Json json = Json::object();
    for (const auto& [name, layout] : layouts) {
        json[name] = {{"places", layout.places}, {"shown_panels", layout.shown_panels}};
    }
    return json;
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

void Settings::step_text_scale(int direction) {
    if (direction > 0) {
        const auto next = std::upper_bound(kTextScales.begin(), kTextScales.end(), text_scale);
        text_scale = next == kTextScales.end() ? kMostTextScale : *next;
    } else {
        const auto here = std::lower_bound(kTextScales.begin(), kTextScales.end(), text_scale);
        text_scale = here == kTextScales.begin() ? 1 : *(here - 1);
    }
}

std::filesystem::path settings_folder() { return user_folder("XDG_CONFIG_HOME", ".config"); }

LoadedSettings parse_settings(std::string_view text, const std::filesystem::path& file) {
    LoadedSettings loaded;
    Settings& settings = loaded.settings;
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        loaded.problem =
            fmt::format("The settings in {} are damaged, so the window starts with its defaults.",
                        file.string());
        return loaded;
    }
    Reader reader(json);
    reader.read("dark", settings.dark);
    reader.read("window_width", settings.window_width);
    reader.read("window_height", settings.window_height);
    reader.read("shown_panels", settings.shown_panels);
    reader.read("further_windows", settings.further_windows);
    reader.read("capture_form", settings.capture_form);
    reader.read("layout_placement", settings.layout_placement);
    reader.read("layout", settings.layout);
    reader.read("layout_areas", settings.layout_areas);
    read_layouts(json, settings.kept_layouts);
    reader.read("text_scale", settings.text_scale);
    reader.read("reload_changed_files", settings.reload_changed_files);
    reader.read("keys", settings.keys);
    read_paths(reader, "recent_files", settings.recent_files);
    read_session(reader, settings.session);
    // A file of before there were layouts: its panels lay where none lies now.
    if (!json.contains("layout")) settings.shown_panels.clear();
    settings.layout = std::clamp(settings.layout, 0, 2);
    settings.window_width = std::clamp(settings.window_width, 720, 16384);
    settings.window_height = std::clamp(settings.window_height, 480, 16384);
    settings.text_scale = std::clamp(settings.text_scale, 1.0F, Settings::kMostTextScale);
    if (!reader.unread().empty()) {
        loaded.problem =
            fmt::format("These settings in {} are damaged and have their defaults: {}.",
                        file.string(), fmt::join(reader.unread(), ", "));
    }
    return loaded;
}

std::string to_text(const Settings& settings) {
    const Json json{{"dark", settings.dark},
                    {"window_width", settings.window_width},
                    {"window_height", settings.window_height},
                    {"shown_panels", settings.shown_panels},
                    {"further_windows", settings.further_windows},
                    {"capture_form", settings.capture_form},
                    {"layout_placement", settings.layout_placement},
                    {"layout", settings.layout},
                    {"layout_areas", settings.layout_areas},
                    {"kept_layouts", to_json(settings.kept_layouts)},
                    {"text_scale", settings.text_scale},
                    {"reload_changed_files", settings.reload_changed_files},
                    {"keys", settings.keys},
                    {"recent_files", to_texts(settings.recent_files)},
                    {"open_files", to_texts(settings.session.files)},
                    {"a", settings.session.a.string()},
                    {"b", settings.session.b.string()},
                    {"gpu", settings.session.gpu},
                    {"planner", settings.session.planner}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

LoadedSettings load_settings(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) return {};
    return parse_settings(std::string(std::istreambuf_iterator(stream), {}), file);
}

void save_settings(const Settings& settings, const std::filesystem::path& file) {
    if (file.empty()) return;
    // The window works without saved settings.
    (void)profiler::write_file(file, to_text(settings));
}

std::filesystem::path user_folder(const char* variable, const char* below_home) {
    if (const char* named = std::getenv(variable); named && *named) {
        return std::filesystem::path(named) / "temposcope";
    }
    if (const char* home = std::getenv("HOME"); home && *home) {
        return std::filesystem::path(home) / below_home / "temposcope";
    }
    return {};
}

}  // namespace app
