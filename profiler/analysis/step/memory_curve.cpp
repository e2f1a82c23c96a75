#include "profiler/analysis/step/memory_curve.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>

namespace profiler {
namespace {

constexpr int kCategoryBits = 4;
constexpr int64_t kReserved = (1 << kCategoryBits) - 1;  // a segment's bytes, not a category's
static_assert(kCategoryNames.size() < static_cast<std::size_t>(kReserved));

int64_t pack(int64_t signed_bytes, int64_t group) {
    return static_cast<int64_t>(static_cast<uint64_t>(signed_bytes) << kCategoryBits) | group;
}

/// start + width * index / count, in whole numbers and without overflow.
int64_t split_point(int64_t start, int64_t end, std::size_t index, std::size_t count) {
    const auto width = static_cast<uint64_t>(end) - static_cast<uint64_t>(start);
    const uint64_t offset = width / count * index + width % count * index / count;
    return static_cast<int64_t>(static_cast<uint64_t>(start) + offset);
}

/// Whether phases stand before the first recorded step.
bool has_warm_up(const Trace& trace) {
    if (trace.steps.empty() || trace.phases.empty()) return false;
    const Phase first = trace.phases[Id<Phase>(std::size_t{0})];
    return !first.step.valid() &&
           first.last_event <= trace.steps.get<&Step::first_event>(Id<Step>(std::size_t{0}));
}

}  // namespace

void MemoryCurve::State::apply(const Change& change) {
    const int64_t group = change.packed & kReserved;
    const int64_t signed_bytes = change.packed >> kCategoryBits;
    if (group == kReserved) {
        reserved_bytes += signed_bytes;
    } else {
        allocated_bytes += signed_bytes;
        by_category[static_cast<std::size_t>(group)] += signed_bytes;
    }
}

MemoryCurve::MemoryCurve(const Trace& trace) {
    collect_changes(trace);
    find_range(trace);
    build_levels();
}

/// Merges allocations and segment events by their event numbers. Times must follow that order: a
/// time that runs backwards (because of two threads or rounding) is raised to the one before it.
void MemoryCurve::collect_changes(const Trace& trace) {
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();

    const std::vector<MemoryChange> ordered = ordered_changes(trace);
    const std::vector<AllocatorEvent> segments = ordered_segment_events(trace);
    has_segments_ = !segments.empty();
    changes_.reserve(ordered.size() + segments.size());

    const auto add = [this](int64_t time_ns, int64_t packed) {
        if (!changes_.empty()) time_ns = std::max(time_ns, changes_.back().time_ns);
        changes_.push_back({time_ns, packed});
    };
    auto segment = segments.begin();
    const auto add_segments_until = [&](int64_t event) {
        for (; segment != segments.end() && segment->event < event; ++segment) {
            add(segment->time_ns, pack(segment_bytes_of(*segment), kReserved));
        }
    };
    for (const MemoryChange change : ordered) {
        const std::size_t i = change.allocation_index();
        add_segments_until(change.is_free() ? free_event[i] : alloc_event[i]);
        const Category group = category_of_block(trace, Id<Allocation>(i));
        add(change.is_free() ? free_ns[i] : alloc_ns[i],
            pack(change.is_free() ? -size[i] : size[i], static_cast<int64_t>(group)));
    }
    add_segments_until(INT64_MAX);
}

void MemoryCurve::find_range(const Trace& trace) {
    if (!changes_.empty()) {
        start_ns_ = changes_.front().time_ns;
        end_ns_ = changes_.back().time_ns + 1;
    } else if (!trace.steps.empty()) {
        start_ns_ = end_ns_ = trace.steps.get<&Step::start_ns>(Id<Step>(0));
    }
    // The picture begins at the first step, even if the trace holds a warm-up before it.
    if (has_warm_up(trace)) start_ns_ = trace.steps.get<&Step::start_ns>(Id<Step>(0));
    for (const int64_t ns : trace.steps.column<&Step::start_ns>())
        start_ns_ = std::min(start_ns_, ns);
    for (const int64_t ns : trace.steps.column<&Step::end_ns>()) end_ns_ = std::max(end_ns_, ns);
}

CurveBin MemoryCurve::make_bin(const State& state, int64_t time_ns) const {
    return {time_ns, state.allocated_bytes,
            has_segments_ ? state.reserved_bytes : state.allocated_bytes, state.by_category};
}

int64_t MemoryCurve::finest_bin_start(std::size_t bin) const {
    return split_point(start_ns_, end_ns_, bin, static_cast<std::size_t>(kFinestBins));
}

void MemoryCurve::build_levels() {
    if (end_ns_ <= start_ns_) return;
    std::vector<CurveBin> finest(static_cast<std::size_t>(kFinestBins));
    State state;
    std::size_t next = 0;
    const auto apply_next = [&] {
        if (next % kCheckpointInterval == 0) checkpoints_.push_back(state);
        state.apply(changes_[next++]);
    };
    while (next < changes_.size() && changes_[next].time_ns < start_ns_) apply_next();
    for (std::size_t bin = 0; bin < finest.size(); ++bin) {
        CurveBin highest = make_bin(state, finest_bin_start(bin));
        const int64_t bin_end_ns = finest_bin_start(bin + 1);
        while (next < changes_.size() && changes_[next].time_ns < bin_end_ns) {
            apply_next();
            if (state.allocated_bytes > highest.allocated_bytes) {
                highest = make_bin(state, changes_[next - 1].time_ns);
            }
        }
        finest[bin] = highest;
    }
    levels_.push_back(std::move(finest));
    while (levels_.back().size() > 1) {
        const std::vector<CurveBin>& below = levels_.back();
        std::vector<CurveBin> level(below.size() / 2);
        for (std::size_t i = 0; i < level.size(); ++i) {
            const CurveBin& left = below[2 * i];
            const CurveBin& right = below[2 * i + 1];
            level[i] = right.allocated_bytes > left.allocated_bytes ? right : left;
        }
        levels_.push_back(std::move(level));
    }
}

/// The highest of the finest bins [first, last). Climbs the pyramid from both ends: O(log bins).
CurveBin MemoryCurve::highest(std::size_t first, std::size_t last) const {
    CurveBin best = levels_[0][first];
    const auto offer = [&best](const CurveBin& bin) {
        const bool earlier =
            bin.allocated_bytes == best.allocated_bytes && bin.time_ns < best.time_ns;
        if (bin.allocated_bytes > best.allocated_bytes || earlier) best = bin;
    };
    for (std::size_t level = 0; first < last; ++level, first /= 2, last /= 2) {
        if (first % 2 == 1) offer(levels_[level][first++]);
        if (last % 2 == 1) offer(levels_[level][--last]);
    }
    return best;
}

std::size_t MemoryCurve::first_change_after(int64_t time_ns) const {
    const auto change = std::ranges::upper_bound(changes_, time_ns, {}, &Change::time_ns);
    return static_cast<std::size_t>(change - changes_.begin());
}

MemoryCurve::State MemoryCurve::state_before(std::size_t change) const {
    if (checkpoints_.empty()) return {};
    const std::size_t checkpoint = std::min(change / kCheckpointInterval, checkpoints_.size() - 1);
    State state = checkpoints_[checkpoint];
    for (std::size_t i = checkpoint * kCheckpointInterval; i < change; ++i)
        state.apply(changes_[i]);
    return state;
}

CurveBin MemoryCurve::at(int64_t time_ns) const {
    if (time_ns < start_ns_ || time_ns > end_ns_) return {.time_ns = time_ns};
    return make_bin(state_before(first_change_after(time_ns)), time_ns);
}

void MemoryCurve::for_each_change(
    const std::function<void(const CurveBin& after, bool is_segment)>& visit) const {
    State state;
    for (const Change& change : changes_) {
        state.apply(change);
        visit(make_bin(state, change.time_ns), (change.packed & kReserved) == kReserved);
    }
}

std::vector<CurveBin> MemoryCurve::sample_exact(int64_t start_ns, int64_t end_ns, int count) const {
    const auto bins = static_cast<std::size_t>(count);
    std::vector<CurveBin> samples(bins);
    std::size_t next = first_change_after(start_ns);
    State state = state_before(next);
    for (std::size_t i = 0; i < bins; ++i) {
        const int64_t bin_start_ns = split_point(start_ns, end_ns, i, bins);
        const int64_t bin_end_ns = split_point(start_ns, end_ns, i + 1, bins);
        CurveBin highest = make_bin(state, bin_start_ns);
        for (; next < changes_.size() && changes_[next].time_ns < bin_end_ns; ++next) {
            state.apply(changes_[next]);
            if (state.allocated_bytes > highest.allocated_bytes) {
                highest = make_bin(state, changes_[next].time_ns);
            }
        }
        const bool outside = bin_start_ns < start_ns_ || bin_start_ns > end_ns_;
        samples[i] = outside && highest.time_ns == bin_start_ns ? CurveBin{.time_ns = bin_start_ns}
                                                                : highest;
    }
    return samples;
}

std::vector<CurveBin> MemoryCurve::sample(int64_t start_ns, int64_t end_ns, int count) const {
    if (count <= 0 || end_ns <= start_ns) return {};
    if (levels_.empty()) return sample_exact(start_ns, end_ns, count);
    const auto bins = static_cast<std::size_t>(count);
    const double finest_ns = static_cast<double>(end_ns_ - start_ns_) / kFinestBins;
    const double width_ns = (static_cast<double>(end_ns) - static_cast<double>(start_ns)) / count;
    if (width_ns < finest_ns) return sample_exact(start_ns, end_ns, count);

    // A finest bin belongs to the sample that holds its start, so that no peak appears twice.
    const auto finest_at = [&](int64_t time_ns) {
        const double bin = static_cast<double>(time_ns - start_ns_) / finest_ns;
        return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(kFinestBins)));
    };
    std::vector<CurveBin> samples(bins);
    for (std::size_t i = 0; i < bins; ++i) {
        const int64_t bin_start_ns = split_point(start_ns, end_ns, i, bins);
        const int64_t bin_end_ns = split_point(start_ns, end_ns, i + 1, bins);
        samples[i].time_ns = bin_start_ns;
        if (bin_end_ns <= start_ns_ || bin_start_ns >= end_ns_) continue;
        const std::size_t first = std::min(finest_at(bin_start_ns), std::size_t{kFinestBins - 1});
        const std::size_t last = std::max(finest_at(bin_end_ns), first + 1);
        samples[i] = highest(first, last);
    }
    return samples;
}

}  // namespace profiler
