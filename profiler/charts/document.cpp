#include "profiler/charts/document.h"

#include "models/config/names.h"
#include "profiler/charts/cairo_canvas.h"
#include "profiler/charts/svg_canvas.h"
#include "profiler/trace/text.h"

#include <cairo-pdf.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace profiler {
namespace {

struct DestroySurface {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct DestroyContext {
    void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
};
using Surface = std::unique_ptr<cairo_surface_t, DestroySurface>;
using Context = std::unique_ptr<cairo_t, DestroyContext>;

cairo_status_t append(void* bytes, const unsigned char* data, unsigned length) {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
}

Surface create_png(const Page& page) {
    const auto pixels = [&](double length) {
        return static_cast<int>(std::lround(std::ceil(length * page.png_scale)));
    };
    return Surface(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels(page.width), pixels(page.height)));
}

Surface create_pdf(const Page& page, std::string& bytes) {
    Surface pdf(cairo_pdf_surface_create_for_stream(append, &bytes, page.width, page.height));
    // Version 1.4 has transparency, and every LaTeX accepts it without a warning.
    cairo_pdf_surface_restrict_to_version(pdf.get(), CAIRO_PDF_VERSION_1_4);
    // Cairo would write the current time, and no two files would be equal.
    cairo_pdf_surface_set_metadata(pdf.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                   "2000-01-01T00:00:00Z");
    cairo_pdf_surface_set_metadata(pdf.get(), CAIRO_PDF_METADATA_TITLE, page.title.c_str());
    cairo_pdf_surface_set_metadata(pdf.get(), CAIRO_PDF_METADATA_SUBJECT, page.description.c_str());
    cairo_pdf_surface_set_metadata(pdf.get(), CAIRO_PDF_METADATA_CREATOR, "temposcope");
    return pdf;
}

tl::unexpected<models::Error> cannot_draw(cairo_status_t status) {
    if (status == CAIRO_STATUS_INVALID_STRING) {
        return models::fail(
            "The chart could not be drawn: a text in it is not UTF-8; give the files names that "
            "are.");
    }
    return models::fail("The chart could not be drawn ({}); try a smaller size.",
                        cairo_status_to_string(status));
}

void draw_paper(Canvas& canvas, const Page& page) {
    // Larger than the page, because the last row and column of PNG pixels may reach beyond it.
    canvas.fill({0, 0, page.width + 4, page.height + 4}, page.paper);
}

/// The bytes of a PDF or PNG.
models::Result<std::string> draw_with_cairo(const Page& page, ChartFormat format,
                                            const Draw& draw) {
    std::string bytes;
    const bool is_png = format == ChartFormat::kPng;
    const Surface surface = is_png ? create_png(page) : create_pdf(page, bytes);
    {
        const Context cairo(cairo_create(surface.get()));
        if (is_png) cairo_scale(cairo.get(), page.png_scale, page.png_scale);
        CairoCanvas canvas(cairo.get());
        draw_paper(canvas, page);
        draw(canvas);
        cairo_show_page(cairo.get());
        const cairo_status_t status = cairo_status(cairo.get());
        if (status != CAIRO_STATUS_SUCCESS) return cannot_draw(status);
    }
    cairo_status_t status = CAIRO_STATUS_SUCCESS;
    if (is_png) status = cairo_surface_write_to_png_stream(surface.get(), append, &bytes);
    cairo_surface_finish(surface.get());
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface.get());
    if (status != CAIRO_STATUS_SUCCESS) return cannot_draw(status);
    return bytes;
}

/// Returns an error status if a measured text is not UTF-8.
cairo_status_t measure_with_cairo(const Draw& measure) {
    const Surface surface(cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, nullptr));
    const Context cairo(cairo_create(surface.get()));
    CairoCanvas canvas(cairo.get());
    measure(canvas);
    return cairo_status(cairo.get());
}

models::Result<std::string> draw_svg(const Page& page, const Draw& draw) {
    std::string svg;
    const cairo_status_t status = measure_with_cairo([&](Canvas& measuring) {
        SvgCanvas canvas(page.width, page.height, measuring);
        canvas.describe(page.title, page.description);
        draw_paper(canvas, page);
        draw(canvas);
        svg = std::move(canvas).finish();
    });
    if (status != CAIRO_STATUS_SUCCESS) return cannot_draw(status);
    return svg;
}

}  // namespace

models::Result<std::string> draw_page(const Page& page, ChartFormat format, const Draw& draw) {
    switch (format) {
        case ChartFormat::kPdf:
        case ChartFormat::kPng:
            return draw_with_cairo(page, format, draw);
        case ChartFormat::kHtml:
            return draw_svg(page, draw);
        case ChartFormat::kSvg:
            break;
    }
    auto svg = draw_svg(page, draw);
    if (svg) svg->insert(0, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    return svg;
}

void with_measuring_canvas(const Draw& measure) { measure_with_cairo(measure); }

models::Result<ChartFormat> parse_chart_format(std::string_view name) {
    if (const auto format = models::find_name<ChartFormat>(kChartFormatNames, to_lower(name))) {
        return *format;
    }
    return models::fail("\"{}\" is not a chart format; choose one of {}.", name,
                        fmt::join(kChartFormatNames, ", "));
}

models::Result<ChartFormat> chart_format_of(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    if (extension.starts_with('.')) extension.erase(0, 1);
    if (const auto format = parse_chart_format(extension)) return *format;
    return models::fail("{} does not say which format it is; end its name in one of .{}.",
                        path.string(), fmt::join(kChartFormatNames, ", ."));
}

models::Result<void> check_options(const ChartOptions& options) {
    if (!(options.width >= 640 && options.width <= 8000)) {
        return models::fail("A chart cannot be {} wide; choose a width from 640 to 8000.",
                            options.width);
    }
    if (!(options.height >= 0 && options.height <= 8000)) {
        return models::fail(
            "A chart cannot be {} high; choose a height up to 8000, or 0 for what "
            "the content needs.",
            options.height);
    }
    if (!(options.png_scale >= 0.25 && options.png_scale <= 8)) {
        return models::fail("A PNG scale of {} makes no picture; choose one from 0.25 to 8.",
                            options.png_scale);
    }
    return {};
}

}  // namespace profiler
