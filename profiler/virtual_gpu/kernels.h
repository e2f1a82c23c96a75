#pragma once

#include "profiler/virtual_gpu/api.h"

#include <cstdint>
#include <string>

/// The kernels of the process's libraries, and their launches. No kernel runs, except fills: torch
/// makes small tensors of one value with them, such as the loss scale, and the host reads these.
namespace profiler::virtual_gpu {

/// Limits that all capabilities share (CUDA C++ Programming Guide, technical specifications).
inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kMaxBlockZ = 64;
inline constexpr int kMaxGridX = INT32_MAX;
inline constexpr int kMaxGridYZ = 65535;
inline constexpr int kSharedBytesPerBlock = 48 * 1024;  // without opt-in
inline constexpr int kRegistersPerSm = 65536;
inline constexpr int kWarpThreads = 32;

struct Kernel {
    const char* name = nullptr;  // mangled
    std::size_t fill_bytes = 0;  // size of an element, if the kernel is torch's fill; else 0
    bool is_all = false;         // torch's all(): whether all elements are true
};

struct Launch {
    dim3 grid, block;
    std::size_t shared_bytes = 0;  // dynamic
    cudaStream_t stream = nullptr;
    void** arguments = nullptr;
};

/// The kernel of a host function that __cudaRegisterFunction named.
const Kernel& kernel_of(const void* host_function);
/// A kernel of a module that the program loaded by hand. It lives as long as the process.
Kernel* add_kernel(const std::string& name);

/// Errors as CUDA's: an impossible grid, block or amount of shared memory.
cudaError_t launch(const Kernel& kernel, const Launch& launch);

/// How many blocks run on an SM at once, with the registers that are assumed of every kernel.
int blocks_per_sm(int block_size, std::size_t shared_bytes);
inline constexpr int kAssumedRegisters = 32;

/// The newest capability that torch has code for and that the current device runs, as "90".
int code_version();

}  // namespace profiler::virtual_gpu
