#include "profiler/view/axis.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace profiler {
namespace {

bool is_decimal(AxisUnit unit) { return unit != AxisUnit::kBytes; }
bool is_whole(AxisUnit unit) { return unit != AxisUnit::kRate; }

double next_step(AxisUnit unit, double step) {
    if (!is_decimal(unit)) return step * 2;
    const double decade = std::pow(10.0, std::floor(std::log10(step) + 1e-9));
    const double digit = std::round(step / decade);
    return (digit < 2 ? 2 : digit < 5 ? 5 : 10) * decade;
}

/// The largest power (of two or ten) that is not above `value`.
double first_step(AxisUnit unit, double value) {
    const double step = is_decimal(unit) ? std::pow(10.0, std::floor(std::log10(value)))
                                         : std::exp2(std::floor(std::log2(value)));
    return std::max(step, is_whole(unit) ? 1.0 : std::numeric_limits<double>::min());
}

double count_ticks(double min, double max, double step) {
    return std::floor(max / step) - std::ceil(min / step) + 1;
}

/// The smallest nice step with at most `max_count` ticks in [min, max].
double find_step(AxisUnit unit, double min, double max, int max_count) {
    double step = first_step(unit, (max - min) / max_count);
    while (count_ticks(min, max, step) > max_count) step = next_step(unit, step);
    return step;
}

int decimals_for(double step) {
    int decimals = 0;
    while (decimals < 9 && std::abs(step - std::round(step)) > 1e-6 * step) {
        step *= 10;
        ++decimals;
    }
    return decimals;
}

/// "12,345.60": digits are grouped, so that labels stay readable in a deep zoom far from the
/// origin.
std::string format_number(double value, int decimals) {
    std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
    const std::size_t point = text.find('.');
    const std::size_t whole = point == std::string::npos ? text.size() : point;
    if (whole > 4) {
        for (std::size_t at = whole - 3; at < whole; at -= 3) {
            text.insert(at, 1, ',');
            if (at <= 3) break;
        }
    }
    return value < 0 ? "-" + text : text;
}

/// The unit of the labels: the largest value's unit, or a smaller one if the step is so fine that
/// its fractions would need many digits (0.0625 GiB is 64 MiB).
UnitScale choose_scale(AxisUnit unit, double largest, double step) {
    if (unit == AxisUnit::kTime) {
        std::size_t i = kTimeUnits.size() - 1;
        while (i > 0 && largest < kTimeUnits[i].size) --i;
        return kTimeUnits[i];
    }
    if (unit == AxisUnit::kBytes) {
        std::size_t i = kByteUnits.size() - 1;
        while (i > 0 && (largest < kByteUnits[i].size || step < 0.25 * kByteUnits[i].size)) --i;
        return kByteUnits[i];
    }
    return {"", 1};
}

}  // namespace

std::vector<Tick> make_ticks(AxisUnit unit, double min, double max, int max_count) {
    if (!std::isfinite(max - min) || max <= min) return {};
    const double step = find_step(unit, min, max, std::max(max_count, 2));
    const UnitScale scale = choose_scale(unit, std::max(std::abs(min), std::abs(max)), step);
    const int decimals = decimals_for(step / scale.size);

    std::vector<Tick> ticks;
    const double first = std::ceil(min / step);
    const int count = static_cast<int>(count_ticks(min, max, step));  // at most max_count
    for (int i = 0; i < count; ++i) {
        const double multiple = first + i;
        const double value = multiple == 0 ? 0.0 : multiple * step;  // never -0
        // So far from the origin, neighbouring multiples round to the same number.
        if (!ticks.empty() && value <= ticks.back().value) continue;
        std::string label = value == 0 ? "0" : format_number(value / scale.size, decimals);
        if (value != 0 && !scale.name.empty()) {
            label += ' ';
            label += scale.name;
        }
        ticks.push_back({value, std::move(label)});
    }
    return ticks;
}

double axis_end(AxisUnit unit, double max_value, double headroom, int max_count) {
    if (!std::isfinite(max_value) || max_value <= 0) return 1;
    const double end = max_value * (1 + headroom);
    if (!std::isfinite(end)) return max_value;
    const double step = find_step(unit, 0, end, std::max(max_count, 2));
    const double next_tick = std::ceil(end / step) * step;
    return next_tick - end <= 0.4 * step ? next_tick : end;
}

namespace {

constexpr std::string_view kEllipsis = "…";

/// Where each UTF-8 character starts, and the end.
std::vector<std::size_t> character_starts(std::string_view text) {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_continuation = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
        if (!is_continuation) starts.push_back(i);
    }
    starts.push_back(text.size());
    return starts;
}

/// `count` characters of `text` with an ellipsis in the middle; the larger half is from its start.
std::string shorten(std::string_view text, const std::vector<std::size_t>& starts,
                    std::size_t count) {
    const std::size_t total = starts.size() - 1;
    const std::size_t head = (count + 1) / 2;
    const std::size_t tail = count / 2;
    std::string result(text.substr(0, starts[head]));
    result += kEllipsis;
    result += text.substr(starts[total - tail]);
    return result;
}

bool breaks_after(char c) { return c == ' ' || c == ',' || c == '-' || c == '=' || c == '/'; }

/// The end of the longest prefix of `text` that fits, if possible at a place to break.
std::size_t find_break(std::string_view text, double max_width, const MeasureText& measure) {
    const std::vector<std::size_t> starts = character_starts(text);
    std::size_t last_fit = starts.size() > 1 ? starts[1] : text.size();  // always some progress
    std::size_t last_break = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
        std::string_view start = text.substr(0, starts[i]);
        while (start.ends_with(' ')) start.remove_suffix(1);
        if (measure(start) > max_width) break;
        last_fit = starts[i];
        if (breaks_after(text[starts[i] - 1])) last_break = starts[i];
    }
    return last_break > 0 ? last_break : last_fit;
}

}  // namespace

std::string fit_label(std::string_view text, double max_width, const MeasureText& measure) {
    if (measure(text) <= max_width) return std::string(text);
    const std::vector<std::size_t> starts = character_starts(text);
    // The width grows with the number of characters, so bisection finds the most that fit.
    std::size_t fits = 0;
    std::size_t too_many = starts.size() - 1;
    while (too_many - fits > 1) {
        const std::size_t middle = (fits + too_many) / 2;
        (measure(shorten(text, starts, middle)) <= max_width ? fits : too_many) = middle;
    }
    const std::string shortest = shorten(text, starts, fits);
    return measure(shortest) <= max_width ? shortest : std::string();
}

std::string fit_path(std::string_view path, double max_width, const MeasureText& measure) {
    if (measure(path) <= max_width) return std::string(path);
    std::size_t number = path.npos;  // where the last part that counts begins: which layer it is
    std::vector<std::string> ends;
    for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
        const std::string_view end = path.substr(dot + 1);
        if (!end.empty() && end.front() >= '0' && end.front() <= '9') number = ends.size();
        ends.emplace_back(end);
    }
    if (number < ends.size() && number + 1 < ends.size()) {
        const std::string digits = ends[number].substr(0, ends[number].find('.'));
        // After the ends that hold the layer's number, before the shorter ends without it.
        std::vector<std::string> numbered;
        for (std::size_t i = number + 2; i < ends.size(); ++i) {
            numbered.push_back(digits + std::string(kEllipsis) + ends[i]);
        }
        ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(number) + 1, numbered.begin(),
                    numbered.end());
    }
    for (const std::string& end : ends) {
        std::string shown = std::string(kEllipsis) + end;
        if (measure(shown) <= max_width) return shown;
    }
    return fit_label(path, max_width, measure);
}

std::vector<std::string> wrap_label(std::string_view text, double max_width, int max_lines,
                                    const MeasureText& measure) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const bool is_last = static_cast<int>(lines.size()) + 1 >= max_lines;
        if (is_last || measure(text) <= max_width) {
            lines.push_back(fit_label(text, max_width, measure));
            break;
        }
        const std::size_t end = find_break(text, max_width, measure);
        std::string_view line = text.substr(0, end);
        while (line.ends_with(' ')) line.remove_suffix(1);
        lines.emplace_back(line);
        text.remove_prefix(end);
        while (text.starts_with(' ')) text.remove_prefix(1);
    }
    return lines;
}

}  // namespace profiler
