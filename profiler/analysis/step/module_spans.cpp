#include "profiler/analysis/step/module_spans.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

/// The modules of both levels that a module lies in; by ModuleLevel.
using Levels = std::array<Id<ModulePath>, 2>;

/// Parents come before their children; a damaged file may say otherwise, and then has cycles.
Id<ModulePath> module_around(const Trace& trace, Id<ModulePath> module) {
    const Id<ModulePath> parent = trace.module_paths.get<&ModulePath::parent>(module);
    return parent.valid() && parent < module ? parent : Id<ModulePath>();
}

/// For each module the two levels above it. Each module is decided from its parent: the outer level
/// begins at a layer, or below the modules that hold layers; the inner level is one step further.
std::vector<Levels> levels_of_modules(const Trace& trace) {
    const auto layer = trace.module_paths.column<&ModulePath::layer>();
    std::vector<char> holds_layers(layer.size(), 0);
    for (std::size_t i = layer.size(); i-- > 0;) {
        const Id<ModulePath> parent = module_around(trace, Id<ModulePath>(i));
        if (!parent.valid() || layer[parent.index()] >= 0) continue;
        if (layer[i] >= 0 || holds_layers[i]) holds_layers[parent.index()] = 1;
    }
    std::vector<Levels> levels(layer.size());
    for (std::size_t i = 0; i < layer.size(); ++i) {
        const Id<ModulePath> module(i), parent = module_around(trace, module);
        const bool begins =
            !parent.valid() || (layer[parent.index()] < 0 && holds_layers[parent.index()]);
        if (begins) {
            levels[i] = {module, {}};
            continue;
        }
        levels[i] = levels[parent.index()];
        if (!levels[i][1].valid()) levels[i][1] = module;
    }
    return levels;
}

std::vector<int32_t> ordinals_of_modules(const Trace& trace) {
    std::vector<int32_t> ordinals(trace.module_paths.size()), children(ordinals.size() + 1, 0);
    for (std::size_t i = 0; i < ordinals.size(); ++i) {
        const Id<ModulePath> parent = module_around(trace, Id<ModulePath>(i));
        ordinals[i] = children[parent.valid() ? parent.index() : ordinals.size()]++;
    }
    return ordinals;
}

/// Makes the spans of one level from its ops in the order of time.
class TrackBuilder {
public:
    void add(Id<ModulePath> module, Id<Phase> phase, int64_t start_ns, int64_t end_ns) {
        if (is_open_ && open_.module == module && open_.phase == phase) {
            open_.end_ns = std::max(open_.end_ns, end_ns);
            return;
        }
        close(start_ns);
        open_ = {.start_ns = start_ns, .end_ns = end_ns, .module = module, .phase = phase};
        is_open_ = true;
    }
    /// Ends the open span at `limit_ns` at the latest: another one starts there.
    void close(int64_t limit_ns) {
        if (!is_open_) return;
        is_open_ = false;
        open_.end_ns = std::min(open_.end_ns, limit_ns);
        if (open_.end_ns > open_.start_ns) track_.spans.push_back(open_);
    }
    ModuleTrack take() {
        close(INT64_MAX);
        return std::move(track_);
    }

private:
    ModuleTrack track_;
    ModuleSpan open_;
    bool is_open_ = false;
};

/// Indices of the ops that take time, by their start. Most traces hold them in that order.
std::vector<int32_t> ops_in_order(const Trace& trace) {
    const auto start_ns = trace.ops.column<&Op::start_ns>();
    const auto end_ns = trace.ops.column<&Op::end_ns>();
    std::vector<int32_t> order;
    order.reserve(start_ns.size());
    for (std::size_t i = 0; i < start_ns.size(); ++i) {
        if (end_ns[i] > start_ns[i]) order.push_back(static_cast<int32_t>(i));
    }
    const auto starts_before = [&](int32_t a, int32_t b) {
        return start_ns[static_cast<std::size_t>(a)] < start_ns[static_cast<std::size_t>(b)];
    };
    if (!std::ranges::is_sorted(order, starts_before)) {
        std::ranges::stable_sort(order, starts_before);
    }
    return order;
}

/// Optimizer and loss run outside of modules in many programs; their phase then stands for a
/// module. Elsewhere such ops are small change between modules.
bool is_own_span(const Trace& trace, Id<Phase> phase) {
    if (!phase.valid()) return false;
    const PhaseKind kind = trace.phases.get<&Phase::kind>(phase);
    return kind == PhaseKind::kOptimizer || kind == PhaseKind::kLoss;
}

/// Finds the spans of many times. Allocations follow each other in time, and so do their ends, in
/// either direction: the search begins at the span found before and doubles its steps.
class SpanFinder {
public:
    explicit SpanFinder(ModuleTrack& track) : spans_(track.spans) {}

    /// Null between spans.
    ModuleSpan* at(int64_t time_ns) {
        last_ = search_from_last(time_ns);
        const bool inside = last_ < spans_.size() && spans_[last_].start_ns <= time_ns;
        return inside ? &spans_[last_] : nullptr;
    }

private:
    /// As ModuleTrack::first_ending_after.
    std::size_t search_from_last(int64_t time_ns) const {
        const auto ends_after = [&](std::size_t i) { return spans_[i].end_ns > time_ns; };
        std::size_t low = last_, high = last_;  // the answer lies in [low, high]
        for (std::size_t step = 1; low > 0 && ends_after(low - 1); step *= 2) {
            high = low - 1;
            low -= std::min(step, low);
        }
        for (std::size_t step = 1; high < spans_.size() && !ends_after(high); step *= 2) {
            low = high + 1;
            high += std::min(step, spans_.size() - high);
        }
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (ends_after(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    std::vector<ModuleSpan>& spans_;
    std::size_t last_ = 0;
};

void add_bytes(const Trace& trace, ModuleTrack& track) {
    const Id<Device> profiled = profiled_device(trace);
    const auto devices = trace.allocations.column<&Allocation::device>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();
    const auto free_events = trace.allocations.column<&Allocation::free_requested_event>();
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    SpanFinder makers(track), enders(track);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (!is_on(profiled, devices[i])) continue;
        ModuleSpan* const made = makers.at(alloc_ns[i]);
        ModuleSpan* const freed = free_events[i] >= 0 ? enders.at(free_ns[i]) : nullptr;
        if (made) made->allocated_bytes += bytes[i];
        if (freed) freed->freed_bytes += bytes[i];
        if (made && made != freed) made->left_bytes += bytes[i];
    }
}

}  // namespace

std::size_t ModuleTrack::first_ending_after(int64_t time_ns) const {
    const auto found = std::ranges::upper_bound(spans, time_ns, {}, &ModuleSpan::end_ns);
    return static_cast<std::size_t>(found - spans.begin());
}

std::size_t ModuleTrack::first_starting_at(int64_t time_ns) const {
    const auto found = std::ranges::lower_bound(spans, time_ns, {}, &ModuleSpan::start_ns);
    return static_cast<std::size_t>(found - spans.begin());
}

ModuleSpans::ModuleSpans(const Trace& trace) {
    if (trace.module_paths.empty()) return;
    const std::vector<Levels> levels = levels_of_modules(trace);
    TrackBuilder outer, inner;
    for (const int32_t i : ops_in_order(trace)) {
        const Id<Op> id(static_cast<std::size_t>(i));
        const Id<ModulePath> module = module_of(trace, id);
        const Id<Phase> phase = trace.ops.get<&Op::phase>(id);
        if (!module.valid() && !is_own_span(trace, phase)) continue;
        const int64_t start_ns = trace.ops.get<&Op::start_ns>(id);
        const int64_t end_ns = trace.ops.get<&Op::end_ns>(id);
        const Levels level = module.valid() ? levels[module.index()] : Levels();
        outer.add(level[0], phase, start_ns, end_ns);
        if (level[1].valid()) {
            inner.add(level[1], phase, start_ns, end_ns);
        } else {
            inner.close(start_ns);
        }
    }
    tracks_ = {outer.take(), inner.take()};
    const std::vector<int32_t> ordinals = ordinals_of_modules(trace);
    for (ModuleTrack& track : tracks_) {
        for (ModuleSpan& span : track.spans) {
            if (span.module.valid()) span.ordinal = ordinals[span.module.index()];
        }
        add_bytes(trace, track);
    }
}

}  // namespace profiler
