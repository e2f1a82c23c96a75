#pragma once

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/cubin.h"
#include "profiler/virtual_gpu/occupancy.h"

#include <cstdint>
#include <vector>

/// The kernels of the process's libraries, and their launches. No kernel runs, except fills: torch
/// makes small tensors of one value with them, such as the loss scale, and the host reads these.
namespace profiler::virtual_gpu {

/// Limits that all capabilities share (CUDA C++ Programming Guide, technical specifications).
inline constexpr int kMaxBlockZ = 64;
inline constexpr int kMaxGridX = INT32_MAX;
inline constexpr int kMaxGridYZ = 65535;
inline constexpr int kSharedBytesPerBlock = 48 * 1024;  // without opt-in

struct Kernel {
    const char* name = nullptr;  // mangled
    std::size_t fill_bytes = 0;  // size of an element, if the kernel is torch's fill; else 0
    bool is_all = false;         // torch's all(): whether all elements are true
    KernelResources resources = {};
    std::vector<CubinParameter> parameters = {};  // of a kernel that was read from a cubin
};

struct Launch {
    dim3 grid, block;
    std::size_t shared_bytes = 0;  // dynamic
    cudaStream_t stream = nullptr;
    void** arguments = nullptr;
};

/// The kernel of a host function that __cudaRegisterFunction named.
const Kernel& kernel_of(const void* host_function);
/// A kernel of a module that the program loaded. It lives as long as the process, because records
/// of its launches name it.
Kernel* add_kernel(const CubinKernel& code);
/// As the driver hands it out. A kernel has one address as CUfunction and as CUkernel.
inline Kernel& kernel_of_function(CUfunction function) {
    return *reinterpret_cast<Kernel*>(function);
}

/// Errors as CUDA's: an impossible grid or block, more shared memory than the card has, more
/// threads than find registers.
cudaError_t launch(const Kernel& kernel, const Launch& launch);

/// Of the current device.
const Card& current_card();

/// The newest capability that torch has code for and that the current device runs, as "90".
int code_version();

}  // namespace profiler::virtual_gpu
