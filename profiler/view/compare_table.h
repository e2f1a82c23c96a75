#pragma once

#include "profiler/analysis/comparison.h"
#include "profiler/view/compare_view.h"

#include <vector>

/// The comparison as a table of text: a row per recipe.
namespace profiler {

/// `views` are the finished columns of `comparison`, in the same order.
TextTable build_compare_table(const Comparison& comparison,
                              const std::vector<CompareColumn>& views);

}  // namespace profiler
