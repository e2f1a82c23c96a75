#include "profiler/virtual_gpu/device_memory.h"

#include <dlfcn.h>
#include <cstddef>
#include <cstdint>

// torch's caching allocator tells a profiler of each block by this function, whose form is the same
// in torch 2.6 to 2.15. This library is loaded before torch, so the allocator finds this one, which
// passes the call on. It is no interface of torch: virtual_gpu.torch tests that it is still called
// ("stale bytes").
namespace c10 {

struct Device {
    int8_t type, index;
};

__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(void* address,
                                                                        int64_t size_bytes,
                                                                        std::size_t allocated_bytes,
                                                                        std::size_t reserved_bytes,
                                                                        Device device);

void reportMemoryUsageToProfiler(void* address, int64_t size_bytes, std::size_t allocated_bytes,
                                 std::size_t reserved_bytes, Device device) {
    using profiler::virtual_gpu::Memories;
    Memories& memories = Memories::instance();
    // A block that serves another tensor must not show what was copied to the former one.
    if (const int owner = memories.device_of(address); size_bytes > 0 && owner >= 0) {
        const auto lock = memories[owner].lock();
        memories[owner].contents().forget(reinterpret_cast<uint64_t>(address),
                                          static_cast<std::size_t>(size_bytes));
    }
    static const auto of_torch = [] {
        void* const library = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
        void* const function =
            library == nullptr
                ? nullptr
                : dlsym(library, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
        return reinterpret_cast<decltype(&reportMemoryUsageToProfiler)>(function);
    }();
    if (of_torch != nullptr) of_torch(address, size_bytes, allocated_bytes, reserved_bytes, device);
}

}  // namespace c10
