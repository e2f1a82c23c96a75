#pragma once

#include "profiler/virtual_gpu/api.h"

#include <cupti.h>

#include <cstdint>
#include <string_view>

/// What a program asks of the GPU: the calls of its threads, and the work that they start. And what
/// CUPTI hears of it: cupti.cpp makes activity records, in CUPTI's own structs, as far as a client
/// asked for them.
namespace profiler::virtual_gpu {

struct Size3 {
    uint32_t x = 1, y = 1, z = 1;
};

enum class WorkKind : uint8_t { kKernel, kCopy, kSet };

struct Work {
    WorkKind kind = WorkKind::kKernel;
    const char* name = nullptr;  // of a kernel; lives as long as the process
    Size3 grid, block;
    int64_t shared_bytes = 0;  // dynamic
    // Of a kernel that was read from a cubin; else 0.
    int64_t static_shared_bytes = 0;
    int registers = 0;        // of a thread
    int64_t local_bytes = 0;  // of a thread
    int64_t size_bytes = 0;   // of a copy or a set
    CUpti_ActivityMemcpyKind copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
    int device = 0;
    uint32_t stream_number = 0;
};

/// A call of the CUDA API, from its construction to its end. CUPTI hears of the call at its end,
/// after the call's work.
class ApiCall {
public:
    explicit ApiCall(CUpti_runtime_api_trace_cbid function)
        : ApiCall(CUPTI_ACTIVITY_KIND_RUNTIME, function) {}
    explicit ApiCall(CUpti_driver_api_trace_cbid function)
        : ApiCall(CUPTI_ACTIVITY_KIND_DRIVER, function) {}
    ~ApiCall();
    ApiCall(const ApiCall&) = delete;
    ApiCall& operator=(const ApiCall&) = delete;

    uint32_t correlation() const { return correlation_; }

    /// The innermost call of this thread; null outside of any.
    static const ApiCall* current();

private:
    ApiCall(CUpti_ActivityKind domain, uint32_t function);

    CUpti_ActivityKind domain_;
    uint32_t function_;
    uint32_t correlation_;
    uint64_t start_ns_;
    const ApiCall* outer_;
};

/// A name that lives as long as the process.
const char* intern(std::string_view name);

void cupti_work_done(const Work& work);
/// `recording` is what an event stands for: the work of a stream up to here. What a stream is given
/// from here on waits for that.
void cupti_event_recorded(uint32_t stream_number, uint64_t recording);
void cupti_stream_waits(uint32_t stream_number, uint64_t recording);
void cupti_memory(bool is_release, const void* address, uint64_t size_bytes);
void cupti_stream_made(cudaStream_t stream);
void cupti_stream_ends(cudaStream_t stream);

}  // namespace profiler::virtual_gpu
