#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// What a program asks of an allocator, in order: the input of a simulation.
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
    uint32_t allocation = 0;  // counts allocations from 0, in their order
    int64_t size_bytes = 0;   // of an allocation, as asked for
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

/// The allocations of a trace on one device (none = all), as a CUDA device would have been asked:
/// allocations of no bytes are left out. `rows`, when given, gets the row of each allocation.
/// Errors: an allocation that is freed before it is made, or whose free completes before it was
/// asked for.
models::Result<RequestStream> request_stream_of(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows = nullptr);

/// A recording from an empty allocator: first what lived before its first event, by address, then
/// its events. Errors as rebuild_start_state.
models::Result<RequestStream> request_stream_of(const AllocatorRecording& recording,
                                                const AllocatorSettings& settings);

}  // namespace profiler
