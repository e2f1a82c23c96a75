#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Maps the clock of the second trace onto the time axis of the first: a rising, piecewise linear
/// function.
///
///     own time   ^            /      slope 1 before the first and after the last point,
///                |        __/        straight between points (phases and the modules in them)
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
    /// `points` must increase strictly in both coordinates.
    explicit TimeMap(std::vector<Point> points) : points_(std::move(points)) {}

    double to_own(double shared_ns) const;
    double to_shared(double own_ns) const;
    bool is_identity() const { return points_.empty(); }
    const std::vector<Point>& points() const { return points_; }

private:
    std::vector<Point> points_;
};

enum class TimeAlignment : uint8_t {
    kTime,    // both from their first step's start (from 0 without steps)
    kPhases,  // phase by phase and in each module by module
    kBlocks   // by the blocks that both allocate (match_blocks)
};

struct Alignment {
    TimeMap second;  // the second trace's clock on the axis of the first
    TimeAlignment used = TimeAlignment::kTime;
    std::string note;  // why the phases could not be aligned; empty if they were
};

/// Where phases do not match, blocks are used, and where few blocks match, own clocks. Reads all
/// ops of both traces, so it is called once for a pair of traces.
Alignment align(const Trace& first, const Trace& second, TimeAlignment wanted);

/// From the axis to the clock of the first trace (`index` 0) or of the second. A view of two traces
/// must come with an alignment.
const TimeMap& map_of(const std::shared_ptr<const Alignment>& alignment, std::size_t index);

/// Whole nanoseconds on a clock. 2^62 of them are 146 years: a time beyond that is a mistake of the
/// caller, and becomes the last one.
int64_t to_clock(double time_ns);

/// Whether there is something to draw in a window of time.
bool is_drawable(double start_ns, double end_ns, int width_px);

}  // namespace profiler
