#include "profiler/analysis/blocks/address_map.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>

namespace profiler {
namespace {

struct AddressSpan {
    int64_t first = 0;
    int64_t end = 0;
};

/// Addresses of damaged files may be anything; a span that would overflow is cut.
AddressSpan address_span(int64_t address, int64_t size_bytes) {
    const int64_t room = INT64_MAX - std::max<int64_t>(address, 0);
    return {address, address + std::clamp<int64_t>(size_bytes, 0, room)};
}

/// The segments of the profiled device, or its blocks if the trace has no segments.
std::vector<AddressSpan> used_spans(const Trace& trace, const BlockHistory& history) {
    std::vector<AddressSpan> spans;
    const Id<Device> profiled = profiled_device(trace);
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        const AllocatorEvent event = trace.allocator_events[Id<AllocatorEvent>(i)];
        if (segment_bytes_of(event) <= 0 || !is_on(profiled, event.device)) continue;
        spans.push_back(address_span(event.address, event.size_bytes));
    }
    const auto address = trace.allocations.column<&Allocation::address>();
    const auto size = trace.allocations.column<&Allocation::block_bytes>();
    const auto segment = trace.allocations.column<&Allocation::segment>();
    for (std::size_t i = 0; i < history.size(); ++i) {
        const std::size_t row = history.allocation(i).index();
        if (segment[row].valid()) continue;  // lies in one of the segments above
        spans.push_back(address_span(address[row], size[row]));
    }
    std::sort(spans.begin(), spans.end(),
              [](const AddressSpan& a, const AddressSpan& b) { return a.first < b.first; });
    return spans;
}

}  // namespace

AddressMap::AddressMap(const Trace& trace, const BlockHistory& history) {
    int64_t end = 0;
    for (const AddressSpan& span : used_spans(trace, history)) {
        if (ranges_.empty() || span.first > end) {
            ranges_.push_back({span.first, 0, total_bytes_});
            end = span.first;
        }
        if (span.end <= end) continue;
        const int64_t more_bytes =
            std::min(span.end - end, INT64_MAX / 2 - std::min(total_bytes_, INT64_MAX / 2));
        ranges_.back().size_bytes += more_bytes;
        total_bytes_ += more_bytes;
        end = span.end;
    }
}

int64_t AddressMap::offset_of(int64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](int64_t wanted, const Range& range) { return wanted < range.address; });
    if (after == ranges_.begin()) return 0;
    const Range& range = *(after - 1);
    const uint64_t inside = static_cast<uint64_t>(address) - static_cast<uint64_t>(range.address);
    return range.offset_bytes +
           static_cast<int64_t>(std::min(inside, static_cast<uint64_t>(range.size_bytes)));
}

}  // namespace profiler
