#pragma once

namespace profiler::virtual_gpu {

/// Listens to the caching allocator of the torch in this process, once there is one: a block that
/// serves another tensor must not show what was copied to the former one. Call it while no lock of
/// the allocator is held. Without torch it does nothing.
void watch_torch_allocator();

}  // namespace profiler::virtual_gpu
