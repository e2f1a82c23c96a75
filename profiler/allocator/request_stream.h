#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
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

struct RequestStream {
    std::vector<AllocatorRequest> requests;
    uint32_t num_allocations = 0;

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
/// are left out, because torch does not ask CUDA for them. `rows` gets the row of each allocation.
/// Errors: the trace frees an allocation before it is made, or completes a free before it is
/// requested.
models::Result<RequestStream> request_stream_of(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows = nullptr);

/// A recording, for an empty allocator: first the blocks that were live before its first event, by
/// address, then its events. Errors as rebuild_start_state.
models::Result<RequestStream> request_stream_of(const AllocatorRecording& recording,
                                                const AllocatorSettings& settings);

}  // namespace profiler
