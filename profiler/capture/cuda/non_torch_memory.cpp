#include "profiler/capture/cuda/non_torch_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

/// The driver takes memory from the device in pieces of 2 MiB, CUDA's page on all its devices
/// (cuMemGetAllocationGranularity): the first of a module may be nearly empty.
constexpr int64_t kPageBytes = int64_t{2} << 20;

/// The most that modules with images of `image_bytes` can have taken.
int64_t most_module_bytes(int64_t image_bytes) {
    return (image_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

int64_t NonTorchMemory::outside_bytes(const DeviceReading& reading) const {
    if (by_process_) return reading.process_bytes - reading.reserved_bytes;
    const int64_t others = used_before_bytes_ >= 0 ? used_before_bytes_ : 0;
    return reading.used_bytes - others - reading.reserved_bytes;
}

void NonTorchMemory::add(const DeviceReading& reading) {
    if (!last_) by_process_ = reading.process_bytes >= 0;
    if (by_process_ && reading.process_bytes < 0) return;  // the driver did not tell this time
    const DeviceReading before = last_.value_or(DeviceReading{});
    const int64_t outside_before = last_ ? outside_bytes(before) : 0;
    // What is counted by itself is no growth that needs a cause.
    const int64_t library_growth = reading.library_bytes - before.library_bytes;
    const int64_t nccl_growth = reading.nccl_bytes - before.nccl_bytes;
    const int64_t growth = outside_bytes(reading) - outside_before - library_growth - nccl_growth;
    parts_.libraries_bytes += library_growth;
    parts_.nccl_bytes += nccl_growth;
    switch (reading.cause) {
        case ReadingCause::kContext:
            parts_.context_bytes += growth;
            break;
        case ReadingCause::kCupti:
            parts_.cupti_bytes += growth;
            break;
        case ReadingCause::kRun: {
            const int64_t most =
                most_module_bytes(reading.module_image_bytes - before.module_image_bytes);
            const int64_t module_growth = std::clamp<int64_t>(growth, 0, most);
            parts_.modules_bytes += module_growth;
            parts_.unexplained_bytes += growth - module_growth;
            break;
        }
    }
    last_ = reading;
}

void DriverAllocations::add(std::span<const MemoryRecord> records) {
    for (const MemoryRecord& record : records) {
        if (!record.is_device_memory || record.address == 0) continue;  // 0: memory without a place
        Last& last = last_[record.address];
        if (record.time_ns < last.time_ns) continue;
        last = {record.time_ns, record.is_release ? 0 : record.size_bytes,
                record.library.find("nccl") != std::string_view::npos};
    }
}

DriverAllocations::Outside DriverAllocations::outside(
    std::span<const RecordedSegment> segments) const {
    std::map<int64_t, int64_t> ends;  // of segments, by their address
    for (const RecordedSegment& segment : segments) {
        ends[segment.address] = segment.address + segment.size_bytes;
    }
    Outside result;
    for (const auto& [address, last] : last_) {
        const auto after = ends.upper_bound(address);
        if (after != ends.begin() && address < std::prev(after)->second) continue;
        (last.is_nccl ? result.nccl_bytes : result.library_bytes) += last.size_bytes;
    }
    return result;
}

void append_memory_counters(Trace& trace, Id<Device> device, const DeviceReading& reading,
                            const OutsideParts& parts) {
    const std::pair<std::string_view, int64_t> values[] = {
        {"device_free_bytes", reading.free_bytes},
        {"process_bytes", reading.process_bytes},
        {"reserved_bytes", reading.reserved_bytes},
        {"context_bytes", parts.context_bytes},
        {"cupti_bytes", parts.cupti_bytes},
        {"libraries_bytes", parts.libraries_bytes},
        {"nccl_bytes", parts.nccl_bytes},
        {"modules_bytes", parts.modules_bytes},
        {"module_image_bytes", reading.module_image_bytes},
        {"local_memory_bytes", reading.local_memory_bytes},
        {"unexplained_bytes", parts.unexplained_bytes}};
    for (const auto& [name, value] : values) {
        if (name == "process_bytes" && value < 0) continue;  // the driver does not tell
        trace.counters.append({.name = trace.strings.intern(name),
                               .device = device,
                               .time_ns = reading.time_ns,
                               .value = static_cast<double>(value)});
    }
}

}  // namespace profiler
