#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// The contents of CUPTI's activity buffers as plain records, without CUPTI's types: neither the
/// join to ops nor the tests need CUPTI.
///
/// Times are nanoseconds on CUPTI's clock; 0 if CUPTI has no time. CUPTI gives the same
/// `correlation` to a call of CUDA's API and to all work that the call started.
namespace profiler {

struct GridSize {
    int64_t x = 0, y = 0, z = 0;
};

/// One run of a kernel.
struct KernelRecord {
    std::string_view name;  // mangled; lives as long as the process
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t device = 0;
    uint32_t context = 0;
    uint32_t stream = 0;  // CUPTI's number, not CUDA's handle
    uint32_t correlation = 0;
    GridSize grid, block;
    int64_t registers_per_thread = 0;
    int64_t shared_memory_bytes = 0;  // static and dynamic
    int64_t local_memory_bytes = 0;   // that the driver reserves on the device for all threads
};

enum class CopyKind : uint8_t {
    kUnknown,
    kHostToDevice,
    kDeviceToHost,
    kDeviceToDevice,
    kHostToHost,
    kPeerToPeer,
    kMemset
};

struct CopyRecord {
    CopyKind kind = CopyKind::kUnknown;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t device = 0;
    uint32_t context = 0;
    uint32_t stream = 0;
    uint32_t correlation = 0;
    int64_t size_bytes = 0;
};

enum class ApiDomain : uint8_t { kRuntime, kDriver };

struct ApiRecord {
    ApiDomain domain = ApiDomain::kRuntime;
    uint32_t function = 0;  // CUPTI's callback id, a number per domain
    uint32_t thread = 0;    // as gettid
    uint32_t correlation = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
};

/// A stream reached an event: the work that it had been given before. `recording` is unique, an
/// event may be recorded again.
struct EventRecord {
    uint32_t stream = 0;
    uint32_t correlation = 0;
    uint64_t recording = 0;
};
/// What the stream is given from here on waits for the recording.
struct StreamWaitRecord {
    uint32_t stream = 0;
    uint32_t correlation = 0;
    uint64_t recording = 0;
};

/// Ties a call of the API to the op whose id was on top of the thread's stack.
struct OpCorrelation {
    uint32_t correlation = 0;
    uint64_t external_id = 0;
};

/// Memory that the process took from the driver or gave back: segments of the caching allocator,
/// and memory of libraries.
struct MemoryRecord {
    bool is_release = false;
    bool is_device_memory = false;  // false: managed, pinned or pageable memory
    int64_t address = 0;
    int64_t size_bytes = 0;
    uint64_t time_ns = 0;
    std::string_view library;  // the file that made the call; empty where CUPTI does not say
};

/// Time that the workload lost to profiling or to the driver's lazy loading.
struct OverheadRecord {
    std::string_view name;  // "CUPTI buffer flush"
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
};

struct ActivityRecords {
    std::vector<KernelRecord> kernels;
    std::vector<CopyRecord> copies;
    std::vector<ApiRecord> apis;
    std::vector<EventRecord> events;
    std::vector<StreamWaitRecord> stream_waits;
    std::vector<OpCorrelation> op_correlations;
    std::vector<MemoryRecord> memory;
    std::vector<OverheadRecord> overheads;
    int64_t unknown_records = 0;  // of kinds that were not enabled
    int64_t broken_buffers = 0;   // whose rest could not be read
    int64_t dropped_records = 0;  // CUPTI had no buffer for them

    std::size_t size() const {
        return kernels.size() + copies.size() + apis.size() + events.size() + stream_waits.size() +
               op_correlations.size() + memory.size() + overheads.size();
    }
};

}  // namespace profiler
