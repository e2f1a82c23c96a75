#include "profiler/planner/step/interpolation_cache.h"

#include <algorithm>

namespace profiler {

models::Result<BatchInterpolation*> InterpolationCache::get(const StepToTrace& step) {
    auto known = std::find_if(traced_.begin(), traced_.end(),
                              [&](const auto& one) { return one.first == step; });
    if (known == traced_.end()) {
        traced_.emplace_back(step, BatchInterpolation::trace(step, *source_));
        known = traced_.end() - 1;
    }
    if (!known->second) return tl::unexpected(known->second.error());
    return &*known->second;
}

void InterpolationCache::add(const StepToTrace& step, BatchInterpolation interpolation) {
    traced_.emplace_back(step, std::move(interpolation));
}

}  // namespace profiler
