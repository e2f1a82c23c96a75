#pragma once

#include "profiler/trace/trace.h"

#include <string>
#include <vector>

/// The second trace's clock on the axis of the first: a rising line of straight pieces.
///
///     own time   ^            /      slope 1 before the first and after the last point,
///                |        __/        straight between points (the starts and ends of phases)
///                |     _/
///                |  __/
///                +--------------->  shared time
namespace profiler {

class TimeMap {
public:
    struct Point {
        double shared_ns = 0;
        double own_ns = 0;
    };

    /// Own and shared time are the same.
    TimeMap() = default;
    /// Points must rise strictly in both coordinates.
    explicit TimeMap(std::vector<Point> points) : points_(std::move(points)) {}

    double to_own(double shared_ns) const;
    double to_shared(double own_ns) const;
    bool is_identity() const { return points_.empty(); }
    const std::vector<Point>& points() const { return points_; }

private:
    std::vector<Point> points_;
};

/// Both clocks agree at the start of their first step (at 0 for traces without steps).
TimeMap align_starts(const Trace& first, const Trace& second);

/// Phase by phase. When the phases do not correspond, `note` says why and the map is that of
/// `align_starts`.
TimeMap align_phases(const Trace& first, const Trace& second, std::string& note);

}  // namespace profiler
