#include "profiler/view/time_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace profiler {
namespace {

using Point = TimeMap::Point;

/// Follows the pieces from the coordinate `from` to the coordinate `to`.
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
std::vector<Phase> phases_in_order(const Trace& trace) {
    std::vector<Phase> phases;
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        if (phase.step.valid()) phases.push_back(phase);
    }
    std::stable_sort(phases.begin(), phases.end(),
                     [](const Phase& a, const Phase& b) { return a.start_ns < b.start_ns; });
    return phases;
}

/// Why the common phases of two traces do not correspond; none when they do.
std::optional<std::string> find_mismatch(const std::vector<Phase>& a, const std::vector<Phase>& b) {
    if (a.empty() || b.empty()) return "one of the traces has no phases";
    const std::size_t common = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < common; ++i) {
        if (a[i].kind == b[i].kind) continue;
        return fmt::format("phase {} is {} in one trace and {} in the other", i + 1,
                           name_of(a[i].kind), name_of(b[i].kind));
    }
    return std::nullopt;
}

/// Keeps the map strictly rising: a phase without duration cannot be stretched.
void add_point(std::vector<Point>& points, int64_t shared_ns, int64_t own_ns) {
    const Point point{static_cast<double>(shared_ns), static_cast<double>(own_ns)};
    if (!points.empty() &&
        (point.shared_ns <= points.back().shared_ns || point.own_ns <= points.back().own_ns)) {
        return;
    }
    points.push_back(point);
}

}  // namespace

double TimeMap::to_own(double shared_ns) const {
    return follow(points_, shared_ns, &Point::shared_ns, &Point::own_ns);
}

double TimeMap::to_shared(double own_ns) const {
    return follow(points_, own_ns, &Point::own_ns, &Point::shared_ns);
}

TimeMap align_starts(const Trace& first, const Trace& second) {
    const auto start = [](const Trace& trace) {
        return trace.steps.empty()
                   ? 0.0
                   : static_cast<double>(trace.steps.get<&Step::start_ns>(Id<Step>(0)));
    };
    return TimeMap({{start(first), start(second)}});
}

TimeMap align_phases(const Trace& first, const Trace& second, std::string& note) {
    const std::vector<Phase> a = phases_in_order(first);
    const std::vector<Phase> b = phases_in_order(second);
    if (const auto mismatch = find_mismatch(a, b)) {
        note = fmt::format("Shown on their own clocks: {}.", *mismatch);
        return align_starts(first, second);
    }
    std::vector<Point> points;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        add_point(points, a[i].start_ns, b[i].start_ns);
        add_point(points, a[i].end_ns, b[i].end_ns);
    }
    return TimeMap(std::move(points));
}

}  // namespace profiler
