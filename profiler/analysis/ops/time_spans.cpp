#include "profiler/analysis/ops/time_spans.h"

#include <algorithm>

namespace profiler {

int64_t covered_ns(std::vector<TimeSpan> spans) {
    std::ranges::sort(spans, {}, &TimeSpan::start_ns);
    int64_t covered = 0, end_ns = INT64_MIN;
    for (const TimeSpan& span : spans) {
        const int64_t start_ns = std::max(span.start_ns, end_ns);
        covered += std::max<int64_t>(span.end_ns - start_ns, 0);
        end_ns = std::max(end_ns, span.end_ns);
    }
    return covered;
}

}  // namespace profiler
