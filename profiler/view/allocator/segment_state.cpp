#include "profiler/view/allocator/segment_state.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>

namespace profiler {
namespace {

/// The profiler of PyTorch gives the segments' sum, but no addresses (-1): no segment to show.
bool is_sound(const AllocatorEvent& event) {
    return event.size_bytes >= 0 && event.address >= 0 &&
           event.address <= INT64_MAX - event.size_bytes;
}

/// The number of the change `rank` in the allocator's order.
int64_t event_of(const StepIndex& source, uint32_t rank) {
    const auto change = source.blocks().change(rank);
    const Id<Allocation> id = source.blocks().allocation(change.block);
    return change.is_free ? source.trace().allocations.get<&Allocation::free_requested_event>(id)
                          : source.trace().allocations.get<&Allocation::alloc_event>(id);
}

std::vector<AllocatorEvent> recorded_events(const Trace& trace) {
    const Id<Device> profiled = profiled_device(trace);
    std::vector<AllocatorEvent> events;
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        const AllocatorEvent event = trace.allocator_events[Id<AllocatorEvent>(i)];
        if (segment_bytes_of(event) == 0 || !is_on(profiled, event.device)) continue;
        if (is_sound(event)) events.push_back(event);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.event < b.event; });
    return events;
}

}  // namespace

SegmentReader::SegmentReader(const StepIndex& source, const SegmentLayout* layout)
    : source_(source),
      layout_(layout),
      events_(layout != nullptr ? layout->events : recorded_events(source.trace())) {}

AllocatorNow SegmentReader::at_rank(uint32_t rank) const {
    AllocatorNow now{.rank = rank};
    const BlockHistory& history = source_.blocks();
    if (rank > 0) {
        now.last = event_of(source_, rank - 1);
        now.own_ns = history.time_ns(rank - 1);
    }
    if (rank < history.change_count()) now.next = event_of(source_, rank);
    return now;
}

AllocatorNow SegmentReader::at_time(int64_t own_ns) const {
    AllocatorNow now = at_rank(source_.blocks().highest_rank_at(own_ns));
    now.own_ns = own_ns;
    if (layout_ == nullptr || !layout_->failed.valid()) return now;
    const uint32_t failed = source_.blocks().block_of(layout_->failed);
    if (failed == BlockHistory::kNone || now.rank <= source_.blocks().alloc_rank(failed)) {
        return now;
    }
    now = before_block(failed);
    now.is_earlier = true;
    return now;
}

AllocatorNow SegmentReader::before_block(uint32_t block) const {
    return at_rank(source_.blocks().alloc_rank(block));
}

std::size_t SegmentReader::events_until(const AllocatorNow& now) const {
    const auto happened = [&](const AllocatorEvent& event) {
        const bool before = event.event <= now.last || event.time_ns <= now.own_ns;
        return event.event < now.next && before;
    };
    return static_cast<std::size_t>(std::partition_point(events_.begin(), events_.end(), happened) -
                                    events_.begin());
}

MappedSegments SegmentReader::segments_after(std::size_t count) const {
    MappedSegments segments;
    for (std::size_t i = 0; i < std::min(count, events_.size()); ++i) {
        const AllocatorEvent& event = events_[i];
        if (segment_bytes_of(event) > 0) {
            segments.add(event.address, event.size_bytes, Id<AllocatorEvent>(i));
        } else {
            segments.remove(event.address, event.size_bytes);
        }
    }
    return segments;
}

BlockPlace SegmentReader::place_of(Id<Allocation> id) const {
    if (layout_ == nullptr) {
        return {source_.trace().allocations.get<&Allocation::address>(id),
                source_.trace().allocations.get<&Allocation::block_bytes>(id)};
    }
    return id.index() < layout_->blocks.size() ? layout_->blocks[id.index()] : BlockPlace{};
}

std::vector<PlacedBlock> SegmentReader::blocks_at(const AllocatorNow& now) const {
    const Trace& trace = source_.trace();
    std::vector<PlacedBlock> placed;
    const std::size_t count = source_.blocks().allocated_before(now.rank);
    for (std::size_t block = 0; block < count; ++block) {
        const Id<Allocation> id = source_.blocks().allocation(block);
        const bool live = source_.blocks().is_live(block, now.rank);
        const int64_t completed = trace.allocations.get<&Allocation::free_completed_event>(id);
        if (!live && completed >= 0 && completed <= now.last) continue;
        if (!live && completed < 0) continue;  // not known: a free that is not followed up
        const BlockPlace place = place_of(id);
        if (place.size_bytes <= 0 || place.address > INT64_MAX - place.size_bytes) continue;
        if (is_replayed() && place.address < 0) continue;
        placed.push_back({place.address, place.size_bytes, !live, id});
    }
    std::sort(placed.begin(), placed.end(), [](const PlacedBlock& a, const PlacedBlock& b) {
        return a.address != b.address ? a.address < b.address : a.allocation < b.allocation;
    });
    return placed;
}

uint32_t SegmentReader::first_block_from(int64_t event) const {
    const BlockHistory& history = source_.blocks();
    const auto alloc_event = [&](std::size_t block) {
        return source_.trace().allocations.get<&Allocation::alloc_event>(history.allocation(block));
    };
    std::size_t low = 0, high = history.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (alloc_event(middle) < event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < history.size() ? static_cast<uint32_t>(low) : BlockHistory::kNone;
}

}  // namespace profiler
