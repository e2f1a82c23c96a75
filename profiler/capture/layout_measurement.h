#pragma once

#include "profiler/layouts/encoder_ops.h"

#include <cstdint>

namespace profiler {

/// What to measure of an encoder layer's dimension orders, and how often.
struct LayoutMeasurement {
    LayoutSizes sizes;
    int64_t num_rounds = 5;  // behind each median
};

}  // namespace profiler
