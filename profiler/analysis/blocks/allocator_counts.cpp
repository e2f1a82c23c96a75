#include "profiler/analysis/blocks/allocator_counts.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/trace/mapped_segments.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <set>
#include <vector>

namespace profiler {
namespace {

int64_t count_segments(std::vector<AllocatorEvent> events) {
    std::ranges::stable_sort(events, {}, &AllocatorEvent::event);
    std::set<int64_t> segments;  // by address
    MappedSegments mapped;
    for (const AllocatorEvent& event : events) {
        switch (event.action) {
            case AllocatorAction::kSegmentAlloc:
                segments.insert(event.address);
                break;
            case AllocatorAction::kSegmentFree:
                segments.erase(event.address);
                break;
            case AllocatorAction::kSegmentMap:
                mapped.add(event.address, event.size_bytes, {});
                break;
            case AllocatorAction::kSegmentUnmap:
                mapped.remove(event.address, event.size_bytes);
                break;
            case AllocatorAction::kOom:
            case AllocatorAction::kSnapshot:
                break;
        }
    }
    return static_cast<int64_t>(segments.size() + mapped.num_contiguous());
}

}  // namespace

AllocatorCounts count_allocator_rows(const Trace& trace) {
    AllocatorCounts counts;
    const int64_t first_event = num_start_events(trace);  // the recorded ones come after them
    const Id<Device> profiled = profiled_device(trace);
    const auto device = trace.allocations.column<&Allocation::device>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_requested = trace.allocations.column<&Allocation::free_requested_event>();
    const auto free_completed = trace.allocations.column<&Allocation::free_completed_event>();
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!is_on(profiled, device[i])) continue;
        ++counts.allocations;
        const bool is_completed = free_completed[i] >= 0;
        const bool is_one_event = is_completed && free_completed[i] == free_requested[i];
        counts.events += (alloc_event[i] >= first_event) + (free_requested[i] >= first_event) +
                         (is_completed && !is_one_event);
        counts.live_blocks += !is_completed;
    }
    std::vector<AllocatorEvent> events;
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        if (!is_on(profiled, event.device)) continue;
        if (event.address >= 0) events.push_back(event);  // -1: only their sum is known
        counts.events += event.event >= first_event;
    }
    counts.segments = count_segments(std::move(events));
    return counts;
}

}  // namespace profiler
