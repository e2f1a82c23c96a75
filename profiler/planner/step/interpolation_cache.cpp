#include "profiler/planner/step/interpolation_cache.h"

#include <algorithm>

namespace profiler {

models::Result<BatchInterpolation*> InterpolationCache::get(const models::Workload& workload) {
    auto known = std::find_if(traced_.begin(), traced_.end(),
                              [&](const auto& one) { return one.first == workload; });
    if (known == traced_.end()) {
        traced_.emplace_back(workload, BatchInterpolation::trace(workload, *source_));
        known = traced_.end() - 1;
    }
    if (!known->second) return tl::unexpected(known->second.error());
    return &*known->second;
}

void InterpolationCache::add(const models::Workload& workload, BatchInterpolation interpolation) {
    traced_.emplace_back(workload, std::move(interpolation));
}

}  // namespace profiler
