#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

/// Live memory over time for a picture: a fixed number of bins. Each bin holds all categories at
/// the instant of its highest total. (Maxima per category would not add up, and an average would
/// hide the peak.)
namespace profiler {

struct CurveBin {
    int64_t time_ns = 0;          // instant of the highest total inside the bin
    int64_t allocated_bytes = 0;  // that total
    int64_t reserved_bytes = 0;
    CategoryBytes by_category{};  // at that instant
};

/// Built once per trace in O(events). A pyramid of maxima answers queries for any window and width
/// in O(width log bins). It copies what it needs, so the trace need not outlive it.
///
///     level 2   [      max      ]      each bin is a copy of the higher of the two bins below,
///     level 1   [  max  |  max  ]      so a sampled bin is always a real instant
///     level 0   [ a | b | c | d ]      kFinestBins bins over the whole trace
///
/// Windows finer than a level-0 bin replay the exact events from the nearest checkpoint (one every
/// kCheckpointInterval events): O(width + events in the window). Memory: 16 bytes per event, and
/// 12 MB of bins.
class MemoryCurve {
public:
    static constexpr int kFinestBins = 1 << 16;

    explicit MemoryCurve(const Trace& trace);

    int64_t start_ns() const { return start_ns_; }
    int64_t end_ns() const { return end_ns_; }

    /// `count` bins of equal width over [start_ns, end_ns). Bins narrower than the finest level use
    /// the exact events. Bins outside the trace are empty.
    std::vector<CurveBin> sample(int64_t start_ns, int64_t end_ns, int count) const;

    /// Live memory at one instant, after the last change at or before `time_ns`.
    CurveBin at(int64_t time_ns) const;

    /// Allocations, frees and segment changes, those before `start_ns` too.
    std::size_t change_count() const { return changes_.size(); }
    /// Live memory after each change. Blocks change in the order of ordered_changes(trace), with
    /// the changes of segments between them.
    void for_each_change(
        const std::function<void(const CurveBin& after, bool is_segment)>& visit) const;

private:
    static constexpr std::size_t kCheckpointInterval = 4096;

    /// One allocation, free or segment change. The low bits of `packed` hold the category (or
    /// "reserved"), so that a million allocations take 32 MB.
    struct Change {
        int64_t time_ns;
        int64_t packed;
    };
    /// Live memory before the change with the number `index * kCheckpointInterval`.
    struct State {
        int64_t allocated_bytes = 0;
        int64_t reserved_bytes = 0;
        CategoryBytes by_category{};

        void apply(const Change& change);
    };

    void collect_changes(const Trace& trace);
    void find_range(const Trace& trace);
    void build_levels();
    CurveBin make_bin(const State& state, int64_t time_ns) const;
    std::size_t first_change_after(int64_t time_ns) const;
    State state_before(std::size_t change) const;
    std::vector<CurveBin> sample_exact(int64_t start_ns, int64_t end_ns, int count) const;
    CurveBin highest(std::size_t first, std::size_t last) const;
    int64_t finest_bin_start(std::size_t bin) const;

    int64_t start_ns_ = 0;
    int64_t end_ns_ = 0;
    bool has_segments_ = false;                  // else reserved = allocated
    std::vector<Change> changes_;                // in the allocator's order, times never decreasing
    std::vector<State> checkpoints_;             // one every kCheckpointInterval changes
    std::vector<std::vector<CurveBin>> levels_;  // [0] is the finest
};

}  // namespace profiler
