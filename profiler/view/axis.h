#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The one axis formatter: where ticks stand and what they say, for panels and charts alike.
///
/// All labels of an axis have the same unit and the same number of decimals, so that they can be
/// read as a column: "10.30 s, 10.35 s, 10.40 s" and never "10.3, 10.35". The origin is "0".
/// Independent of the locale.
namespace profiler {

enum class AxisUnit : uint8_t {
    kBytes,  // values in bytes; steps are powers of two: 256 MiB, 512 MiB, ...
    kTime,   // values in nanoseconds; steps 1, 2, 5 times a power of ten
    kCount,  // whole numbers; steps 1, 2, 5, ...
    kRate    // any real number; steps 1, 2, 5, ...
};

struct Tick {
    double value = 0;
    std::string label;  // "512 MiB", "2.50 s"
};

/// Ticks inside [min, max], at most `max_count` (at least 2) of them. Empty when the range is
/// empty or not finite.
std::vector<Tick> make_ticks(AxisUnit unit, double min, double max, int max_count);

/// The end of an axis from 0 that shows `max_value` with `headroom` (0.08 = 8 %) above it: the
/// next tick when that is near, so that the axis ends on a label. 1 for a `max_value` of 0.
double axis_end(AxisUnit unit, double max_value, double headroom, int max_count);

/// Width of a text in whatever unit `max_width` has.
using MeasureText = std::function<double(std::string_view)>;

/// `text`, or as much of it as fits: the middle gives way ("encoder.lay…r.output"), because module
/// paths and recipe texts differ at their ends. Empty when not even "…" fits. Never cuts inside a
/// UTF-8 character.
std::string fit_label(std::string_view text, double max_width, const MeasureText& measure);

/// A module path, or as much of its end as fits, from a '.' on: "…0.attention.self.query". The
/// number of the layer and the module's own name are what tells rows apart. As fit_label where not
/// even the last name fits.
std::string fit_path(std::string_view path, double max_width, const MeasureText& measure);

/// Breaks `text` into at most `max_lines` lines of `max_width`, preferably after a space, comma,
/// hyphen or '='; what is left over is fitted into the last line.
std::vector<std::string> wrap_label(std::string_view text, double max_width, int max_lines,
                                    const MeasureText& measure);

}  // namespace profiler
