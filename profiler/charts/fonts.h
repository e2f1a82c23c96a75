#pragma once

#include <cairo.h>

#include <cstdint>

/// The embedded fonts as Cairo knows them.
namespace profiler {

enum class Weight : uint8_t { kRegular, kBold };

/// Lives as long as the process: Cairo caches scaled fonts beyond the surfaces that used them.
cairo_font_face_t* chart_font(Weight weight);

}  // namespace profiler
