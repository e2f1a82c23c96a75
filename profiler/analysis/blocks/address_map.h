#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

namespace profiler {

/// The addresses that a trace ever uses, without the holes between them, so that they fit a
/// picture:
///
///     address   |segment|  hole  |segment|      a hole is what no segment and no block covers
///     offset    |segment|segment|
///
/// O(n log n) for n blocks and segments.
class AddressMap {
public:
    struct Range {
        int64_t address = 0;
        int64_t size_bytes = 0;
        int64_t offset_bytes = 0;  // of its first byte in the picture
    };

    AddressMap(const Trace& trace, const BlockHistory& history);

    const std::vector<Range>& ranges() const { return ranges_; }  // by address
    int64_t total_bytes() const { return total_bytes_; }
    /// An address that no range holds gets the offset of the next one.
    int64_t offset_of(int64_t address) const;

private:
    std::vector<Range> ranges_;
    int64_t total_bytes_ = 0;
};

}  // namespace profiler
