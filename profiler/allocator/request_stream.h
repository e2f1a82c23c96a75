#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

/// The requests of a program to an allocator, in order: the input of a simulation.
namespace profiler {

enum class AllocatorRequestKind : uint8_t {
    kAlloc,
    kFree,
    kFreeRequested,
    kFreeCompleted,
    kEmptyCache
};

struct AllocatorRequest {
    AllocatorRequestKind kind = AllocatorRequestKind::kAlloc;
    uint32_t allocation = 0;  // number of the allocation, from 0
    int64_t size_bytes = 0;   // of an allocation, before rounding
    int64_t stream = 0;
    int64_t pool = 0;
};

/// What the allocator held before a recording began, as Simulator::load takes it.
struct AllocatorStart {
    std::vector<RecordedSegment> segments;  // by address
    std::vector<uint32_t> allocations;      // of the blocks in use, in the same order
};

struct RequestStream {
    std::vector<AllocatorRequest> requests;
    uint32_t num_allocations = 0;
    TieOrder tie_order = TieOrder::kAddress;  // of the torch that made them

    // Only of a stream_to_failure:
    AllocatorStart start;       // empty: nothing was held, or the trace does not say what
    bool ends_refused = false;  // the program did not get its last request
    std::optional<int64_t> recorded_limit_bytes;  // on reserved bytes, when it was refused

    uint32_t allocate(int64_t size_bytes, int64_t stream = 0, int64_t pool = 0) {
        requests.push_back(
            {AllocatorRequestKind::kAlloc, num_allocations, size_bytes, stream, pool});
        return num_allocations++;
    }
    void free(uint32_t allocation) {
        requests.push_back({AllocatorRequestKind::kFree, allocation});
    }
};

/// The allocations of a trace on one device, or on all for an invalid id. Allocations of 0 bytes
/// are left out, because torch does not ask CUDA for them. `rows`: becomes the row of each.
/// Errors: the trace frees an allocation before it is made, or completes a free before it is
/// requested.
models::Result<RequestStream> request_stream_of(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows = nullptr);

/// What a program asked for until memory ran out on the device (fatal_failure): the requests before
/// the refusal, the refused one as the last, and what the allocator held before the first. Without
/// a failure, all requests. The refused request has no row: `rows` gets an invalid id.
/// Errors as above.
models::Result<RequestStream> stream_to_failure(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows = nullptr);

}  // namespace profiler
