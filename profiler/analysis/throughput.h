#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

/// How fast steps are, and what a sweep over batch sizes found.
namespace profiler {

/// The middle value; the mean of the middle two of an even number; 0 of none.
int64_t median(std::vector<int64_t> values);

/// 0 when the step took no time.
double sequences_per_s(int64_t batch_size, int64_t step_time_ns);

struct ThroughputPoint {
    int64_t batch_size = 0;
    bool out_of_memory = false;
    int64_t peak_allocated_bytes = 0;
    int64_t step_time_ns = 0;      // median over the samples
    int64_t step_time_min_ns = 0;  // spread
    int64_t step_time_max_ns = 0;
    double sequences_per_s = 0;
};

/// The points of a trace's sweep, by batch size; empty when it has none.
std::vector<ThroughputPoint> sweep_curve(const Trace& trace);

/// What a sweep says about the largest batch that fits: it lies in [at_least, below).
struct BatchBounds {
    std::optional<int64_t> at_least;  // the largest that trained; none: none did
    std::optional<int64_t> below;     // the smallest above it that failed; none: none did

    /// The maximum itself: when the very next batch failed. 0: not even one sequence fitted.
    std::optional<int64_t> exact() const;
};

BatchBounds bounds_of(const std::vector<ThroughputPoint>& curve);

}  // namespace profiler
