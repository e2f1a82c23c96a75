#include "profiler/virtual_gpu/occupancy.h"

#include <algorithm>

namespace profiler::virtual_gpu {
namespace {

/// Registers are given to warps in units of 256, and a multiprocessor's four parts hold equally
/// many warps (CUDA occupancy calculator).
constexpr int kRegisterUnit = 256;
constexpr int kParts = 4;

int warps_that_find_registers(int registers) {
    const int of_warp =
        (registers * kWarpThreads + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    return kRegistersPerSm / of_warp / kParts * kParts;
}

}  // namespace

int registers_of(const KernelResources& kernel) {
    return kernel.registers > 0 ? kernel.registers : kAssumedRegisters;
}

int max_threads_of(const KernelResources& kernel) {
    const int fit = warps_that_find_registers(registers_of(kernel)) * kWarpThreads;
    const int own = kernel.max_threads > 0 ? kernel.max_threads : kThreadsPerBlock;
    return std::min({fit, own, kThreadsPerBlock});
}

int blocks_per_sm(const Card& card, const KernelResources& kernel, const BlockSize& block) {
    if (block.threads <= 0 || block.threads > max_threads_of(kernel)) return 0;
    const int warps = (block.threads + kWarpThreads - 1) / kWarpThreads;
    int blocks = std::min(card.threads_per_sm / (warps * kWarpThreads), card.blocks_per_sm);
    blocks = std::min(blocks, warps_that_find_registers(registers_of(kernel)) / warps);
    const int64_t shared_bytes = kernel.shared_bytes + block.dynamic_shared_bytes;
    if (shared_bytes > 0) {
        if (shared_bytes > card.shared_bytes_per_block) return 0;
        const int64_t fit = card.shared_bytes_per_sm / (shared_bytes + reserved_shared_bytes(card));
        blocks = static_cast<int>(std::min<int64_t>(blocks, fit));
    }
    return blocks;
}

}  // namespace profiler::virtual_gpu
