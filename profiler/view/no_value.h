#pragma once

/// What tables show in a cell without a value.
namespace profiler {

inline constexpr const char* kNoValue = "–";

}  // namespace profiler
