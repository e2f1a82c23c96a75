#pragma once

#include "models/config/compute_capability.h"

#include <cstdint>

namespace models {

/// What one multiprocessor of a generation runs at once.
/// Source   CUDA C++ Programming Guide 13.0, technical specifications per compute capability.
struct SmLimits {
    int threads = 0;
    int blocks = 0;
    int64_t shared_bytes = 0;            // for all blocks
    int64_t shared_bytes_per_block = 0;  // with opt-in
};

/// Of the newest known generation that is not newer than `capability`; of the oldest for others.
SmLimits sm_limits(ComputeCapability capability);

}  // namespace models
