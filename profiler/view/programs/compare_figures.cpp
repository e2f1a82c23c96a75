#include "profiler/view/programs/compare_figures.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace profiler {

Change change_of(double value, double baseline, Better better) {
    if (!(value > 0) || !(baseline > 0)) return {};
    Change change;
    change.ratio = value / baseline - 1;
    change.text = format_percent(change.ratio, /*with_sign=*/true);
    // Half a unit of the last digit: a change that reads as 0.0 % is neither good nor bad.
    if (std::abs(change.ratio) >= 0.0005) {
        const bool is_less = change.ratio < 0;
        change.tone = is_less == (better == Better::kLess) ? Tone::kGood : Tone::kBad;
    }
    return change;
}

std::string bounds_text(const BatchBounds& bounds) {
    if (const auto exact = bounds.exact()) return format_count(*exact);
    std::vector<std::string> parts;
    if (bounds.at_least) parts.push_back("≥ " + format_count(*bounds.at_least));
    if (bounds.below) parts.push_back("< " + format_count(*bounds.below));
    return fmt::to_string(fmt::join(parts, ", "));
}

std::vector<StackSegment> build_stack(const CategoryBytes& by_category) {
    std::vector<StackSegment> stack;
    int64_t start_bytes = 0;
    for (const Category category : kCategoryStackOrder) {
        const int64_t size_bytes = by_category[static_cast<std::size_t>(category)];
        if (size_bytes <= 0) continue;
        stack.push_back({category, start_bytes, size_bytes, format_bytes(size_bytes)});
        start_bytes += size_bytes;
    }
    return stack;
}

}  // namespace profiler
