#pragma once

#include "models/config/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// The only code that turns bytes, times and counts into text and back. It does not depend on the
/// locale.
namespace profiler {

struct UnitScale {
    std::string_view name;
    double size;  // in bytes or nanoseconds
};
inline constexpr std::array<UnitScale, 7> kByteUnits{{{"B", 1},
                                                      {"KiB", 0x1p10},
                                                      {"MiB", 0x1p20},
                                                      {"GiB", 0x1p30},
                                                      {"TiB", 0x1p40},
                                                      {"PiB", 0x1p50},
                                                      {"EiB", 0x1p60}}};
inline constexpr std::array<UnitScale, 4> kTimeUnits{
    {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

// The units of data sheets and data files.
inline constexpr double kMiBBytes = 0x1p20;
inline constexpr double kGiBBytes = 0x1p30;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;
inline constexpr double kNsPerS = 1e9;

/// With the largest decimal prefix that leaves at least 1: "25.8 Gflop", "4.19 M", "2.04 TB/s",
/// "512". `digits` of them count.
std::string format_amount(double amount, std::string_view unit = {}, int digits = 3);
std::string format_bytes(int64_t bytes);           // "24.5 GiB", "14.0 MiB", "512 B"; 3 digits
std::string format_exact_bytes(int64_t bytes);     // "14,769,152 B"
std::string format_duration(int64_t duration_ns);  // "7.62 s", "2.03 ms", "850 ns"
std::string format_count(int64_t count);           // "1,004,229"
std::string format_percent(double ratio, bool with_sign = false);  // 0.209 -> "20.9 %", "+20.9 %"
std::string format_rate(double sequences_per_s);  // "8.23", "0.000052", "1,250"; 3 digits or more

/// In place of a value that is not known.
inline constexpr const char* kNoValue = "–";

/// "16GiB", "512 MiB", "1.5gib", "4096" (bytes), "11GB" (decimal). Refuses negative sizes,
/// unknown units and what does not fit int64_t.
models::Result<int64_t> parse_bytes(std::string_view text);

// Memory beside the limit that it had: a device's size, or a limit that emulates one.

/// "14.1 GiB of 16.0 GiB"; without a limit (not above 0) "14.1 GiB".
std::string text_of_limit(int64_t size_bytes, int64_t limit_bytes);

/// Whether a limit belongs into a picture of a peak: far above it, it would press the rest flat.
bool is_near_limit(int64_t peak_bytes, int64_t limit_bytes);

}  // namespace profiler
