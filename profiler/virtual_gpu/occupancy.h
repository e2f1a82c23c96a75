#pragma once

#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/cubin.h"

#include <cstdint>

/// How many threads and blocks of a kernel a multiprocessor holds.
namespace profiler::virtual_gpu {

/// Limits that all capabilities share (CUDA C++ Programming Guide, technical specifications).
inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kRegistersPerSm = 65536;
inline constexpr int kWarpThreads = 32;

/// Of a kernel of a library, whose machine code nobody reads.
inline constexpr int kAssumedRegisters = 32;

/// Registers of a thread.
int registers_of(const KernelResources& kernel);
/// The largest block that a launch may have: as many threads as find registers, and not more than
/// the kernel itself allows.
int max_threads_of(const KernelResources& kernel);

struct BlockSize {
    int threads = 0;
    int64_t dynamic_shared_bytes = 0;
};

/// How many such blocks run on a multiprocessor at once; 0 if not even one does.
int blocks_per_sm(const Card& card, const KernelResources& kernel, const BlockSize& block);

}  // namespace profiler::virtual_gpu
