#pragma once

#include "profiler/analysis/peak.h"
#include "profiler/view/compare_view.h"

#include <string>
#include <string_view>
#include <vector>

namespace profiler {

enum class Better : uint8_t { kLess, kMore };

/// How `value` differs from `baseline`; empty if one of them is not above 0.
Change change_of(double value, double baseline, Better better);

/// Sequences per second with at least three significant digits: "8.23", "0.000052", "1,250".
std::string rate_text(double sequences_per_s);

/// The maximum batch: "12"; "≥ 8, < 16" for a sweep that ended before it found the maximum; "≥ 64"
/// for one that reached no limit; empty without a batch.
std::string bounds_text(const BatchBounds& bounds);

/// "RTX 3090" of "NVIDIA GeForce RTX 3090": without the maker and its brand.
std::string_view short_gpu_name(std::string_view gpu);

/// A bar in kCategoryStackOrder, without empty categories.
std::vector<StackSegment> build_stack(const CategoryBytes& by_category);

}  // namespace profiler
