#pragma once

#include "models/config/compute_capability.h"
#include "models/config/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Processes that see virtual GPUs in place of the machine's (docs/dev/virtual_gpu.md).
namespace profiler {

/// Set in a process that sees virtual GPUs; describes them.
inline constexpr const char* kVirtualGpuVariable = "TEMPOSCOPE_VIRTUAL_GPU";

/// A process sees no more than this many virtual GPUs.
inline constexpr std::size_t kMostVirtualCards = 32;

struct VirtualCard {
    std::string name;  // as CUDA reports it
    models::ComputeCapability capability;
    int64_t total_bytes = 0;    // as CUDA reports them
    int64_t context_bytes = 0;  // of these, taken before the first allocation
    int64_t sm_count = 0;
    int64_t l2_bytes = 0;
    // 0: as an H100's.
    int64_t clock_khz = 0;         // of the multiprocessors
    int64_t memory_clock_khz = 0;  // two transfers a cycle
    int64_t memory_bus_bits = 0;
    int64_t nccl_bytes = 0;  // that NCCL takes beside the allocator, with its first communicator
};

/// What to add to the environment ("NAME=value") of a process that shall see `cards` as its
/// devices, in this order; at most kMostVirtualCards. `folder` has the virtual GPU's libraries.
/// Errors: they are not there, or the folder's path has a space or a colon, which LD_PRELOAD cannot
/// hold.
models::Result<std::vector<std::string>> virtual_gpu_environment(
    const std::filesystem::path& folder, const std::vector<VirtualCard>& cards);

/// The folder beside this program; TEMPOSCOPE_VIRTUAL_GPU_FOLDER names another one.
std::filesystem::path virtual_gpu_folder();

}  // namespace profiler
