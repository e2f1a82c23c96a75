#pragma once

#include <string_view>

namespace profiler {

/// Code of a diagnostic: the categories of `count` blocks are inferred, not recorded.
inline constexpr std::string_view kInferredCategories = "inferred_categories";

}  // namespace profiler
