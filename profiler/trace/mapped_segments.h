#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <map>

namespace profiler {

/// The memory that a caching allocator holds, as ranges of addresses. Each range knows the event
/// that brought it. An expandable segment grows and shrinks by pages, so a range may lose its
/// middle.
class MappedSegments {
public:
    void add(int64_t address, int64_t size_bytes, Id<AllocatorEvent> event);
    /// Returns how many of the bytes were held.
    int64_t remove(int64_t address, int64_t size_bytes);
    /// The event of the range that holds `address`, or none.
    Id<AllocatorEvent> event_at(int64_t address) const;
    int64_t total_bytes() const { return total_bytes_; }
    /// Adjacent ranges count as one.
    std::size_t num_contiguous() const;
    /// Calls visit(address, size_bytes, event) for each range, by address.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for (const auto& [start, range] : ranges_) visit(start, range.end - start, range.event);
    }

private:
    struct Range {
        int64_t end = 0;
        Id<AllocatorEvent> event;
    };
    std::map<int64_t, Range> ranges_;  // by start; they do not overlap
    int64_t total_bytes_ = 0;
};

}  // namespace profiler
