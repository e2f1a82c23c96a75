#pragma once

#include <cupti.h>

#include <cstdint>
#include <string_view>

/// What a program asks of the GPU: the calls of its threads, and the work that they start.
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
    int64_t size_bytes = 0;    // of a copy or a set
    CUpti_ActivityMemcpyKind copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
    int device = 0;
    uint32_t stream_number = 0;
};

/// A call of the CUDA API, from its construction to its end. CUPTI hears of it at the end, after
/// the work that it started.
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

}  // namespace profiler::virtual_gpu
