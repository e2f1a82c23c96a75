#include "profiler/charts/document.h"

#include "embedded/temposcope_chart_fonts.h"
#include "models/config/names.h"
#include "profiler/charts/svg_canvas.h"
#include "profiler/trace/text.h"

#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>
#include <ft2build.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string_view>

namespace profiler {
namespace {

using std::numbers::pi;

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

/// Lives as long as the process: Cairo caches scaled fonts beyond the surfaces that used them.
cairo_font_face_t* chart_font(Weight weight) {
    return weight == Weight::kBold ? fonts().bold : fonts().regular;
}

class ScopedState {
public:
    explicit ScopedState(cairo_t* cairo) : cairo_(cairo) { cairo_save(cairo_); }
    ~ScopedState() { cairo_restore(cairo_); }
    ScopedState(const ScopedState&) = delete;
    ScopedState& operator=(const ScopedState&) = delete;

private:
    cairo_t* cairo_;
};

void trace_rounded(cairo_t* cairo, const Rect& r, double radius) {
    radius = std::min({radius, r.width / 2, r.height / 2});
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, r.right() - radius, r.y + radius, radius, -pi / 2, 0);
    cairo_arc(cairo, r.right() - radius, r.bottom() - radius, radius, 0, pi / 2);
    cairo_arc(cairo, r.x + radius, r.bottom() - radius, radius, pi / 2, pi);
    cairo_arc(cairo, r.x + radius, r.y + radius, radius, pi, 3 * pi / 2);
    cairo_close_path(cairo);
}

/// Draws on any surface of Cairo: a page of PDF, the pixels of a PNG, or nothing but a recording,
/// to measure text. Borrows `cairo` for its lifetime.
class CairoCanvas : public Canvas {
public:
    explicit CairoCanvas(cairo_t* cairo) : cairo_(cairo) {
        // Positions of letters must not depend on the resolution: no hinting, exact advances.
        cairo_font_options_t* options = cairo_font_options_create();
        cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
        cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
        cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
        cairo_set_font_options(cairo_, options);
        cairo_font_options_destroy(options);
        cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
    }

    void fill_rounded(const Rect& rect, double radius, Color color, double alpha = 1) override {
        set_color(color, alpha);
        if (radius > 0) {
            trace_rounded(cairo_, rect, radius);
        } else {
            cairo_rectangle(cairo_, rect.x, rect.y, rect.width, rect.height);
        }
        cairo_fill(cairo_);
    }

    void polygon(std::span<const Point> points, Color color, double alpha = 1) override {
        set_color(color, alpha);
        trace(points);
        cairo_close_path(cairo_);
        cairo_fill(cairo_);
    }

    void disc(Point center, double radius, Color color) override {
        set_color(color, 1);
        cairo_new_path(cairo_);
        cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * pi);
        cairo_fill(cairo_);
    }

    void ring(Point center, double radius, const LineStyle& style) override {
        cairo_new_path(cairo_);
        cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * pi);
        stroke(style);
    }

    void polyline(std::span<const Point> points, const LineStyle& style) override {
        trace(points);
        stroke(style);
    }

protected:
    void stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                       const LineStyle& style) override {
        const ScopedState state(cairo_);
        trace(area);
        cairo_close_path(cairo_);
        cairo_clip(cairo_);
        for (const Segment& line : lines) {
            cairo_move_to(cairo_, line.from.x, line.from.y);
            cairo_line_to(cairo_, line.to.x, line.to.y);
        }
        stroke(style);
    }

    void show_text(Point start, const std::string& text, double, const TextStyle& style) override {
        set_font(style);
        set_color(style.color, 1);
        cairo_move_to(cairo_, start.x, start.y);
        cairo_show_text(cairo_, text.c_str());
        cairo_new_path(cairo_);
    }

    double measure_text(const std::string& text, const TextStyle& style) override {
        set_font(style);
        cairo_text_extents_t extents;
        cairo_text_extents(cairo_, text.c_str(), &extents);
        return extents.x_advance;
    }

private:
    void set_color(Color color, double alpha) {
        cairo_set_source_rgba(cairo_, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
    }

    void set_font(const TextStyle& style) {
        cairo_set_font_face(cairo_, chart_font(style.weight));
        cairo_set_font_size(cairo_, style.size);
    }

    void trace(std::span<const Point> points) {
        cairo_new_path(cairo_);
        for (const Point& p : points) cairo_line_to(cairo_, p.x, p.y);
    }

    void stroke(const LineStyle& style) {
        const ScopedState state(cairo_);
        set_color(style.color, style.alpha);
        cairo_set_line_width(cairo_, style.width);
        cairo_set_line_cap(cairo_, style.round_ends ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
        constexpr std::array<double, 2> kDashes{4, 3};
        if (style.dashed)
            cairo_set_dash(cairo_, kDashes.data(), static_cast<int>(kDashes.size()), 0);
        cairo_stroke(cairo_);
    }

    cairo_t* cairo_;
};

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

double measure_height(const std::function<double(Canvas&)>& draw) {
    double height = 0;
    with_measuring_canvas([&](Canvas& canvas) { height = draw(canvas); });
    return height;
}

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
