#pragma once

#include "profiler/planner/step/batch_interpolation.h"

#include <deque>
#include <utility>

/// The interpolations of several workloads, so that each is traced only once. Not safe for several
/// threads at once.
namespace profiler {

class InterpolationCache {
public:
    /// `source` must outlive the cache.
    explicit InterpolationCache(const MetaTraceSource& source) : source_(&source) {}

    /// Stays valid as long as the cache. Errors: as BatchInterpolation::trace.
    models::Result<BatchInterpolation*> get(const models::Workload& workload);
    void add(const models::Workload& workload, BatchInterpolation interpolation);
    const MetaTraceSource& source() const { return *source_; }

private:
    const MetaTraceSource* source_;
    std::deque<std::pair<models::Workload, models::Result<BatchInterpolation>>> traced_;
};

}  // namespace profiler
