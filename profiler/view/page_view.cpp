#include "profiler/view/page_view.h"

#include "profiler/analysis/block_origin.h"
#include "profiler/analysis/call_site.h"
#include "profiler/analysis/storage_names.h"

#include <map>
#include <utility>

namespace profiler {
namespace {

/// Finds what to say about blocks, each different text once.
class Labels {
public:
    explicit Labels(const Trace& trace)
        : trace_(trace), storage_names_(names_of_storages(trace)), sites_(trace) {}

    /// The label's place in `take()`.
    uint32_t of(Id<Allocation> allocation, const BlockOrigin& origin) {
        BlockLabel label{std::string(origin.name), std::string(origin.module_path)};
        if (label.name.empty()) {
            const Id<Stack> stack = trace_.allocations.get<&Allocation::stack>(allocation);
            if (stack.valid()) label.name = sites_.of(stack);
        }
        const auto next = static_cast<uint32_t>(places_.size());
        return places_.emplace(std::move(label), next).first->second;
    }

    BlockOrigin origin_of(Id<Allocation> allocation) const {
        return profiler::origin_of(trace_, storage_names_, {}, allocation);
    }

    std::vector<BlockLabel> take() {
        std::vector<BlockLabel> labels(places_.size());
        for (const auto& [label, place] : places_) labels[place] = label;
        return labels;
    }

private:
    const Trace& trace_;
    std::vector<StringId> storage_names_;
    CallSites sites_;
    std::map<BlockLabel, uint32_t> places_;
};

PageTrace build_trace(const TimelineSource& source, const TimeMap& map,
                      const MomentLimits& limits) {
    const Trace& trace = *source.trace;
    PageTrace page{.moments = build_moments(trace, *source.curve, limits)};
    page.time_ns.reserve(page.moments.moments.size());
    for (const CurveBin& moment : page.moments.moments) {
        page.time_ns.push_back(map.to_shared(static_cast<double>(moment.time_ns)));
    }
    Labels labels(trace);
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
    TimelineRequest timeline{.width_px = 1, .alignment = request.alignment};
    for (const PageSource& source : request.sources) timeline.sources.push_back(source.timeline);
    PageView view;
    view.range = fit_timeline(timeline);
    timeline.start_ns = view.range.start_ns;
    timeline.end_ns = view.range.end_ns;
    view.timeline = build_timeline_view(timeline);

    MomentLimits limits = request.limits;
    limits.max_moments /= request.sources.size();
    limits.max_blocks /= request.sources.size();
    LedgerRequest ledger;
    for (std::size_t i = 0; i < request.sources.size(); ++i) {
        const PageSource& source = request.sources[i];
        const TimeMap map = i == 0 ? TimeMap() : request.alignment->second;
        view.traces.push_back(build_trace(source.timeline, map, limits));
        view.has_clock &= source.timeline.trace->run().time_basis != TimeBasis::kEventOrder;
        (i == 0 ? ledger.first : ledger.second) = source.ledger;
    }
    view.ledger = build_ledger_view(ledger);
    return view;
}

}  // namespace profiler
