#include "profiler/virtual_gpu/api.h"

#include "profiler/virtual_gpu/device_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <dlfcn.h>
#include <atomic>

/// Only inline and virtual functions of torch are used: this library does not link torch, since
/// programs without torch may load it.
namespace profiler::virtual_gpu {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;

void forget_reused(const TraceEntry& entry) {
    if (entry.action_ != TraceEntry::ALLOC) return;
    Memories& memories = Memories::instance();
    const auto address = static_cast<uint64_t>(entry.addr_);
    const int device = memories.device_of(reinterpret_cast<const void*>(address));
    if (device < 0) return;
    const auto lock = memories[device].lock();
    memories[device].contents().forget(address, entry.size_);
}

}  // namespace

void watch_torch_allocator() {
    static std::atomic<bool> is_watched = false;
    if (is_watched) return;
    void* const library = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    // c10::cuda::CUDACachingAllocator::allocator
    auto* const allocator = static_cast<std::atomic<CUDAAllocator*>*>(
        dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE"));
    if (allocator == nullptr || allocator->load() == nullptr) return;
    if (!allocator->load()->initialized() || is_watched.exchange(true)) return;
    allocator->load()->attachAllocatorTraceTracker(&forget_reused);
}

}  // namespace profiler::virtual_gpu
