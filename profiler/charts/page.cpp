#include "profiler/charts/charts.h"

#include "embedded/temposcope_page.h"
#include "profiler/charts/html.h"
#include "profiler/charts/svg_canvas.h"
#include "profiler/trace/text.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using nlohmann::json;

/// In the order in which they use each other.
std::vector<HtmlPart> script_parts() {
    using namespace embedded;
    return {{state_js(), state_js_sha256()},       {format_js(), format_js_sha256()},
            {decode_js(), decode_js_sha256()},     {theme_js(), theme_js_sha256()},
            {time_js(), time_js_sha256()},         {plot_js(), plot_js_sha256()},
            {timeline_js(), timeline_js_sha256()}, {blocks_js(), blocks_js_sha256()},
            {ledger_js(), ledger_js_sha256()},     {main_js(), main_js_sha256()}};
}

/// A text of a file. Names that fill pages are of no use and would make the page large.
std::string shown(std::string_view text) {
    constexpr std::size_t kMaxBytes = 400;
    if (text.size() <= kMaxBytes) return std::string(text);
    std::size_t end = kMaxBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
}

/// What `to_json` makes of each.
template <typename Values, typename ToJson>
json array_of(const Values& values, const ToJson& to_json) {
    json all = json::array();
    for (const auto& value : values) all.push_back(to_json(value));
    return all;
}

json shown(const std::vector<std::string>& texts) {
    return array_of(texts, [](const std::string& text) { return shown(text); });
}

json theme_json(const Theme& theme) {
    return {{"background", to_hex(theme.background)},
            {"panel", to_hex(theme.panel)},
            {"raised", to_hex(theme.raised)},
            {"border", to_hex(theme.border)},
            {"plot", to_hex(theme.plot)},
            {"text", to_hex(theme.text)},
            {"dim_text", to_hex(theme.dim_text)},
            {"accent", to_hex(theme.accent)},
            {"good", to_hex(theme.good)},
            {"bad", to_hex(theme.bad)},
            {"warning", to_hex(theme.warning)},
            {"categories", array_of(theme.categories, to_hex)},
            {"recipes", array_of(theme.recipes, to_hex)}};
}

json categories_json() {
    json rows = json::array();
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        const auto category = static_cast<Category>(i);
        rows.push_back({{"label", label_of(category)},
                        {"name", name_of(category)},
                        {"hatch", static_cast<int>(hatch_of(category))}});
    }
    return rows;
}

// ---- numbers of a trace ------------------------------------------------------------------------

/// What a moment holds: bytes of each category, and reserved bytes after them.
constexpr std::size_t kNumSeries = kCategoryNames.size() + 1;

std::array<int64_t, kNumSeries> series_of(const CurveBin& moment) {
    std::array<int64_t, kNumSeries> series{};
    std::copy(moment.by_category.begin(), moment.by_category.end(), series.begin());
    series.back() = moment.reserved_bytes;
    return series;
}

/// The largest number of bytes that divides every change: allocators round sizes, so numbers in
/// this unit are shorter.
int64_t unit_of(const std::vector<CurveBin>& moments) {
    int64_t unit = 0;
    for (const CurveBin& moment : moments) {
        for (const int64_t bytes : series_of(moment)) unit = std::gcd(unit, bytes);
    }
    return std::max<int64_t>(unit, 1);
}

/// For each moment: the time since the one before, a mask of the series that change, their changes.
json moments_json(const PageTrace& trace, double start_ns) {
    PackedNumbers packed;
    const std::vector<CurveBin>& moments = trace.moments.moments;
    const int64_t unit = unit_of(moments);
    std::array<int64_t, kNumSeries> before{};
    int64_t time_before = 0;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const auto time = std::max<int64_t>(time_before, std::llround(trace.time_ns[i] - start_ns));
        packed.add(static_cast<uint64_t>(time - std::exchange(time_before, time)));
        const std::array<int64_t, kNumSeries> series = series_of(moments[i]);
        uint64_t mask = 0;
        for (std::size_t s = 0; s < kNumSeries; ++s) {
            if (series[s] != before[s]) mask |= uint64_t{1} << s;
        }
        packed.add(mask);
        for (std::size_t s = 0; s < kNumSeries; ++s) {
            if (series[s] != before[s]) packed.add_signed((series[s] - before[s]) / unit);
        }
        before = series;
    }
    return {{"count", moments.size()},
            {"unit_bytes", unit},
            {"is_exact", trace.moments.is_exact},
            {"packed", to_base64(packed.bytes())}};
}

/// For each block: its first moment after that of the block before, how many moments it lives,
/// bytes, category, label.
json blocks_json(const PageTrace& trace) {
    PackedNumbers packed;
    const json labels = array_of(trace.labels, [](const BlockLabel& label) {
        return json{shown(label.name), shown(label.module_path)};
    });
    int64_t unit = 0;
    for (const PageBlock& block : trace.blocks) unit = std::gcd(unit, block.size_bytes);
    unit = std::max<int64_t>(unit, 1);
    uint32_t before = 0;
    for (const PageBlock& block : trace.blocks) {
        packed.add(block.first - std::exchange(before, block.first));
        packed.add(block.last - block.first);
        packed.add(static_cast<uint64_t>(block.size_bytes / unit));
        packed.add(static_cast<uint64_t>(block.category));
        packed.add(block.label);
    }
    return {{"count", trace.blocks.size()},
            {"hidden_count", trace.moments.hidden_blocks},
            {"unit_bytes", unit},
            {"labels", labels},
            {"packed", to_base64(packed.bytes())}};
}

json trace_json(const TimelineTrace& timeline, const PageTrace& trace, double start_ns) {
    const json phases = array_of(timeline.phases, [](const PhaseBand& band) {
        return json{{"kind", name_of(band.kind)},
                    {"start_ns", band.start_ns},
                    {"end_ns", band.end_ns},
                    {"text", band.text}};
    });
    const json steps = array_of(timeline.steps, [](const StepBand& band) {
        return json{{"start_ns", band.start_ns}, {"end_ns", band.end_ns}, {"text", band.text}};
    });
    json peak;  // null: not known
    if (!timeline.peaks.empty()) {
        const PeakMarker& marker = timeline.peaks.front();
        peak = {{"time_ns", marker.time_ns}, {"bytes", marker.bytes}, {"text", marker.text}};
    }
    return {{"name", shown(timeline.name)},
            {"summary", timeline.summary},
            {"start_ns", timeline.start_ns},
            {"end_ns", timeline.end_ns},
            {"phases", phases},
            {"steps", steps},
            {"peak", peak},
            {"time_map", array_of(trace.time_map,
                                  [](const TimeMap::Point& point) {
                                      return json{point.shared_ns, point.own_ns};
                                  })},
            {"moments", moments_json(trace, start_ns)},
            {"blocks", blocks_json(trace)}};
}

json ledger_row_json(const LedgerViewRow& row) {
    const bool in_a = row.presence != Presence::kAdded;
    const bool in_b = row.presence != Presence::kDisappeared;
    return {{"tensor", shown(row.tensor)},
            {"module", shown(row.module_path)},
            {"saved_by", shown(row.saved_by)},
            {"shape", shown(row.shape)},
            {"dtype", row.dtype},
            {"category", static_cast<int>(row.category)},
            {"bytes", in_a ? json(row.size_bytes) : json()},
            {"other_bytes", in_b ? json(row.other_bytes) : json()},
            {"difference_bytes", row.difference_bytes},
            {"lifetime_ns", row.lifetime_ns >= 0 ? json(row.lifetime_ns) : json()},
            {"closed_form", row.closed_form_text},
            {"closed_form_differs", row.differs_from_closed_form},
            {"changed", row.presence != Presence::kSame}};
}

json closed_forms_json(const LedgerView& view) {
    json forms = json::array();
    for (std::size_t i = 0; i < view.closed_forms.size(); ++i) {
        const auto& form = view.closed_forms[i];
        if (!form) continue;
        const std::string of = !view.has_other ? "" : i == 0 ? "A: " : "B: ";
        forms.push_back({{"text", of + form->text}, {"is_equal", form->is_equal}});
    }
    return forms;
}

json ledger_json(const LedgerView& view) {
    return {{"has_other", view.has_other},
            {"has_closed_form", view.has_closed_form},
            {"comparison", view.comparison_text},
            {"comparison_is_good", view.other_total_bytes <= view.total_bytes},
            {"closed_forms", closed_forms_json(view)},
            {"rows", array_of(view.rows, ledger_row_json)}};
}

json page_json(const PageView& view) {
    json traces = json::array();
    for (std::size_t i = 0; i < view.traces.size(); ++i) {
        traces.push_back(trace_json(view.timeline.traces[i], view.traces[i], view.range.start_ns));
    }
    return {{"version", 1},
            {"workload", shown(view.timeline.workload)},
            {"origin", shown(view.timeline.origin)},
            {"notes", shown(view.timeline.notes)},
            {"alignment_note", shown(view.timeline.alignment_note)},
            {"is_aligned", view.timeline.alignment != TimeAlignment::kTime},
            {"has_clock", view.has_clock},
            {"start_ns", view.range.start_ns},
            {"end_ns", view.range.end_ns},
            {"categories", categories_json()},
            {"stack_order",
             array_of(kCategoryStackOrder, [](Category one) { return static_cast<int>(one); })},
            {"themes", {{"dark", theme_json(dark_theme())}, {"light", theme_json(light_theme())}}},
            {"traces", traces},
            {"ledger", ledger_json(view.ledger)}};
}

// ---- the document ------------------------------------------------------------------------------

std::string make_policy(const HtmlPart& style, const std::vector<HtmlPart>& scripts) {
    std::string policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " +
                         hash_source(style) + "; script-src";
    for (const HtmlPart& script : scripts) policy += " " + hash_source(script);
    return policy;
}

std::string title_of(const PageView& view) {
    std::string title;
    for (const TimelineTrace& trace : view.timeline.traces) {
        title += (title.empty() ? "" : " and ") + shown(trace.name);
    }
    return title + " · Temposcope";
}

}  // namespace

std::string make_page(const PageView& view) {
    const HtmlPart style{embedded::page_css(), embedded::page_css_sha256()};
    const std::vector<HtmlPart> scripts = script_parts();
    std::string html = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"dark light\">\n"
        "<meta name=\"referrer\" content=\"no-referrer\">\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n",
        make_policy(style, scripts), escape_xml(title_of(view)), style.text);
    html += embedded::body_html();
    html += "<script type=\"application/json\" id=\"data\">" + to_element_text(page_json(view)) +
            "</script>\n";
    for (const HtmlPart& script : scripts) {
        html += "<script>";
        html += script.text;
        html += "</script>\n";
    }
    return html + "</body>\n</html>\n";
}

}  // namespace profiler
