#pragma once

#include <cstdint>
#include <vector>

namespace profiler {

struct TimeSpan {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
};

/// How much of time the spans cover together. One that ends before it starts covers nothing.
int64_t covered_ns(std::vector<TimeSpan> spans);

}  // namespace profiler
