#pragma once

#include "profiler/charts/canvas.h"

// As cairo.h declares it, which users of the charts need not have.
typedef struct _cairo_font_face cairo_font_face_t;

/// The embedded fonts as Cairo knows them.
namespace profiler {

/// Lives as long as the process: Cairo caches scaled fonts beyond the surfaces that used them.
cairo_font_face_t* chart_font(Weight weight);

}  // namespace profiler
