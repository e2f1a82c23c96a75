#include "profiler/allocator/request_stream.h"

#include "profiler/allocator/start_state.h"

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

struct TimedRequest {
    int64_t event = 0;
    AllocatorRequestKind kind = AllocatorRequestKind::kAlloc;
    std::size_t row = 0;
};

enum class Life : uint8_t { kNotYet, kAllocated, kFreeRequested, kFreed };

/// Moves an allocation to its next state; false when the request is impossible in this state.
bool follows(Life& life, AllocatorRequestKind kind) {
    const Life before = kind == AllocatorRequestKind::kAlloc           ? Life::kNotYet
                        : kind == AllocatorRequestKind::kFreeCompleted ? Life::kFreeRequested
                                                                       : Life::kAllocated;
    if (life != before) return false;
    life = kind == AllocatorRequestKind::kAlloc           ? Life::kAllocated
           : kind == AllocatorRequestKind::kFreeRequested ? Life::kFreeRequested
                                                          : Life::kFreed;
    return true;
}

/// The requests of a trace in the total order of its events. A free that completes at once is one
/// request.
std::vector<TimedRequest> ordered_requests(const Trace& trace, Id<Device> wanted) {
    const auto device = trace.allocations.column<&Allocation::device>();
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc = trace.allocations.column<&Allocation::alloc_event>();
    const auto requested = trace.allocations.column<&Allocation::free_requested_event>();
    const auto completed = trace.allocations.column<&Allocation::free_completed_event>();
    std::vector<TimedRequest> requests;
    requests.reserve(2 * alloc.size());
    for (std::size_t row = 0; row < alloc.size(); ++row) {
        if (bytes[row] <= 0) continue;
        if (wanted.valid() && device[row].valid() && device[row] != wanted) continue;
        requests.push_back({alloc[row], AllocatorRequestKind::kAlloc, row});
        if (requested[row] < 0) continue;
        const bool is_delayed = completed[row] < 0 || completed[row] > requested[row] + 1;
        requests.push_back(
            {requested[row],
             is_delayed ? AllocatorRequestKind::kFreeRequested : AllocatorRequestKind::kFree, row});
        if (is_delayed && completed[row] >= 0) {
            requests.push_back({completed[row], AllocatorRequestKind::kFreeCompleted, row});
        }
    }
    std::ranges::stable_sort(requests, {}, &TimedRequest::event);
    return requests;
}

}  // namespace

models::Result<RequestStream> request_stream_of(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows) {
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    const auto pool = trace.allocations.column<&Allocation::pool>();
    const auto streams = trace.allocations.column<&Allocation::stream>();
    std::vector<uint32_t> number(bytes.size());
    std::vector<Life> life(bytes.size());
    RequestStream stream;
    for (const TimedRequest& request : ordered_requests(trace, device)) {
        if (!follows(life[request.row], request.kind)) {
            return models::fail(
                "Allocation {} {} at event {}, which is impossible then: the trace is damaged, "
                "capture it again.",
                request.row, request.kind == AllocatorRequestKind::kAlloc ? "is made" : "is freed",
                request.event);
        }
        if (request.kind == AllocatorRequestKind::kAlloc) {
            const Id<Stream> id = streams[request.row];
            const int64_t handle = id.valid() ? trace.streams.get<&Stream::handle>(id) : 0;
            number[request.row] = stream.allocate(bytes[request.row], handle, pool[request.row]);
            if (rows != nullptr) rows->push_back(Id<Allocation>(request.row));
        } else {
            stream.requests.push_back({request.kind, number[request.row]});
        }
    }
    return stream;
}

models::Result<RequestStream> request_stream_of(const AllocatorRecording& recording,
                                                const AllocatorSettings& settings) {
    const auto start = rebuild_start_state(recording, settings);
    if (!start) return tl::unexpected(start.error());
    RequestStream stream;
    std::unordered_map<int64_t, uint32_t> live;  // by address
    for (const RecordedSegment& segment : start->segments) {
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state == BlockState::kInactive) continue;
            live[block.address] =
                stream.allocate(block.requested_bytes, segment.stream, segment.pool);
            if (block.state == BlockState::kAllocated) continue;
            stream.requests.push_back({AllocatorRequestKind::kFreeRequested, live[block.address]});
        }
    }
    for (std::size_t i = 0; i < recording.events.size(); ++i) {
        const RecordedEvent& event = recording.events[i];
        if (event.action == RecordedAction::kAlloc) {
            live[event.address] =
                stream.allocate(event.size_bytes, event.stream, std::max<int64_t>(event.pool, 0));
        } else if (event.action == RecordedAction::kFreeRequested) {
            const bool is_completed =
                i + 1 < recording.events.size() &&
                recording.events[i + 1].action == RecordedAction::kFreeCompleted &&
                recording.events[i + 1].address == event.address;
            stream.requests.push_back(
                {is_completed ? AllocatorRequestKind::kFree : AllocatorRequestKind::kFreeRequested,
                 live.at(event.address)});
            if (is_completed) ++i;
        } else if (event.action == RecordedAction::kFreeCompleted) {
            stream.requests.push_back(
                {AllocatorRequestKind::kFreeCompleted, live.at(event.address)});
        }
    }
    return stream;
}

}  // namespace profiler
