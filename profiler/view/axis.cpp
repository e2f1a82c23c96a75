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

}  // namespace profiler
