#include "profiler/trace/units.h"

#include "profiler/trace/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace profiler {
namespace {

// Three digits: 1.23, 12.3, 123 (and 1023, which binary units can reach).
int decimals_of(double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; }

// The largest unit in which the rounded value is at least 1: 1023.9 KiB reads "1.00 MiB".
template <std::size_t N>
std::string format_in_units(int64_t amount, const std::array<UnitScale, N>& units) {
    const double magnitude = std::abs(static_cast<double>(amount));
    const char* sign = amount < 0 ? "-" : "";
    std::size_t best = 0;
    while (best + 1 < N) {
        const double ratio = units[best + 1].size / units[best].size;
        if (std::round(magnitude / units[best].size) < ratio) break;
        ++best;
    }
    const UnitScale& unit = units[best];
    if (best == 0) return fmt::format("{}{:.0f} {}", sign, magnitude, unit.name);
    const double value = magnitude / unit.size;
    return fmt::format("{}{:.{}f} {}", sign, value, decimals_of(value), unit.name);
}

/// 0 when the unit is unknown.
int64_t bytes_per_unit(std::string_view unit) {
    struct Named {
        std::string_view name;
        int64_t size_bytes;
    };
    static constexpr std::array<Named, 10> kUnits{{{"", 1},
                                                   {"b", 1},
                                                   {"kib", int64_t{1} << 10},
                                                   {"mib", int64_t{1} << 20},
                                                   {"gib", int64_t{1} << 30},
                                                   {"tib", int64_t{1} << 40},
                                                   {"kb", 1'000},
                                                   {"mb", 1'000'000},
                                                   {"gb", 1'000'000'000},
                                                   {"tb", 1'000'000'000'000}}};
    const std::string name = to_lower(unit);
    for (const Named& candidate : kUnits) {
        if (candidate.name == name) return candidate.size_bytes;
    }
    return 0;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

}  // namespace

std::string format_bytes(int64_t bytes) { return format_in_units(bytes, kByteUnits); }

std::string format_exact_bytes(int64_t bytes) { return format_count(bytes) + " B"; }

std::string format_duration(int64_t duration_ns) {
    return format_in_units(duration_ns, kTimeUnits);
}

std::string format_amount(double amount, std::string_view unit, int digits) {
    constexpr std::array<std::string_view, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};
    const auto decimals = [&](double value) {  // after the digits before the point
        int left = digits - 1;
        for (double limit = 10; left > 0 && value >= limit - 0.5 * std::pow(10, -left);
             limit *= 10) {
            --left;
        }
        return left;
    };
    double value = std::abs(amount);
    std::size_t prefix = 0;
    while (prefix + 1 < kPrefixes.size() && value >= 1000 - 0.5 * std::pow(10, 3 - digits)) {
        value /= 1000;
        ++prefix;
    }
    const bool is_whole = prefix == 0 && value == std::floor(value);
    std::string text =
        fmt::format("{}{:.{}f}", amount < 0 ? "-" : "", value, is_whole ? 0 : decimals(value));
    if (prefix == 0 && unit.empty()) return text;
    return fmt::format("{} {}{}", text, kPrefixes[prefix], unit);
}

std::string format_count(int64_t count) {
    std::string digits = fmt::format("{}", count);
    const std::size_t first = count < 0 ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3;) {
        i -= 3;
        digits.insert(i, 1, ',');
    }
    return digits;
}

std::string format_percent(double ratio, bool with_sign) {
    if (!std::isfinite(ratio)) return "n/a";
    double percent = std::round(ratio * 1000) / 10;
    if (percent == 0) percent = 0;  // no "-0.0"
    return with_sign && percent > 0 ? fmt::format("+{:.1f} %", percent)
                                    : fmt::format("{:.1f} %", percent);
}

std::string format_rate(double sequences_per_s) {
    if (sequences_per_s >= 99.95) return format_count(std::llround(sequences_per_s));
    const double digits = sequences_per_s > 0 ? std::floor(std::log10(sequences_per_s)) : 0;
    return fmt::format("{:.{}f}", sequences_per_s, std::clamp(2 - static_cast<int>(digits), 0, 9));
}

models::Result<int64_t> parse_bytes(std::string_view text) {
    const std::string_view size = trim(text);
    constexpr std::string_view kHelp = "write a size as 16GiB, 512MiB, 11GB or a number of bytes";
    if (size.empty() || size.front() < '0' || size.front() > '9') {
        return models::fail("'{}' is not a size: {}.", text, kHelp);
    }
    // long double holds every int64_t exactly, so whole numbers of bytes do not round.
    long double value = 0;
    const auto [end, error] =
        std::from_chars(size.data(), size.data() + size.size(), value, std::chars_format::fixed);
    if (error == std::errc::invalid_argument) {
        return models::fail("'{}' is not a size: {}.", text, kHelp);
    }
    const std::string_view unit =
        trim({end, static_cast<std::size_t>(size.data() + size.size() - end)});
    const int64_t unit_bytes = bytes_per_unit(unit);
    if (unit_bytes == 0) {
        return models::fail("'{}' is not a size, '{}' is not a unit: {}.", text, unit, kHelp);
    }
    const long double bytes = std::round(value * static_cast<long double>(unit_bytes));
    // 2^63 is the first value that does not fit.
    if (error == std::errc::result_out_of_range || !(bytes < 0x1p63L)) {
        return models::fail("'{}' is too large for a size: the limit is 8 EiB.", text);
    }
    return static_cast<int64_t>(bytes);
}

std::string text_of_limit(int64_t size_bytes, int64_t limit_bytes) {
    const std::string text = format_bytes(size_bytes);
    return limit_bytes > 0 ? text + " of " + format_bytes(limit_bytes) : text;
}

bool is_near_limit(int64_t peak_bytes, int64_t limit_bytes) {
    return limit_bytes > 0 && peak_bytes > limit_bytes / 2;
}

}  // namespace profiler
