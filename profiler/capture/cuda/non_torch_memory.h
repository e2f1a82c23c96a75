#pragma once

#include "profiler/capture/torch_adapter/activity_records.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

/// Device memory of this process that the caching allocator does not hold, part by part.
///
///     used by the device ─┬─ by others, before this process began
///                         └─ by this process ─┬─ reserved: the caching allocator's segments
///                                             ├─ context    growth while the context was made
///                                             ├─ cupti      growth while CUPTI was set up
///                                             ├─ libraries  taken from the driver by others than
///                                             │  nccl       the allocator, as CUPTI saw it
///                                             ├─ modules    growth while code was loaded, no more
///                                             │             than the images of that code
///                                             └─ unexplained  what is left, never hidden
namespace profiler {

/// What has just happened when the device is read.
enum class ReadingCause : uint8_t { kContext, kCupti, kRun };

/// The device at one moment. Bytes; -1: not known.
struct DeviceReading {
    ReadingCause cause = ReadingCause::kRun;
    int64_t time_ns = 0;
    int64_t used_bytes = 0;      // of the whole device
    int64_t free_bytes = 0;      // as CUDA tells this process
    int64_t process_bytes = -1;  // of this process, where the driver tells
    int64_t reserved_bytes = 0;  // of the caching allocator
    int64_t library_bytes = 0;   // taken from the driver by libraries, without NCCL
    int64_t nccl_bytes = 0;
    int64_t module_image_bytes = 0;  // of the machine code that the driver loaded so far
    int64_t local_memory_bytes = 0;  // the most that a kernel had so far, of all its threads
};

struct OutsideParts {
    int64_t context_bytes = 0;
    int64_t cupti_bytes = 0;
    int64_t libraries_bytes = 0;
    int64_t nccl_bytes = 0;
    int64_t modules_bytes = 0;
    int64_t unexplained_bytes = 0;

    int64_t total_bytes() const {
        return context_bytes + cupti_bytes + libraries_bytes + nccl_bytes + modules_bytes +
               unexplained_bytes;
    }
};

/// Growth is the modules' only as far as the images that were loaded meanwhile can explain it: what
/// else grew in the same time stays unexplained. The bytes of the images, in whole pages, are taken
/// as the most that is the modules'. What the driver puts on the device later, when a function is
/// first called, and zeroed variables, of which an image has no bytes, count as unexplained.
/// Local memory counts as unexplained too; a counter of its own gives its size.
class NonTorchMemory {
public:
    /// `used_before_bytes` is what the device had in use before this process touched it; -1 where
    /// nobody could tell: then the context is what the first reading finds used, others' too.
    explicit NonTorchMemory(int64_t used_before_bytes) : used_before_bytes_(used_before_bytes) {}

    void add(const DeviceReading& reading);
    const OutsideParts& parts() const { return parts_; }

private:
    int64_t outside_bytes(const DeviceReading& reading) const;

    int64_t used_before_bytes_;
    bool by_process_ = false;  // as the first reading
    std::optional<DeviceReading> last_;
    OutsideParts parts_;
};

/// Live allocations of the process from the driver, from CUPTI's memory records.
class DriverAllocations {
public:
    struct Outside {
        int64_t library_bytes = 0;
        int64_t nccl_bytes = 0;
    };

    void add(std::span<const MemoryRecord> records);
    /// Device memory that lies in no segment of the caching allocator. An expandable segment maps
    /// its memory piece by piece.
    Outside outside(std::span<const RecordedSegment> segments) const;

private:
    /// What happened last at an address. CUPTI's buffers belong to threads, so that a release and
    /// a later allocation of its address may arrive in the other order.
    struct Last {
        uint64_t time_ns = 0;
        int64_t size_bytes = 0;  // 0: released
        bool is_nccl = false;
    };
    std::unordered_map<int64_t, Last> last_;  // device memory, by address
};

/// One value of each part, of the reserved bytes and of what the device has free, as counters.
void append_memory_counters(Trace& trace, Id<Device> device, const DeviceReading& reading,
                            const OutsideParts& parts);

}  // namespace profiler
