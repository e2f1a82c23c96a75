#pragma once

#include "profiler/trace/trace.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace profiler {

/// All times of a trace lie within 52 days: one that does not is wrong.
inline constexpr int64_t kMostNanosecondsApart = int64_t{1} << 52;

struct TimeExtent {
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;

    void add(int64_t time_ns) {
        first_ns = std::min(first_ns, time_ns);
        last_ns = std::max(last_ns, time_ns);
    }
    void add(std::span<const int64_t> times_ns) {
        for (const int64_t time_ns : times_ns) add(time_ns);
    }
    bool overlaps(const TimeExtent& other) const {
        return first_ns <= other.last_ns && other.first_ns <= last_ns;
    }
};

/// From the first start of an op to the last end.
TimeExtent time_range_of_ops(const Trace& trace);

/// Adds `shift_ns` to every time of the trace. What they mean stays the same: the wall clock at
/// time 0 goes the other way.
void shift_times(Trace& trace, int64_t shift_ns);

}  // namespace profiler
