#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <map>

namespace profiler {

/// The memory that the caching allocator holds, as ranges of addresses, each with the event that
/// brought it. An expandable segment grows and shrinks by pages: a range may lose its middle.
class MappedSegments {
public:
    void add(int64_t address, int64_t size_bytes, Id<AllocatorEvent> event);
    /// Returns how many of the bytes were held.
    int64_t remove(int64_t address, int64_t size_bytes);
    /// The event of the range in which `address` lies.
    Id<AllocatorEvent> event_at(int64_t address) const;
    int64_t total_bytes() const { return total_bytes_; }

private:
    struct Range {
        int64_t end = 0;
        Id<AllocatorEvent> event;
    };
    std::map<int64_t, Range> ranges_;  // by start; they do not overlap
    int64_t total_bytes_ = 0;
};

}  // namespace profiler
