#include "app/workspace/time_axis.h"

#include "app/workspace/view_orders.h"

#include <algorithm>

namespace app {

TimeWindow with_margins(TimeWindow window) {
    const double margin_ns = (window.end_ns - window.start_ns) / 2;
    window.start_ns -= margin_ns;
    window.end_ns += margin_ns;
    window.width_px *= 2;
    return window;
}

void TimeAxis::align(const Selection& selection) {
    const auto& [a, b] = std::tie(selection.a, selection.b);
    alignment = nullptr;
    if (a && b && a->has_step && b->has_step) {
        alignment = std::make_shared<const profiler::Alignment>(
            profiler::align(*a->trace, *b->trace, window.alignment));
    }
    limits = profiler::fit_timeline(timeline_request(selection, *this, window));
    fit();
}

void TimeAxis::fit() {
    window.start_ns = limits.start_ns;
    window.end_ns = limits.end_ns;
}

void TimeAxis::reveal(const SelectedTensor& tensor) {
    if (!tensor.alloc_ns) return;
    const double end_ns = tensor.free_ns.value_or(limits.end_ns);
    if (*tensor.alloc_ns < window.end_ns && end_ns > window.start_ns) return;
    const double shown_ns = window.end_ns - window.start_ns;
    window.start_ns = (*tensor.alloc_ns + end_ns - shown_ns) / 2;
    window.end_ns = window.start_ns + shown_ns;
}

void TimeAxis::reveal(const profiler::TimeRange& span) {
    constexpr double kLeastShare = 0.02, kZoomedShare = 0.1;
    double shown_ns = window.end_ns - window.start_ns;
    const double length_ns = span.end_ns - span.start_ns;
    const bool is_inside = span.start_ns >= window.start_ns && span.end_ns <= window.end_ns;
    const bool is_seen = length_ns >= shown_ns * kLeastShare;
    if (is_inside && is_seen) return;
    if (!is_seen || length_ns > shown_ns) {
        shown_ns = std::max(length_ns / kZoomedShare, kMinWindowNs);
        shown_ns = std::min(shown_ns, limits.end_ns - limits.start_ns);
    }
    window.start_ns = (span.start_ns + span.end_ns - shown_ns) / 2;
    window.end_ns = window.start_ns + shown_ns;
}

}  // namespace app
