#include "profiler/view/time_map.h"

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

using Point = TimeMap::Point;

/// Maps a value along the pieces, from coordinate `from` to coordinate `to`.
double follow(const std::vector<Point>& points, double value, double Point::*from,
              double Point::*to) {
    if (points.empty()) return value;
    if (value <= points.front().*from) return points.front().*to + (value - points.front().*from);
    if (value >= points.back().*from) return points.back().*to + (value - points.back().*from);
    const auto after = std::upper_bound(points.begin(), points.end(), value,
                                        [from](double v, const Point& p) { return v < p.*from; });
    const Point& a = *(after - 1);
    const Point& b = *after;
    return a.*to + (value - a.*from) / (b.*from - a.*from) * (b.*to - a.*to);
}

/// Phases of recorded steps in the order of time.
std::vector<Id<Phase>> phases_in_order(const Trace& trace) {
    std::vector<Id<Phase>> phases;
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        if (trace.phases.get<&Phase::step>(Id<Phase>(i)).valid()) phases.emplace_back(i);
    }
    const auto start_ns = trace.phases.column<&Phase::start_ns>();
    std::ranges::stable_sort(phases, [&](Id<Phase> a, Id<Phase> b) {
        return start_ns[a.index()] < start_ns[b.index()];
    });
    return phases;
}

/// As a snapshot of PyTorch does, without a word from the program.
bool marks_only_updates(const Trace& trace, const std::vector<Id<Phase>>& phases) {
    return trace.ops.empty() && std::ranges::all_of(phases, [&](Id<Phase> phase) {
               return trace.phases.get<&Phase::kind>(phase) == PhaseKind::kOptimizer;
           });
}

/// Why the phases of two traces do not correspond; empty if they do.
std::optional<std::string> find_mismatch(const Trace& first, const std::vector<Id<Phase>>& a,
                                         const Trace& second, const std::vector<Id<Phase>>& b) {
    if (a.empty() || b.empty()) return "one of the traces has no phases";
    if (marks_only_updates(first, a) || marks_only_updates(second, b)) {
        return "one of the traces marks no phase but the optimizer's";
    }
    const std::size_t common = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < common; ++i) {
        const PhaseKind kind_a = first.phases.get<&Phase::kind>(a[i]);
        const PhaseKind kind_b = second.phases.get<&Phase::kind>(b[i]);
        if (kind_a == kind_b) continue;
        return fmt::format("phase {} is {} in one trace and {} in the other", i + 1,
                           name_of(kind_a), name_of(kind_b));
    }
    return std::nullopt;
}

/// An instant that can be found in both traces: the first run of a module in a phase. The optimizer
/// phase has no modules; its landmarks are the first, second, ... call of each op name.
struct Landmark {
    std::string name;
    int64_t start_ns = 0;
};
using Landmarks = std::vector<std::vector<Landmark>>;  // for each phase, in the order of ops

Landmarks find_landmarks(const Trace& trace) {
    Landmarks landmarks(trace.phases.size());
    std::vector<Id<Phase>> seen_in(
        trace.module_paths.size());              // the last phase in which each module ran
    std::unordered_map<std::string, int> calls;  // number of calls so far, by phase and name
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Id<Op> op(i);
        const Id<Phase> phase = trace.ops.get<&Op::phase>(op);
        if (!phase.valid()) continue;
        std::string name;
        if (const Id<ModulePath> module_path = trace.ops.get<&Op::module_path>(op);
            module_path.valid()) {
            if (std::exchange(seen_in[module_path.index()], phase) == phase) continue;
            name = path_of_module(trace, module_path);
        } else {
            const bool is_update = !trace.ops.get<&Op::parent>(op).valid() &&
                                   trace.phases.get<&Phase::kind>(phase) == PhaseKind::kOptimizer;
            if (!is_update) continue;
            name = name_of_call(trace, op);
            name += fmt::format(" {}", calls[fmt::format("{} {}", phase.value, name)]++);
        }
        landmarks[phase.index()].push_back({std::move(name), trace.ops.get<&Op::start_ns>(op)});
    }
    return landmarks;
}

/// Skips points that do not rise strictly: a phase without duration cannot be stretched.
void add_point(std::vector<Point>& points, int64_t shared_ns, int64_t own_ns) {
    const Point point{static_cast<double>(shared_ns), static_cast<double>(own_ns)};
    if (!points.empty() &&
        (point.shared_ns <= points.back().shared_ns || point.own_ns <= points.back().own_ns)) {
        return;
    }
    points.push_back(point);
}

/// Adds the landmarks that both traces have in the same order. `add_point` never goes back in time,
/// and no point lies after the end of the phase. This skips a module that one recipe runs
/// elsewhere, such as a layer that checkpointing computes again.
void add_landmarks(std::vector<Point>& points, const std::vector<Landmark>& a,
                   const std::vector<Landmark>& b, int64_t end_b_ns) {
    std::unordered_map<std::string_view, int64_t> times_b;
    for (const Landmark& landmark : b) times_b.emplace(landmark.name, landmark.start_ns);
    for (const Landmark& landmark : a) {
        const auto found = times_b.find(landmark.name);
        if (found == times_b.end() || found->second >= end_b_ns) continue;
        add_point(points, landmark.start_ns, found->second);
    }
}

/// Few blocks in common say nothing about time.
constexpr double kLeastShareOfBlocks = 0.1;
constexpr std::size_t kLeastBlocks = 8;
constexpr std::size_t kMostPoints = 2'000;

/// Nullopt when the traces have too few blocks in common.
std::optional<Alignment> align_blocks(const Trace& first, const Trace& second,
                                      std::string_view mismatch) {
    const auto pairs = match_blocks(first, second);
    const auto fewer =
        static_cast<double>(std::min(first.allocations.size(), second.allocations.size()));
    if (pairs.size() < kLeastBlocks ||
        static_cast<double>(pairs.size()) < kLeastShareOfBlocks * fewer) {
        return std::nullopt;
    }
    std::vector<Point> points;
    const std::size_t stride = pairs.size() / kMostPoints + 1;
    for (std::size_t i = 0; i < pairs.size(); i += stride) {
        add_point(points, first.allocations.get<&Allocation::alloc_ns>(pairs[i].first),
                  second.allocations.get<&Allocation::alloc_ns>(pairs[i].second));
    }
    return Alignment{.second = TimeMap(std::move(points)),
                     .used = TimeAlignment::kBlocks,
                     .note = fmt::format("Aligned by {} blocks that both allocate in the same "
                                         "order: {}.",
                                         format_count(std::ssize(pairs)), mismatch)};
}

TimeMap align_starts(const Trace& first, const Trace& second) {
    const auto start = [](const Trace& trace) {
        return trace.steps.empty()
                   ? 0.0
                   : static_cast<double>(trace.steps.get<&Step::start_ns>(Id<Step>(0)));
    };
    return TimeMap({{start(first), start(second)}});
}

}  // namespace

double TimeMap::to_own(double shared_ns) const {
    return follow(points_, shared_ns, &Point::shared_ns, &Point::own_ns);
}

double TimeMap::to_shared(double own_ns) const {
    return follow(points_, own_ns, &Point::own_ns, &Point::shared_ns);
}

Alignment align(const Trace& first, const Trace& second, TimeAlignment wanted) {
    if (wanted == TimeAlignment::kTime) return {.second = align_starts(first, second)};
    const std::vector<Id<Phase>> a = phases_in_order(first);
    const std::vector<Id<Phase>> b = phases_in_order(second);
    if (const auto mismatch = find_mismatch(first, a, second, b)) {
        if (auto by_blocks = align_blocks(first, second, *mismatch)) return *by_blocks;
        return {.second = align_starts(first, second),
                .note = fmt::format("Shown on their own clocks: {}.", *mismatch)};
    }
    const Landmarks landmarks_a = find_landmarks(first);
    const Landmarks landmarks_b = find_landmarks(second);
    std::vector<Point> points;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const Phase phase_a = first.phases[a[i]];
        const Phase phase_b = second.phases[b[i]];
        add_point(points, phase_a.start_ns, phase_b.start_ns);
        add_landmarks(points, landmarks_a[a[i].index()], landmarks_b[b[i].index()], phase_b.end_ns);
        add_point(points, phase_a.end_ns, phase_b.end_ns);
    }
    return {.second = TimeMap(std::move(points)), .used = TimeAlignment::kPhases};
}

const TimeMap& map_of(const std::shared_ptr<const Alignment>& alignment, std::size_t index) {
    static const TimeMap same;
    if (index == 0) return same;
    if (!alignment) throw std::logic_error("two traces on one axis need an alignment");
    return alignment->second;
}

namespace {

constexpr double kMostNs = 0x1p62;

}  // namespace

int64_t to_clock(double time_ns) { return std::llround(std::clamp(time_ns, -kMostNs, kMostNs)); }

bool is_drawable(double start_ns, double end_ns, int width_px) {
    return end_ns > start_ns && width_px > 0 && std::abs(start_ns) <= kMostNs &&
           std::abs(end_ns) <= kMostNs;
}

}  // namespace profiler
