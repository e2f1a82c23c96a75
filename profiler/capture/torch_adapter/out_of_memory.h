#pragma once

#include <cstdint>
#include <exception>

namespace profiler {

/// The last allocation that failed.
struct OutOfMemoryDetail {
    int64_t requested_bytes = -1;  // as in PyTorch's message: of the segment on a GPU
    int64_t free_bytes = -1;       // below the limit, or on the device
};

/// Whether a step failed because memory ran out. CUDA's libraries and kernels also allocate without
/// torch's allocator, and fail with errors of their own.
bool is_out_of_memory(const std::exception& error);

}  // namespace profiler
