#include "profiler/view/programs/page_view.h"

#include "profiler/analysis/step/block_origin.h"

#include <map>
#include <utility>

namespace profiler {
namespace {

/// Finds what to say about blocks, each different text once.
class Labels {
public:
    explicit Labels(const StepIndex& step) : step_(step) {}

    /// The label's place in `take()`.
    uint32_t of(Id<Allocation> allocation, const BlockOrigin& origin) {
        BlockLabel label{std::string(origin.name), std::string(origin.module_path)};
        if (label.name.empty()) {
            const Id<Stack> stack = step_.trace().allocations.get<&Allocation::stack>(allocation);
            if (stack.valid()) label.name = step_.sites().of(stack);
        }
        const auto next = static_cast<uint32_t>(places_.size());
        return places_.emplace(std::move(label), next).first->second;
    }

    BlockOrigin origin_of(Id<Allocation> allocation) const {
        return profiler::origin_of(step_.trace(), step_.storage_names(), {}, allocation);
    }

    std::vector<BlockLabel> take() {
        std::vector<BlockLabel> labels(places_.size());
        for (const auto& [label, place] : places_) labels[place] = label;
        return labels;
    }

private:
    const StepIndex& step_;
    std::map<BlockLabel, uint32_t> places_;
};

PageTrace build_trace(const StepIndex& step, const TimeMap& map, const MomentLimits& limits) {
    const Trace& trace = step.trace();
    PageTrace page{.moments = build_moments(trace, step.curve(), limits)};
    page.time_ns.reserve(page.moments.moments.size());
    for (const CurveBin& moment : page.moments.moments) {
        page.time_ns.push_back(map.to_shared(static_cast<double>(moment.time_ns)));
    }
    Labels labels(step);
    page.blocks.reserve(page.moments.blocks.size());
    for (const BlockSpan& span : page.moments.blocks) {
        const BlockOrigin origin = labels.origin_of(span.allocation);
        page.blocks.push_back(
            {.first = span.first,
             .last = span.last,
             .size_bytes = trace.allocations.get<&Allocation::requested_bytes>(span.allocation),
             .category = origin.category,
             .label = labels.of(span.allocation, origin)});
    }
    page.labels = labels.take();
    page.time_map = map.points();
    return page;
}

}  // namespace

PageView build_page_view(const PageRequest& request) {
    TimelineRequest timeline{.steps = request.steps,
                             .names = request.names,
                             .width_px = 1,
                             .alignment = request.alignment};
    PageView view;
    view.range = fit_timeline(timeline);
    timeline.start_ns = view.range.start_ns;
    timeline.end_ns = view.range.end_ns;
    view.timeline = build_timeline_view(timeline);

    MomentLimits limits = request.limits;
    limits.max_moments /= request.steps.size();
    limits.max_blocks /= request.steps.size();
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
        const StepIndex& step = request.steps[i];
        view.traces.push_back(build_trace(step, map_of(request.alignment, i), limits));
        view.has_clock &= step.trace().run().time_basis != TimeBasis::kEventOrder;
    }
    view.ledger = build_ledger_view({.steps = request.steps});
    return view;
}

}  // namespace profiler
