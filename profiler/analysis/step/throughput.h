#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

/// Step times, throughput, and the results of a sweep over batch sizes.
namespace profiler {

/// The middle value, or the mean of the middle two of an even number. 0 if there are no values.
int64_t median(std::vector<int64_t> values);

/// The step time of one recipe over the step time of another, from pairs of steps that ran in turn.
///
/// Each pair gives a ratio. The estimate is the median of the ratios, and its spread is the
/// interval of the sign test: of the sorted ratios r_1 ... r_n, from r_d to r_(n+1-d), with the
/// largest d for which the interval misses the true median in at most 5 % of cases,
///     2 · P(Binomial(n, 1/2) < d) <= 0.05.
/// It assumes nothing about how step times are distributed. Fewer than six pairs have no such d;
/// the spread is then from the least ratio to the largest, and it cannot show a difference.
struct PairedRatio {
    /// The fewest pairs n whose extremes, d = 1, are such an interval: 2 · (1/2)^n <= 0.05.
    static constexpr int64_t kFewestPairs = 6;

    double median = 1;
    double low = 1;
    double high = 1;
    int64_t pairs = 0;

    bool has_enough_pairs() const { return pairs >= kFewestPairs; }
    /// Whether there are enough pairs and all of the spread lies on one side of 1.
    bool shows_difference() const { return has_enough_pairs() && (high < 1 || low > 1); }
};

/// Step k of one recipe is paired with step k of the other; steps beyond the shorter list have no
/// partner. None: there is no pair.
std::optional<PairedRatio> paired_ratio(const std::vector<int64_t>& times_ns,
                                        const std::vector<int64_t>& baseline_times_ns);

/// Of the steps that ended. Empty for a trace that knows only the order of events.
std::vector<int64_t> step_times_ns(const Trace& trace);

/// 0 if the step took no time.
double sequences_per_s(int64_t sequences, int64_t step_time_ns);

struct ThroughputPoint {
    int64_t batch_size = 0;
    bool out_of_memory = false;
    int64_t peak_allocated_bytes = 0;
    int64_t step_time_ns = 0;      // median over the samples
    int64_t step_time_min_ns = 0;  // spread
    int64_t step_time_max_ns = 0;
    double sequences_per_s = 0;
};

/// The points of a trace's sweep, by batch size; empty if it has none.
std::vector<ThroughputPoint> sweep_curve(const Trace& trace);

/// What a sweep found of the largest batch that fits: it lies in [at_least, below).
struct BatchBounds {
    std::optional<int64_t> at_least;  // the largest batch that trained, if any did
    std::optional<int64_t> below;     // the smallest batch above it that failed, if any did

    /// The maximum, where the next batch after it failed. 0: not even one sequence fits.
    std::optional<int64_t> exact() const;
};

BatchBounds bounds_of(const std::vector<ThroughputPoint>& curve);

}  // namespace profiler
