#include "profiler/allocator/request_stream.h"

#include "profiler/allocator/recorded_segments.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

int64_t handle_of(const Trace& trace, Id<Stream> stream) {
    return stream.valid() ? trace.streams.get<&Stream::handle>(stream) : 0;
}

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

/// The requests of events with numbers below `end_event`. `rows` gets the row of each allocation.
models::Result<RequestStream> stream_until(const Trace& trace, Id<Device> device, int64_t end_event,
                                           std::vector<Id<Allocation>>& rows) {
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    const auto pool = trace.allocations.column<&Allocation::pool>();
    const auto streams = trace.allocations.column<&Allocation::stream>();
    std::vector<uint32_t> number(bytes.size());
    std::vector<Life> life(bytes.size());
    RequestStream stream{.tie_order = tie_order_of(trace)};
    for (const TimedRequest& request : ordered_requests(trace, device)) {
        if (request.event >= end_event) break;
        if (!follows(life[request.row], request.kind)) {
            return models::fail(
                "Allocation {} {} at event {}, which is impossible then: the trace is damaged, "
                "capture it again.",
                request.row, request.kind == AllocatorRequestKind::kAlloc ? "is made" : "is freed",
                request.event);
        }
        if (request.kind == AllocatorRequestKind::kAlloc) {
            number[request.row] = stream.allocate(
                bytes[request.row], handle_of(trace, streams[request.row]), pool[request.row]);
            rows.emplace_back(request.row);
        } else {
            stream.requests.push_back({request.kind, number[request.row]});
        }
    }
    return stream;
}

/// The requests of the blocks that lived before the recording stay the first of the stream: an
/// allocator that starts empty gets them too. So all these blocks start in use.
void add_start(const Trace& trace, Id<Device> device, const std::vector<Id<Allocation>>& rows,
               RequestStream& stream) {
    const int64_t first_event = num_start_events(trace, device);
    if (first_event == 0) return;
    std::unordered_map<int32_t, uint32_t> numbers;  // row -> allocation
    for (uint32_t number = 0; number < rows.size(); ++number) {
        const Id<Allocation> row = rows[number];
        if (trace.allocations.get<&Allocation::alloc_event>(row) < first_event) {
            numbers[row.value] = number;
        }
    }
    auto [segments, blocks] = segments_at(trace, device, first_event);
    if (blocks.size() != numbers.size()) return;  // some lie in no segment that was recorded
    AllocatorStart start{.segments = std::move(segments)};
    for (const Id<Allocation> row : blocks) {
        const auto found = numbers.find(row.value);
        if (found == numbers.end()) return;
        start.allocations.push_back(found->second);
    }
    for (RecordedSegment& segment : start.segments) {
        for (RecordedBlock& block : segment.blocks) {
            if (block.state == BlockState::kPendingFree) block.state = BlockState::kAllocated;
        }
    }
    stream.start = std::move(start);
}

/// The allocator's own event of the failure knows the stream and the pool.
void add_refused_request(const Trace& trace, const Failure& failure, RequestStream& stream) {
    if (failure.limit_bytes >= 0) stream.recorded_limit_bytes = failure.limit_bytes;
    int64_t handle = 0, pool = 0;
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        const bool is_it = event.action == AllocatorAction::kOom && event.event == failure.event &&
                           event.device == failure.device;
        if (!is_it) continue;
        handle = handle_of(trace, event.stream);
        pool = event.pool;
    }
    stream.allocate(failure.requested_bytes, handle, pool);
    stream.ends_refused = true;
}

}  // namespace

models::Result<RequestStream> request_stream_of(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows) {
    std::vector<Id<Allocation>> made;
    auto stream = stream_until(trace, device, kNoEnd, made);
    if (rows != nullptr) *rows = std::move(made);
    return stream;
}

models::Result<RequestStream> stream_to_failure(const Trace& trace, Id<Device> device,
                                                std::vector<Id<Allocation>>* rows) {
    const Id<Failure> id = fatal_failure(trace, device);
    const Failure failure = id.valid() ? trace.failures[id] : Failure{};
    std::vector<Id<Allocation>> made;
    auto stream = stream_until(trace, device, failure.event >= 0 ? failure.event : kNoEnd, made);
    if (!stream) return stream;
    add_start(trace, device, made, *stream);
    if (failure.requested_bytes > 0) {
        add_refused_request(trace, failure, *stream);
        made.emplace_back();
    }
    if (rows != nullptr) *rows = std::move(made);
    return stream;
}

}  // namespace profiler
