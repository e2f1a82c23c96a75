#pragma once

#include "profiler/trace/units.h"

#include <cstdint>
#include <string>

/// What tables show in a cell without a value, and in one with a difference.
namespace profiler {

inline constexpr const char* kNoValue = "–";

inline std::string or_no_value(const std::string& text) { return text.empty() ? kNoValue : text; }

/// "+64.0 MiB", "-64.0 MiB"; no value for 0.
inline std::string signed_bytes(int64_t bytes) {
    if (bytes == 0) return kNoValue;
    return (bytes > 0 ? "+" : "") + format_bytes(bytes);
}

}  // namespace profiler
