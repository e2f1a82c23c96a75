#pragma once

#include "profiler/addresses/driver_addresses.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Which GPUs the process sees: what TEMPOSCOPE_VIRTUAL_GPU says, as JSON.
///
///     {"devices": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0",
///                   "total_bytes": 85094825984, "context_bytes": 524288000, "sm_count": 108,
///                   "l2_bytes": 41943040, "threads_per_sm": 2048, "blocks_per_sm": 32,
///                   "shared_bytes_per_sm": 167936, "shared_bytes_per_block": 166912,
///                   "clock_khz": 1410000, "memory_clock_khz": 1593000, "memory_bus_bits": 5120,
///                   "nccl_bytes": 214958080}],
///      "placement": "ascending"}
///
/// The clocks and the bus, nccl_bytes and placement may be left out.
///
/// The figures come from assets/gpus.json; whoever starts the process fills them in.
namespace profiler::virtual_gpu {

inline constexpr const char* kEnvironmentVariable = "TEMPOSCOPE_VIRTUAL_GPU";
inline constexpr std::size_t kMaxDevices = 32;  // each takes addresses

struct Card {
    std::string name;  // as CUDA reports it
    int major = 0;     // of the compute capability
    int minor = 0;
    int64_t total_bytes = 0;    // as cudaMemGetInfo reports them
    int64_t context_bytes = 0;  // of these, taken before the first allocation
    int sm_count = 0;
    int64_t l2_bytes = 0;
    int threads_per_sm = 0;
    int blocks_per_sm = 0;
    int64_t shared_bytes_per_sm = 0;
    int64_t shared_bytes_per_block = 0;  // with opt-in
    // What programs compute the card's speed from. Where none is given: an H100's.
    int clock_khz = 1'980'000;         // of the multiprocessors
    int memory_clock_khz = 2'619'000;  // two transfers a cycle
    int memory_bus_bits = 5120;
    int64_t nccl_bytes = 0;  // that NCCL takes with the first communicator
};

/// The shared memory that CUDA keeps of each block, from compute capability 8.0 on.
inline int reserved_shared_bytes(const Card& card) { return card.major >= 8 ? 1024 : 0; }

/// Of device memory.
inline double bytes_per_ns(const Card& card) {
    return 2.0 * card.memory_clock_khz * card.memory_bus_bits / 8 * 1e-6;
}

struct Machine {
    std::vector<Card> cards;  // by device index
    SegmentPlacement placement = SegmentPlacement::kChunks;
};

/// Throws std::invalid_argument with one sentence.
Machine parse_machine(const std::string& json);

/// The machine of this process. Ends the process with one sentence when the variable is missing or
/// wrong, because this process has no other CUDA.
const Machine& machine();

}  // namespace profiler::virtual_gpu
