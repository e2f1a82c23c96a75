#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

/// What all files here share: how a function becomes CUDA's, and how one that is missing says so.
namespace profiler::virtual_gpu {

/// A function under its name in CUDA's libraries.
#define VIRTUAL_GPU_API extern "C" __attribute__((visibility("default")))

// Three ways to refuse `function`, for which this library has no stand-in. Each tells one sentence.

/// Throws the sentence as std::runtime_error: for functions of CUDA's libraries that only torch's
/// C++ code calls. torch passes the exception on to the program.
[[noreturn]] void refuse(const char* function);
/// For functions of the runtime and the driver, which C code calls, too: no exception can pass
/// there. cudaGetErrorString and cuGetErrorString tell the sentence.
cudaError_t refuse_by_error(const char* function);
CUresult refuse_by_driver_error(const char* function);
/// The sentence of this thread's last refusal by an error; null if there was none.
const char* last_refusal();
/// From now on the sentences have the op that `name_of_op` tells.
void name_refusals(const char* (*name_of_op)());

/// The value beside `key` in a table; null if it has no such row.
template <typename Key, typename Value, std::size_t Rows>
const Value* find_value(const std::pair<Key, Value> (&table)[Rows], Key key) {
    for (const auto& [known, value] : table) {
        if (known == key) return &value;
    }
    return nullptr;
}

/// Keeps an error for cudaGetLastError, and returns it.
cudaError_t report(cudaError_t error);
/// The same error as the driver names it.
CUresult to_driver_error(cudaError_t error);

/// The device of this thread. set_current_device makes its context.
int current_device();
cudaError_t set_current_device(int device);
bool has_context(int device);

}  // namespace profiler::virtual_gpu
