#include "profiler/formats/parts/marked_ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {
namespace {

bool is_mark(std::string_view name) {
    if (name.starts_with(kStepMark)) return true;
    for (std::size_t kind = 0; kind < kPhaseKindNames.size(); ++kind) {
        if (name == phase_mark(static_cast<PhaseKind>(kind))) return true;
    }
    return false;
}

}  // namespace

std::string phase_mark(PhaseKind kind) { return fmt::format("## {} ##", name_of(kind)); }

std::vector<MarkedRange> marked_ranges(const Trace& trace) {
    // Those of a snapshot follow from its annotations alone.
    const bool are_annotations = trace.ops.empty() && !trace.annotations.empty();
    // Those of another profiler have numbers of their own.
    const bool are_numbered =
        are_annotations ||
        std::ranges::any_of(trace.annotations.column<&Annotation::text>(),
                            [&](StringId text) { return trace.text(text).starts_with(kStepMark); });
    std::vector<MarkedRange> ranges;
    for (std::size_t i = 0; i < trace.steps.size() && !are_numbered; ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        ranges.push_back({fmt::format("{}{}", kStepMark, i), step.start_ns, step.end_ns});
    }
    for (std::size_t i = 0; i < trace.phases.size() && !are_annotations; ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        ranges.push_back({phase_mark(phase.kind), phase.start_ns, phase.end_ns});
    }
    for (std::size_t i = 0; i < trace.annotations.size(); ++i) {
        const Annotation row = trace.annotations[Id<Annotation>(i)];
        const std::string_view name = trace.text(row.text);
        if (is_mark(name) && !are_annotations && !name.starts_with(kStepMark)) continue;
        ranges.push_back({std::string(name), row.start_ns, row.end_ns, !is_mark(name)});
    }
    std::stable_sort(ranges.begin(), ranges.end(), [](const MarkedRange& a, const MarkedRange& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    return ranges;
}

}  // namespace profiler
