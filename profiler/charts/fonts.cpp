#include "profiler/charts/fonts.h"

#include "embedded/temposcope_chart_fonts.h"

#include <cairo-ft.h>
#include <ft2build.h>
#include FT_FREETYPE_H

#include <stdexcept>
#include <string_view>

namespace profiler {
namespace {

struct Fonts {
    FT_Library library = nullptr;
    cairo_font_face_t* regular = nullptr;
    cairo_font_face_t* bold = nullptr;
};

cairo_font_face_t* load(FT_Library library, std::string_view file) {
    FT_Face face = nullptr;
    const auto* bytes = reinterpret_cast<const FT_Byte*>(file.data());
    if (FT_New_Memory_Face(library, bytes, static_cast<FT_Long>(file.size()), 0, &face) != 0) {
        throw std::logic_error("an embedded font cannot be read");
    }
    return cairo_ft_font_face_create_for_ft_face(face, FT_LOAD_NO_HINTING);
}

const Fonts& fonts() {
    // Never freed: Cairo keeps scaled fonts in a cache that it never empties.
    static const Fonts& loaded = *[] {
        auto* fresh = new Fonts;
        if (FT_Init_FreeType(&fresh->library) != 0) {
            throw std::logic_error("FreeType cannot be started");
        }
        fresh->regular = load(fresh->library, embedded::chart_font_regular());
        fresh->bold = load(fresh->library, embedded::chart_font_bold());
        return fresh;
    }();
    return loaded;
}

}  // namespace

cairo_font_face_t* chart_font(Weight weight) {
    return weight == Weight::kBold ? fonts().bold : fonts().regular;
}

}  // namespace profiler
