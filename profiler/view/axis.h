#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The axis formatter of all panels and charts: positions and labels of ticks.
///
/// All labels of an axis have the same unit and number of decimals: "10.30 s, 10.35 s, 10.40 s",
/// not "10.3, 10.35". The origin is "0". Labels do not depend on the locale.
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

/// At most `max_count` (at least 2) ticks inside [min, max]. Empty when the range is empty or not
/// finite.
std::vector<Tick> make_ticks(AxisUnit unit, double min, double max, int max_count);

/// The end of an axis from 0 that shows `max_value` with `headroom` (0.08 = 8 %) above it: the
/// next tick when that is near, so that the axis ends on a label. 1 for a `max_value` of 0.
double axis_end(AxisUnit unit, double max_value, double headroom, int max_count);

/// Width of a text in whatever unit `max_width` has.
using MeasureText = std::function<double(std::string_view)>;

/// `text`, shortened in the middle to fit ("encoder.lay…r.output"), because module paths and recipe
/// texts differ at their ends. Empty when not even "…" fits. Never cuts inside a UTF-8 character.
std::string fit_label(std::string_view text, double max_width, const MeasureText& measure);

/// A module path, shortened at its start to fit: "…0.attention.self.query". The layer's number and
/// the module's own name tell rows apart. Shortens like fit_label where not even the last name
/// fits.
std::string fit_path(std::string_view path, double max_width, const MeasureText& measure);

/// Breaks `text` into at most `max_lines` lines of `max_width`, preferably after a space, comma,
/// hyphen or '='. The last line is shortened like fit_label.
std::vector<std::string> wrap_label(std::string_view text, double max_width, int max_lines,
                                    const MeasureText& measure);

}  // namespace profiler
