#pragma once

#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <map>
#include <vector>

/// The mapped parts of expandable segments as ranges of addresses: neighbours of one owner join,
/// any part can be taken out again.
namespace profiler {

class MappedRanges {
public:
    /// `range` carries the owner (stream, pool, is_small); its blocks are not looked at.
    void add(RecordedSegment range);
    /// False when not all of the range is mapped; nothing is removed then.
    bool remove(const RecordedSegment& range);
    std::vector<RecordedSegment> ranges() const;  // by address

private:
    std::map<int64_t, RecordedSegment> ranges_;
};

}  // namespace profiler
