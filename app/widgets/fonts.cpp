#include "app/widgets/fonts.h"

#include <embedded/temposcope_ui_fonts.h>
#include <imgui.h>
#include <imgui_freetype.h>

#include <cstdio>
#include <string_view>

namespace app {
namespace {

Fonts& current_fonts() {
    static Fonts fonts;
    return fonts;
}

struct FontSource {
    std::string_view data;
    const char* name;
    bool icons = false;  // merged into the font before it
};

ImFont* add_font(const FontSource& source) {
    ImFontConfig config;
    config.FontDataOwnedByAtlas = false;  // the program owns the data
    config.FontLoaderFlags = ImGuiFreeTypeLoaderFlags_LightHinting;
    config.MergeMode = source.icons;
    if (source.icons) {
        // Font Awesome's glyphs are taller than Roboto's capitals and sit higher.
        config.GlyphOffset = {0, 1};
        config.GlyphMinAdvanceX = 16;
        config.ExtraSizeScale = 0.86F;
    }
    std::snprintf(config.Name, sizeof config.Name, "%s", source.name);
    // ImGui takes a void*, but does not write to data it does not own.
    return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<char*>(source.data.data()),
                                                      static_cast<int>(source.data.size()),
                                                      kTextSize, &config);
}

}  // namespace

Fonts load_fonts() {
    Fonts loaded;
    loaded.text = add_font({embedded::text_font(), "Roboto"});
    add_font({embedded::icon_font(), "Icons", true});
    loaded.bold = add_font({embedded::bold_font(), "Roboto Bold"});
    add_font({embedded::icon_font(), "Icons", true});
    loaded.mono = add_font({embedded::mono_font(), "Inconsolata"});
    current_fonts() = loaded;
    return loaded;
}

const Fonts& fonts() { return current_fonts(); }

}  // namespace app
