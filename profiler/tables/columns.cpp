#include "profiler/tables/columns.h"

#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <cmath>

namespace profiler {

std::string text_of(Unit unit, const Cell& cell) {
    if (!cell.has_value()) return kNoValue;
    switch (unit) {
        case Unit::kText:
            return std::get<std::string>(cell);
        case Unit::kNumber:
            return std::to_string(std::get<int64_t>(cell));
        case Unit::kCount:
            return format_count(std::get<int64_t>(cell));
        case Unit::kBytes:
            return format_bytes(std::get<int64_t>(cell));
        case Unit::kBytesPerSecond:
            return format_bytes(std::llround(std::get<double>(cell))) + "/s";
        case Unit::kNanoseconds:
            return format_duration(std::get<int64_t>(cell));
        case Unit::kRate:
            return fmt::format("{:.1f}", std::get<double>(cell));
        case Unit::kShare:
            return format_percent(std::get<double>(cell));
        case Unit::kYesNo:
            return std::get<bool>(cell) ? "yes" : "no";
    }
    return kNoValue;
}

}  // namespace profiler
