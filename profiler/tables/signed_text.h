#pragma once

#include "profiler/trace/units.h"

#include <cstdint>
#include <cstdlib>
#include <string>

/// What tables show in a cell without a value, and in one with a difference.
namespace profiler {

inline std::string or_no_value(const std::string& text) { return text.empty() ? kNoValue : text; }

/// "+2.03 ms", "-2.03 ms": how large a difference is, after its sign. 0 has no sign.
inline std::string with_sign(int64_t difference, const std::string& magnitude) {
    return (difference > 0 ? "+" : difference < 0 ? "-" : "") + magnitude;
}

/// "+64.0 MiB", "-64.0 MiB", "0 B".
inline std::string change_in_bytes(int64_t bytes) {
    return with_sign(bytes, format_bytes(std::abs(bytes)));
}

/// The same, but no value for 0.
inline std::string signed_bytes(int64_t bytes) {
    return bytes == 0 ? kNoValue : change_in_bytes(bytes);
}

}  // namespace profiler
