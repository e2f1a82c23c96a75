#pragma once

#include <cstdint>
#include <exception>

namespace profiler {

/// What an allocator refused last.
struct OutOfMemoryDetail {
    int64_t requested_bytes = -1;  // as PyTorch's own message has it: of a segment on a GPU
    int64_t free_bytes = -1;       // of the limit, or of the device
};

/// Whether a step failed for want of memory. CUDA's libraries and kernels allocate beside torch's
/// allocator, and fail with errors of their own.
bool is_out_of_memory(const std::exception& error);

}  // namespace profiler
