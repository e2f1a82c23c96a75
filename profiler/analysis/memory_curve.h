#pragma once

#include "profiler/analysis/peak.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// Live memory over time as a picture needs it: a fixed number of bins, each holding all groups
/// at the instant of its highest total. (A maximum per group would not add up, an average would
/// hide the peak.)
namespace profiler {

struct CurveBin {
    int64_t time_ns = 0;          // instant of the highest total inside the bin
    int64_t allocated_bytes = 0;  // that total
    int64_t reserved_bytes = 0;
    RoleBytes by_role{};  // at that instant
};

/// Built once per trace in O(events log events); asked for any window and width in
/// O(width log bins) through a pyramid of maxima.
class MemoryCurve {
public:
    static constexpr int kFinestBins = 1 << 16;

    explicit MemoryCurve(const Trace& trace);

    int64_t start_ns() const { return start_ns_; }
    int64_t end_ns() const { return end_ns_; }

    /// `count` bins of equal width over [start_ns, end_ns). Below the finest bin's width the
    /// exact events are used.
    std::vector<CurveBin> sample(int64_t start_ns, int64_t end_ns, int count) const;

    /// Live memory at one instant.
    CurveBin at(int64_t time_ns) const;

private:
    int64_t start_ns_ = 0;
    int64_t end_ns_ = 0;
    std::vector<std::vector<CurveBin>> levels_;  // [0] is the finest
};

}  // namespace profiler
