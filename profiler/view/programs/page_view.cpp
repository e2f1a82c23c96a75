#include "profiler/view/programs/page_view.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"

#include <algorithm>
#include <map>
#include <utility>

namespace profiler {
namespace {

bool same_memory(const CurveBin& a, const CurveBin& b) {
    return a.reserved_bytes == b.reserved_bytes && a.by_category == b.by_category;
}

/// Every change from the curve's start on. Changes before it are one moment, the first.
std::vector<CurveBin> exact_moments(const MemoryCurve& curve) {
    std::vector<CurveBin> moments{{.time_ns = curve.start_ns()}};
    curve.for_each_change([&](const CurveBin& after, bool) {
        if (after.time_ns < curve.start_ns()) {
            moments.front() = after;
            moments.front().time_ns = curve.start_ns();
        } else {
            moments.push_back(after);
        }
    });
    return moments;
}

/// The highest instants of fine bins. A bin with the memory of its predecessor is left out.
std::vector<CurveBin> highest_moments(const MemoryCurve& curve, std::size_t max_moments) {
    std::vector<CurveBin> moments;
    const int count = static_cast<int>(max_moments);
    for (const CurveBin& bin : curve.sample(curve.start_ns(), curve.end_ns(), count)) {
        if (moments.empty() || !same_memory(moments.back(), bin)) moments.push_back(bin);
    }
    if (moments.empty()) moments.push_back({.time_ns = curve.start_ns()});
    return moments;
}

/// The moment that shows a change first: its own, or the next one that is left.
class MomentOfChange {
public:
    MomentOfChange(const MomentList& list, int64_t start_ns) : list_(list), start_ns_(start_ns) {}

    uint32_t next(const CurveBin& after) {
        if (after.time_ns < start_ns_) return 0;
        if (list_.is_exact) return ++last_;
        while (last_ < list_.moments.size() && list_.moments[last_].time_ns < after.time_ns)
            ++last_;
        return last_;
    }

private:
    const MomentList& list_;
    int64_t start_ns_;
    uint32_t last_ = 0;
};

/// All blocks that some moment shows, in the order of allocation.
std::vector<BlockSpan> all_blocks(const Trace& trace, const MemoryCurve& curve,
                                  const MomentList& list) {
    const std::vector<MemoryChange> changes = ordered_changes(trace);
    const auto count = static_cast<uint32_t>(list.moments.size());
    std::vector<BlockSpan> blocks;
    std::vector<int64_t> block_of(trace.allocations.size(), -1);
    MomentOfChange moment_of(list, curve.start_ns());
    std::size_t next = 0;
    curve.for_each_change([&](const CurveBin& after, bool is_segment) {
        const uint32_t moment = moment_of.next(after);
        if (is_segment || next == changes.size()) return;
        const MemoryChange change = changes[next++];
        int64_t& block = block_of[change.allocation_index()];
        if (!change.is_free()) {
            block = static_cast<int64_t>(blocks.size());
            blocks.push_back({moment, count, Id<Allocation>(change.allocation_index())});
        } else if (block >= 0) {
            blocks[static_cast<std::size_t>(block)].last = moment;
        }
    });
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    std::erase_if(blocks, [&](const BlockSpan& block) {
        return block.first >= block.last || bytes[block.allocation.index()] <= 0;
    });
    return blocks;
}

/// Bytes times duration: the pixels of the block when everything is shown.
double area_of(const Trace& trace, const MomentList& list, const BlockSpan& block) {
    const auto bytes = trace.allocations.get<&Allocation::requested_bytes>(block.allocation);
    const int64_t start_ns = list.moments[block.first].time_ns;
    const int64_t end_ns =
        list.moments[std::min<std::size_t>(block.last, list.moments.size() - 1)].time_ns;
    return static_cast<double>(bytes) * (static_cast<double>(end_ns - start_ns) + 1);
}

void keep_largest(const Trace& trace, const MomentList& list, std::size_t max_blocks,
                  std::vector<BlockSpan>& blocks) {
    if (blocks.size() <= max_blocks) return;
    std::vector<std::pair<double, std::size_t>> areas;  // with the place in `blocks`
    areas.reserve(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        areas.emplace_back(-area_of(trace, list, blocks[i]), i);
    }
    const auto end = areas.begin() + static_cast<std::ptrdiff_t>(max_blocks);
    std::nth_element(areas.begin(), end, areas.end());
    std::sort(areas.begin(), end, [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<BlockSpan> kept;
    kept.reserve(max_blocks);
    for (auto area = areas.begin(); area != end; ++area) kept.push_back(blocks[area->second]);
    blocks = std::move(kept);
}

/// The most blocks that are live at one moment.
std::size_t most_live(const std::vector<BlockSpan>& blocks, std::size_t num_moments) {
    std::vector<int32_t> change(num_moments + 1, 0);
    for (const BlockSpan& block : blocks) {
        ++change[block.first];
        --change[block.last];
    }
    int64_t live = 0;
    int64_t most = 0;
    for (const int32_t step : change) most = std::max(most, live += step);
    return static_cast<std::size_t>(most);
}

/// Drops small blocks, up to a size that doubles, until few enough are live at once.
void limit_live(const Trace& trace, std::size_t num_moments, std::size_t max_live,
                std::vector<BlockSpan>& blocks) {
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    for (int bits = 9; bits < 63 && most_live(blocks, num_moments) > max_live; ++bits) {
        std::erase_if(blocks, [&](const BlockSpan& block) {
            return bytes[block.allocation.index()] < int64_t{1} << bits;
        });
    }
    if (most_live(blocks, num_moments) > max_live) blocks.clear();
}

}  // namespace

MomentList build_moments(const Trace& trace, const MemoryCurve& curve, const MomentLimits& limits) {
    MomentList list;
    list.is_exact = curve.change_count() < limits.max_moments;
    list.moments =
        list.is_exact ? exact_moments(curve) : highest_moments(curve, limits.max_moments);
    std::vector<BlockSpan> blocks = all_blocks(trace, curve, list);
    const std::size_t visible = blocks.size();
    keep_largest(trace, list, limits.max_blocks, blocks);
    limit_live(trace, list.moments.size(), limits.max_live_blocks, blocks);
    list.hidden_blocks = visible - blocks.size();
    list.blocks = std::move(blocks);
    return list;
}

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
