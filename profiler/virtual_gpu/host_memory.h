#pragma once

#include "profiler/virtual_gpu/api.h"

#include <cstdint>

/// Memory of the host that CUDA knows: pinned memory, and managed memory.
///
/// On a GPU managed memory is where it was last used: a page moves to the device that touches it,
/// and back when something else needs the room. Here its pages are the host's, and it takes nothing
/// of a device: it never causes an out-of-memory error, as on a GPU.
namespace profiler::virtual_gpu {

enum class HostMemory : uint8_t { kPageable, kPinned, kManaged };

HostMemory host_memory_of(const void* address);

/// cudaFreeHost, and cudaFree of managed memory.
cudaError_t free_host_memory(void* address);

}  // namespace profiler::virtual_gpu
