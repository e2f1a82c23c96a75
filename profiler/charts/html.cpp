#include "profiler/charts/html.h"

#include "embedded/temposcope_page.h"
#include "profiler/charts/svg_canvas.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace profiler {

void PackedNumbers::add(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
}

void PackedNumbers::add_signed(int64_t value) {
    const auto magnitude = static_cast<uint64_t>(value) << 1;
    add(value < 0 ? ~magnitude : magnitude);
}

std::string to_base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t group = 0;  // three bytes, or what is left, as 24 bits
        for (std::size_t j = 0; j < 3; ++j) {
            group = group << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            const bool is_padding = i + j > bytes.size();
            text.push_back(is_padding ? '=' : kDigits[group >> (18 - 6 * j) & 63]);
        }
    }
    return text;
}

/// Only "<" could end the element or open a comment in it, and JSON has "<" nowhere but in texts.
std::string to_element_text(const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string hash_source(const HtmlPart& part) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < part.sha256.size(); i += 2) {
        const auto digit = [&](std::size_t at) {
            const char c = part.sha256[at];
            return c <= '9' ? c - '0' : c - 'a' + 10;
        };
        bytes.push_back(static_cast<char>(digit(i) << 4 | digit(i + 1)));
    }
    return "'sha256-" + to_base64(bytes) + "'";
}

namespace {

std::string make_style(const Theme& theme) {
    return fmt::format(
        "body{{margin:24px auto;max-width:1240px;padding:0 16px;background:{};color:{};"
        "font:14px/1.5 Roboto,'Helvetica Neue',Arial,sans-serif}}\n"
        "svg{{display:block;width:100%;height:auto;border-radius:6px}}\n"
        "div{{overflow-x:auto}}\n"
        "table{{border-collapse:collapse;margin-top:24px;font-variant-numeric:tabular-nums;"
        "background:{};width:100%}}\n"
        "th,td{{padding:6px 12px;border-bottom:1px solid {};text-align:left;white-space:nowrap}}\n"
        "th{{color:{};font-weight:500}}\n"
        "th{{cursor:pointer;user-select:none}}\nth[aria-sort=ascending]::after{{content:' ▲'}}\n"
        "th[aria-sort=descending]::after{{content:' ▼'}}\n"
        "#readout{{position:fixed;pointer-events:none;margin:12px;padding:6px "
        "10px;border-radius:4px;"
        "white-space:pre;background:{};border:1px solid {};font-variant-numeric:tabular-nums}}\n"
        ".right{{text-align:right}}\n"
        ".good{{color:{}}}\n.bad{{color:{}}}\n.strong{{font-weight:bold}}\n",
        to_hex(theme.background), to_hex(theme.text), to_hex(theme.panel), to_hex(theme.border),
        to_hex(theme.dim_text), to_hex(theme.panel), to_hex(theme.border), to_hex(theme.good),
        to_hex(theme.bad));
}

std::string_view class_of(Align align) { return align == Align::kRight ? "right" : "left"; }

std::string_view class_of(Tone tone) {
    constexpr std::array<std::string_view, 4> kClasses{"", " good", " bad", " strong"};
    return kClasses[static_cast<std::size_t>(tone)];
}

Tone tone_of(const TextTable& table, std::size_t row, std::size_t column) {
    return table.tones.empty() ? Tone::kNeutral : table.tones[row][column];
}

std::string make_table(const TextTable& table) {
    std::string html = "<div><table>\n<thead><tr>";
    for (const TextTable::Column& column : table.columns) {
        html += fmt::format("<th tabindex=\"0\" class=\"{}\" title=\"{}\">{}</th>",
                            class_of(column.align), escape_xml(column.explanation),
                            escape_xml(column.title));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        html += "<tr>";
        for (std::size_t c = 0; c < table.rows[i].size(); ++c) {
            html += fmt::format("<td class=\"{}{}\">{}</td>", class_of(table.columns[c].align),
                                class_of(tone_of(table, i, c)), escape_xml(table.rows[i][c]));
        }
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table></div>\n";
}

nlohmann::json to_json(const HoverPlot& plot) {
    nlohmann::json rows = nlohmann::json::array();
    for (const HoverPlot::Row& row : plot.rows) {
        std::vector<int64_t> bytes;
        for (const double value : row.bytes) bytes.push_back(std::llround(value));
        rows.push_back({{"label", row.label}, {"bytes", bytes}});
    }
    std::vector<int64_t> edges;
    for (const double edge : *plot.edge_ns) edges.push_back(std::llround(edge));
    const Rect& place = plot.place;
    return {{"title", plot.title},
            {"place", {place.x, place.y, place.width, place.height}},
            {"edges", edges},
            {"rows", rows}};
}

}  // namespace

Page page_of(const FigureText& text, const Theme& theme, const ChartOptions& options,
             double content_height) {
    return {.width = options.width,
            .height = std::ceil(std::max(content_height, options.height)),
            .png_scale = options.png_scale,
            .paper = theme.plot,
            .title = text.title,
            .description = text.subtitle + ". " + text.sentence};
}

std::string make_html_page(std::string_view svg, const FigureText& text, const TextTable* table,
                           const Theme& theme, const std::vector<HoverPlot>& plots) {
    const HtmlPart script{embedded::chart_js(), embedded::chart_js_sha256()};
    std::string html = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri "
        "'none'; "
        "form-action 'none'; style-src 'unsafe-inline'; script-src {}\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n"
        "<style>\n{}</style>\n</head>\n<body>\n",
        hash_source(script), escape_xml(text.title), make_style(theme));
    html += svg;
    if (table) html += make_table(*table);
    nlohmann::json data = nlohmann::json::array();
    for (const HoverPlot& plot : plots) data.push_back(to_json(plot));
    html += fmt::format(
        "<script type=\"application/json\" id=\"plots\">{}</script>\n<script>{}</script>\n",
        to_element_text(data), script.text);
    return html + "</body>\n</html>\n";
}

}  // namespace profiler
