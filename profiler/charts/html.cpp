#include "profiler/charts/html.h"

#include "embedded/temposcope_page.h"
#include "profiler/charts/html_parts.h"
#include "profiler/charts/svg_canvas.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace profiler {
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
    switch (tone) {
        case Tone::kGood:
            return " good";
        case Tone::kBad:
            return " bad";
        case Tone::kStrong:
            return " strong";
        case Tone::kNeutral:
            return "";
    }
    return "";
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
