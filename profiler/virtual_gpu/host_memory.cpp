#include "profiler/virtual_gpu/host_memory.h"

#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/work.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

namespace profiler::virtual_gpu {
namespace {

struct HostRanges {
    struct Range {
        std::size_t size = 0;
        bool is_ours = false;  // false: the program registered it
        HostMemory kind = HostMemory::kPinned;
    };
    std::mutex mutex;
    std::map<uint64_t, Range> ranges;  // by address

    static HostRanges& instance() {
        static auto* const ranges = new HostRanges;
        return *ranges;
    }
};

cudaError_t allocate_host_memory(void** address, std::size_t size, HostMemory kind) {
    *address = nullptr;
    if (size == 0) return cudaSuccess;
    // Pages that nobody touches take no memory: kernels, which would, do not run.
    void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    HostRanges& all = HostRanges::instance();
    const std::lock_guard lock(all.mutex);
    all.ranges[number_of(pages)] = {.size = size, .is_ours = true, .kind = kind};
    *address = pages;
    return cudaSuccess;
}

bool is_managed_range(const void* address) {
    return host_memory_of(address) == HostMemory::kManaged;
}

}  // namespace

HostMemory host_memory_of(const void* address) {
    HostRanges& all = HostRanges::instance();
    const std::lock_guard lock(all.mutex);
    const auto after = all.ranges.upper_bound(number_of(address));
    if (after == all.ranges.begin()) return HostMemory::kPageable;
    const auto& [start, range] = *std::prev(after);
    return number_of(address) < start + range.size ? range.kind : HostMemory::kPageable;
}

cudaError_t free_host_memory(void* address) {
    if (address == nullptr) return cudaSuccess;
    HostRanges& all = HostRanges::instance();
    const std::lock_guard lock(all.mutex);
    const auto found = all.ranges.find(number_of(address));
    if (found == all.ranges.end() || !found->second.is_ours) return cudaErrorInvalidValue;
    munmap(address, found->second.size);
    all.ranges.erase(found);
    return cudaSuccess;
}

// ---- pinned memory ------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020);
    return report(allocate_host_memory(address, size, HostMemory::kPinned));
}

VIRTUAL_GPU_API cudaError_t cudaMallocHost(void** address, std::size_t size) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020);
    return report(allocate_host_memory(address, size, HostMemory::kPinned));
}

VIRTUAL_GPU_API cudaError_t cudaFreeHost(void* address) {
    return report(free_host_memory(address));
}

VIRTUAL_GPU_API cudaError_t cudaHostRegister(void* address, std::size_t size, unsigned) {
    HostRanges& all = HostRanges::instance();
    const std::lock_guard lock(all.mutex);
    all.ranges[number_of(address)] = {.size = size, .is_ours = false};
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaHostUnregister(void* address) {
    HostRanges& all = HostRanges::instance();
    const std::lock_guard lock(all.mutex);
    const auto found = all.ranges.find(number_of(address));
    if (found == all.ranges.end() || found->second.is_ours) {
        return report(cudaErrorHostMemoryNotRegistered);
    }
    all.ranges.erase(found);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    *device = host;
    return cudaSuccess;
}

// ---- managed memory -----------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaMallocManaged(void** address, std::size_t size, unsigned flags) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000);
    if (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
        return report(cudaErrorInvalidValue);
    }
    set_current_device(current_device());
    return report(allocate_host_memory(address, size, HostMemory::kManaged));
}

/// The pages stay where they are.
VIRTUAL_GPU_API cudaError_t cudaMemPrefetchAsync(const void* address, std::size_t, cudaMemLocation,
                                                 unsigned, cudaStream_t) {
    return is_managed_range(address) ? cudaSuccess : report(cudaErrorInvalidValue);
}

VIRTUAL_GPU_API cudaError_t cudaMemAdvise(const void* address, std::size_t, cudaMemoryAdvise,
                                          cudaMemLocation) {
    return is_managed_range(address) ? cudaSuccess : report(cudaErrorInvalidValue);
}

}  // namespace profiler::virtual_gpu
