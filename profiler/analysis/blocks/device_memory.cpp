#include "profiler/analysis/blocks/device_memory.h"

#include <algorithm>
#include <utility>

namespace profiler {

std::vector<DeviceMemory> memory_by_device(const Trace& trace) {
    using Change = std::pair<int64_t, int64_t>;  // at an event, by bytes
    std::vector<DeviceMemory> devices(trace.devices.size());
    std::vector<std::vector<Change>> changes(devices.size());
    for (const Allocation block : trace.allocations.rows()) {
        if (!block.device.valid()) continue;
        const std::size_t of = block.device.index();
        ++devices[of].num_allocations;
        changes[of].emplace_back(block.alloc_event, block.requested_bytes);
        if (block.free_requested_event >= 0) {
            changes[of].emplace_back(block.free_requested_event, -block.requested_bytes);
        }
    }
    for (const Failure failure : trace.failures.rows()) {
        if (failure.device.valid() && failure.requested_bytes > 0) {
            devices[failure.device.index()].refused_bytes = failure.requested_bytes;
        }
    }
    std::vector<DeviceMemory> used;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        DeviceMemory& device = devices[i];
        device.device = Id<Device>(i);
        std::ranges::sort(changes[i]);
        for (const auto& [event, bytes] : changes[i]) {
            device.end_bytes += bytes;
            device.peak_bytes = std::max(device.peak_bytes, device.end_bytes);
        }
        if (device.num_allocations > 0 || device.refused_bytes > 0) used.push_back(device);
    }
    return used;
}

}  // namespace profiler
