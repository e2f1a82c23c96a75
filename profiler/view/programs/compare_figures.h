#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/view/programs/compare_view.h"

#include <string>
#include <string_view>
#include <vector>

namespace profiler {

enum class Better : uint8_t { kLess, kMore };

/// How `value` differs from `baseline`; empty if one of them is not above 0.
Change change_of(double value, double baseline, Better better);

/// The maximum batch: "12"; "≥ 8, < 16" for a sweep that ended before it found the maximum; "≥ 64"
/// for one that reached no limit; empty without a batch.
std::string bounds_text(const BatchBounds& bounds);

/// A bar in kCategoryStackOrder, without empty categories.
std::vector<StackSegment> build_stack(const CategoryBytes& by_category);

}  // namespace profiler
