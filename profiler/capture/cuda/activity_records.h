#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// What CUPTI's activity buffers say, as plain records: no type of CUPTI's, so that the join to
/// ops and the tests need none.
///
/// Times are nanoseconds on CUPTI's clock, 0 where CUPTI could not take one. `correlation` is the
/// number that CUPTI gives to a call of CUDA's API and to all work that the call started.
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

/// A call of the API was made while the id of an op stood on the thread's stack.
struct OpCorrelation {
    uint32_t correlation = 0;
    uint64_t external_id = 0;
};

/// Memory that the process took from the driver, or gave back: whole segments of the caching
/// allocator, and what libraries take for themselves.
struct MemoryRecord {
    bool is_release = false;
    bool is_device_memory = false;  // managed, pinned and pageable memory is not
    int64_t address = 0;
    int64_t size_bytes = 0;
    uint64_t time_ns = 0;
    std::string_view library;  // the file that made the call; empty where CUPTI does not say
};

/// Time that profiling, or the driver's lazy loading, took from the workload.
struct OverheadRecord {
    std::string_view name;  // "CUPTI buffer flush"
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
};

struct ActivityRecords {
    std::vector<KernelRecord> kernels;
    std::vector<CopyRecord> copies;
    std::vector<ApiRecord> apis;
    std::vector<OpCorrelation> op_correlations;
    std::vector<MemoryRecord> memory;
    std::vector<OverheadRecord> overheads;
    int64_t unknown_records = 0;  // of kinds that nobody asked for
    int64_t broken_buffers = 0;   // whose rest could not be read
    int64_t dropped_records = 0;  // CUPTI had no buffer for them

    std::size_t size() const {
        return kernels.size() + copies.size() + apis.size() + op_correlations.size() +
               memory.size() + overheads.size();
    }
};

}  // namespace profiler
