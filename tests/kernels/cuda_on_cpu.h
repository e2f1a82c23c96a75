#pragma once

// Runs the CUDA kernels on a machine without a GPU. The C++ compiler compiles kernels/*.cu
// unchanged, with this header in front (-include). A CUDA thread is a fiber. A barrier or a warp
// shuffle switches to the next fiber, so the same values move between threads as on a GPU. Not all
// threads reach a barrier or a shuffle of their block or warp: undefined on a GPU, an error here.
// Not the same: rounding of expf, __logf and __fdividef, and speed.

#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

namespace cuda_on_cpu {

/// Runs `thread` once for every thread of the grid, block after block.
/// Errors   std::runtime_error that names the kernel when threads wait for each other for ever.
void run(const char* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);

/// After this call the card has so many multiprocessors; at first as many as an A100.
void set_multiprocessor_count(int count);

/// After this call the last block of a grid runs first, or again the first one.
void run_backwards(bool backwards);

/// After this call only the last `blocks` blocks of a grid run (0: all). For tensors that are too
/// large to exist: index arithmetic overflows at their end.
void run_last_blocks_only(unsigned blocks);

/// The current thread.
uint3 thread_index();
uint3 block_index();
dim3 block_size();
dim3 grid_size();

void wait_for_block();
/// Every lane gives `bits` and gets the bits of lane `source`.
uint64_t exchange_in_warp(uint64_t bits, int source);

template <typename T>
T shuffle(T value, int source) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = exchange_in_warp(bits, source);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

inline int lane() { return static_cast<int>(thread_index().x % 32); }

}  // namespace cuda_on_cpu

// --- what nvcc has and the C++ compiler has not --------------------------------------------------

#undef __shared__
#define __shared__ static  // blocks run one after another
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (::cuda_on_cpu::thread_index())
#define blockIdx (::cuda_on_cpu::block_index())
#define blockDim (::cuda_on_cpu::block_size())
#define gridDim (::cuda_on_cpu::grid_size())

inline void __syncthreads() { cuda_on_cpu::wait_for_block(); }

template <typename T>
T __shfl_sync(unsigned /*whole warp*/, T value, int source, int width = 32) {
    return cuda_on_cpu::shuffle(value, cuda_on_cpu::lane() / width * width + source % width);
}
template <typename T>
T __shfl_xor_sync(unsigned /*whole warp*/, T value, int distance) {
    return cuda_on_cpu::shuffle(value, cuda_on_cpu::lane() ^ distance);
}

/// Threads run one after another.
template <typename T>
void atomicAdd(T* to, T value) {
    *to += value;
}

inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }

namespace kernels::cuda {

template <typename... Params, typename... Args>
void launch_kernel(const char* name, void (*kernel)(Params...), dim3 grid, dim3 block,
                   cudaStream_t /*stream*/, const Args&... args) {
    cuda_on_cpu::run(name, grid, block, [&] { kernel(args...); });
}

}  // namespace kernels::cuda
