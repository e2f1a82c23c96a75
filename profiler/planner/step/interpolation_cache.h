#pragma once

#include "profiler/planner/step/batch_interpolation.h"

#include <deque>
#include <utility>

/// The interpolations of several steps, so that each is traced only once. Not safe for several
/// threads at once.
namespace profiler {

class InterpolationCache {
public:
    /// `source` must outlive the cache.
    explicit InterpolationCache(const StepSource& source) : source_(&source) {}

    /// Stays valid as long as the cache. Errors: as BatchInterpolation::trace.
    models::Result<BatchInterpolation*> get(const StepToTrace& step);
    void add(const StepToTrace& step, BatchInterpolation interpolation);
    const StepSource& source() const { return *source_; }

private:
    const StepSource* source_;
    std::deque<std::pair<StepToTrace, models::Result<BatchInterpolation>>> traced_;
};

}  // namespace profiler
