#include "profiler/analysis/step/throughput.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

ThroughputPoint make_point(const SweepPoint& point, int64_t micro_batches,
                           std::vector<int64_t> times_ns) {
    ThroughputPoint result;
    result.batch_size = point.batch_size;
    result.out_of_memory = point.outcome == SweepOutcome::kOutOfMemory;
    result.peak_allocated_bytes = point.peak_allocated_bytes;
    if (times_ns.empty()) return result;
    const auto [least, most] = std::ranges::minmax_element(times_ns);
    result.step_time_min_ns = *least;
    result.step_time_max_ns = *most;
    result.step_time_ns = median(std::move(times_ns));
    result.sequences_per_s = sequences_per_s(point.batch_size * micro_batches, result.step_time_ns);
    return result;
}

/// How often the sign test's interval may miss the true median.
constexpr double kMostMisses = 0.05;

// The interval from the least of n ratios to the largest misses it in 2 of 2^n cases.
static_assert(2.0 / (1 << PairedRatio::kFewestPairs) <= kMostMisses &&
              2.0 / (1 << (PairedRatio::kFewestPairs - 1)) > kMostMisses);

/// Index of the first ratio of the sign test's interval among `count` sorted ones: d - 1.
std::size_t sign_interval_start(std::size_t count) {
    double probability = std::pow(0.5, static_cast<double>(count));  // of 0 successes
    double below = probability;
    std::size_t start = 0;
    for (std::size_t d = 2; d <= count / 2; ++d) {  // below: P(Binomial < d)
        probability *= static_cast<double>(count - d + 2) / static_cast<double>(d - 1);
        below += probability;
        if (2 * below > kMostMisses) break;
        start = d - 1;
    }
    return start;
}

}  // namespace

int64_t median(std::vector<int64_t> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    if (values.size() % 2 == 1) return values[middle];
    return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

std::optional<PairedRatio> paired_ratio(const std::vector<int64_t>& times_ns,
                                        const std::vector<int64_t>& baseline_times_ns) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(times_ns.size(), baseline_times_ns.size()); ++i) {
        if (times_ns[i] <= 0 || baseline_times_ns[i] <= 0) continue;
        ratios.push_back(static_cast<double>(times_ns[i]) /
                         static_cast<double>(baseline_times_ns[i]));
    }
    if (ratios.empty()) return std::nullopt;
    std::ranges::sort(ratios);
    const std::size_t count = ratios.size();
    const std::size_t low = sign_interval_start(count);
    return PairedRatio{.median = (ratios[(count - 1) / 2] + ratios[count / 2]) / 2,
                       .low = ratios[low],
                       .high = ratios[count - 1 - low],
                       .pairs = static_cast<int64_t>(count)};
}

std::vector<int64_t> step_times_ns(const Trace& trace) {
    std::vector<int64_t> times_ns;
    if (trace.run().time_basis == TimeBasis::kEventOrder || has_note(trace, kInferredStep)) {
        return times_ns;
    }
    const auto start_ns = trace.steps.column<&Step::start_ns>();
    const auto end_ns = trace.steps.column<&Step::end_ns>();
    for (const Id<Step> step : whole_steps(trace)) {
        times_ns.push_back(end_ns[step.index()] - start_ns[step.index()]);
    }
    return times_ns;
}

double sequences_per_s(int64_t sequences, int64_t step_time_ns) {
    return step_time_ns > 0
               ? static_cast<double>(sequences) * kNsPerS / static_cast<double>(step_time_ns)
               : 0.0;
}

std::vector<ThroughputPoint> sweep_curve(const Trace& trace) {
    std::vector<std::vector<int64_t>> times_ns(trace.sweep_points.size());
    const auto owner = trace.sweep_samples.column<&SweepSample::point>();
    const auto time_ns = trace.sweep_samples.column<&SweepSample::step_time_ns>();
    for (std::size_t i = 0; i < owner.size(); ++i) {
        if (owner[i].valid()) times_ns[owner[i].index()].push_back(time_ns[i]);
    }
    const int64_t micro_batches = micro_batches_of(trace).value_or(1);
    std::vector<ThroughputPoint> curve;
    for (std::size_t i = 0; i < times_ns.size(); ++i) {
        curve.push_back(make_point(trace.sweep_points[Id<SweepPoint>(i)], micro_batches,
                                   std::move(times_ns[i])));
    }
    std::ranges::stable_sort(curve, {}, &ThroughputPoint::batch_size);
    return curve;
}

std::optional<int64_t> BatchBounds::exact() const {
    return below && *below == at_least.value_or(0) + 1 ? std::optional(*below - 1) : std::nullopt;
}

BatchBounds bounds_of(const std::vector<ThroughputPoint>& curve) {
    BatchBounds bounds;
    for (const ThroughputPoint& point : curve) {
        if (point.out_of_memory) continue;
        bounds.at_least = std::max(bounds.at_least.value_or(0), point.batch_size);
    }
    for (const ThroughputPoint& point : curve) {
        if (!point.out_of_memory || point.batch_size <= bounds.at_least.value_or(0)) continue;
        bounds.below = std::min(bounds.below.value_or(point.batch_size), point.batch_size);
    }
    return bounds;
}

}  // namespace profiler
