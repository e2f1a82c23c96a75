#pragma once

#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <map>
#include <vector>

/// The mapped parts of expandable segments as ranges of addresses. Neighbours with the same owner
/// join, and any part can be removed again.
namespace profiler {

class MappedRanges {
public:
    /// The owner is the stream, pool and is_small of `range`; its blocks are ignored.
    void add(RecordedSegment range);
    /// False, with nothing removed, when part of the range is not mapped.
    bool remove(const RecordedSegment& range);
    std::vector<RecordedSegment> ranges() const;  // by address

private:
    std::map<int64_t, RecordedSegment> ranges_;
};

}  // namespace profiler
