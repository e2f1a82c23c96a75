#include "profiler/view/kernels/call_group.h"

#include "profiler/analysis/ops/movement.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/view/kernels/kernels_view.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace profiler {
namespace {

/// Whether a span has the name of a key. A trace has few names, so each is compared once.
class NameMatch {
public:
    NameMatch(const Trace& trace, const CallKey& key) : trace_(trace), key_(key) {}

    bool operator()(CallId id, StringId name) {
        const auto [known, is_new] = matches_.try_emplace(name.value, false);
        if (is_new) known->second = name_in_key(trace_, id) == key_.name;
        return known->second;
    }

    static std::string name_in_key(const Trace& trace, CallId id) {
        const std::string_view name = name_of(trace, id);
        return id.kind == CallKind::kKernel ? short_name(name) : std::string(name);
    }

private:
    const Trace& trace_;
    const CallKey& key_;
    std::unordered_map<int32_t, bool> matches_;  // by the row of the text
};

std::optional<PhaseKind> phase_of(const Trace& trace, CallId id) {
    const Id<Op> op = op_of(trace, id);
    const Id<Phase> phase = op.valid() ? trace.ops.get<&Op::phase>(op) : Id<Phase>();
    return phase.valid() ? std::optional(trace.phases.get<&Phase::kind>(phase)) : std::nullopt;
}

bool has_phase(const Trace& trace, const CallKey& key, CallId id) {
    return !key.phase || phase_of(trace, id) == key.phase;
}

std::vector<CallId> spans_named(const Trace& trace, const CallKey& key,
                                std::span<const StringId> names) {
    std::vector<CallId> found;
    NameMatch has_name(trace, key);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const CallId id{key.kind, static_cast<int32_t>(i)};
        if (has_name(id, names[i]) && has_phase(trace, key, id)) found.push_back(id);
    }
    return found;
}

ModuleKey module_key_of(const CallPlace& place) {
    const bool is_in_layer = place.layer >= 0;
    return {std::string(is_in_layer ? split_layer_path(place.path, place.layer_path).inside
                                    : place.path),
            is_in_layer};
}

/// Of calls, those of a row of the Movement panel.
void keep_counted(const OutermostOps& counted, const ModuleKey& module,
                  std::vector<CallId>& calls) {
    std::erase_if(calls, [&](CallId id) {
        const Id<Op> op(static_cast<std::size_t>(id.row));
        return !counted.is_counted(op) || module_key_of(counted.place_of(op)) != module;
    });
}

/// The call of the same name around an op, or the span itself: autocast calls an op again, with
/// other types.
CallId outer_call(const Trace& trace, CallId id) {
    if (id.kind != CallKind::kOp) return id;
    const auto names = trace.ops.column<&Op::name>();
    const auto parents = trace.ops.column<&Op::parent>();
    Id<Op> op(static_cast<std::size_t>(id.row));
    // In damaged files a call may stand before the call around it.
    while (parents[op.index()].valid() && parents[op.index()] < op &&
           names[parents[op.index()].index()] == names[op.index()]) {
        op = parents[op.index()];
    }
    return {CallKind::kOp, op.value};
}

void keep_outer(const Trace& trace, std::vector<CallId>& calls) {
    std::erase_if(calls, [&](CallId id) { return outer_call(trace, id) != id; });
}

/// Of each op: the time of all that it and the calls in it launched. Empty without launches.
std::vector<int64_t> device_times(const Trace& trace) {
    if (trace.kernels.empty() && trace.memcpys.empty()) return {};
    std::vector<int64_t> times_ns(trace.ops.size());
    const auto add = [&](const auto& ops, const auto& starts, const auto& ends) {
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!ops[i].valid()) continue;
            int64_t& sum_ns = times_ns[ops[i].index()];
            sum_ns = add_times(sum_ns, std::max<int64_t>(ends[i] - starts[i], 0));
        }
    };
    add(trace.kernels.column<&Kernel::op>(), trace.kernels.column<&Kernel::start_ns>(),
        trace.kernels.column<&Kernel::end_ns>());
    add(trace.memcpys.column<&Memcpy::op>(), trace.memcpys.column<&Memcpy::start_ns>(),
        trace.memcpys.column<&Memcpy::end_ns>());
    // A call stands behind the call around it, so from the end each sum is whole when it is used.
    const auto parents = trace.ops.column<&Op::parent>();
    for (std::size_t i = times_ns.size(); i-- > 0;) {
        const Id<Op> parent = parents[i];
        if (!parent.valid() || parent >= Id<Op>(i)) continue;
        times_ns[parent.index()] = add_times(times_ns[parent.index()], times_ns[i]);
    }
    return times_ns;
}

struct TimesOfCalls {
    std::vector<int64_t> times_ns;  // as the calls
    bool are_of_device = false;
};

TimesOfCalls times_of(const Trace& trace, std::span<const CallId> calls,
                      const std::vector<int64_t>& device_times_ns) {
    TimesOfCalls times;
    const auto device_ns = [&](CallId id) {
        return id.kind == CallKind::kOp && !device_times_ns.empty()
                   ? device_times_ns[static_cast<std::size_t>(id.row)]
                   : int64_t{0};
    };
    times.are_of_device = std::ranges::any_of(calls, [&](CallId id) { return device_ns(id) > 0; });
    for (const CallId id : calls) {
        const CallSpan span = span_of(trace, id);
        times.times_ns.push_back(times.are_of_device
                                     ? device_ns(id)
                                     : std::max<int64_t>(span.end_ns - span.start_ns, 0));
    }
    return times;
}

CallTimes summary_of(const TimesOfCalls& times) {
    CallTimes summary{.num_calls = static_cast<int64_t>(times.times_ns.size()),
                      .are_of_device = times.are_of_device};
    if (times.times_ns.empty()) return summary;
    std::vector<int64_t> sorted = times.times_ns;
    std::ranges::sort(sorted);
    summary.least_ns = sorted.front();
    summary.median_ns = sorted[sorted.size() / 2];
    summary.most_ns = sorted.back();
    for (const int64_t time_ns : sorted) summary.total_ns = add_times(summary.total_ns, time_ns);
    return summary;
}

/// Calls that all take the same time still need an axis around it.
void choose_axis(CallGroup& group) {
    constexpr double kLeastRatio = 1.2;
    double low_ns = 0, high_ns = 0;
    for (const CallTimes& times : group.sources) {
        if (times.num_calls == 0) continue;
        const auto least_ns = static_cast<double>(std::max<int64_t>(times.least_ns, 1));
        low_ns = low_ns > 0 ? std::min(low_ns, least_ns) : least_ns;
        high_ns = std::max(high_ns, static_cast<double>(std::max<int64_t>(times.most_ns, 1)));
    }
    if (low_ns <= 0) return;
    const double missing = std::max(1.0, kLeastRatio / (high_ns / low_ns));
    group.low_ns = low_ns / std::sqrt(missing);
    group.high_ns = high_ns * std::sqrt(missing);
}

/// The neighbours of the picked call in time, and the longest one.
void find_neighbours(CallGroup& group, const Trace& trace, std::vector<CallId> calls,
                     const std::vector<int64_t>& times_ns, CallId picked) {
    const auto longest = std::ranges::max_element(times_ns);
    group.longest = calls[static_cast<std::size_t>(longest - times_ns.begin())];
    const auto starts_before = [&](CallId a, CallId b) {
        return span_of(trace, a).start_ns < span_of(trace, b).start_ns;
    };
    std::ranges::stable_sort(calls, starts_before);
    const auto at = std::ranges::find(calls, picked);
    if (at == calls.end()) return;
    if (at != calls.begin()) group.previous = *(at - 1);
    if (at + 1 != calls.end()) group.next = *(at + 1);
}

/// Marks what stands inside of marked calls, and what they launch.
void mark_inner(const Trace& trace, MarkedSpans& marked) {
    std::vector<bool>& calls = marked.of(CallKind::kOp);
    const auto parents = trace.ops.column<&Op::parent>();
    for (std::size_t i = 0; i < parents.size(); ++i) {
        const Id<Op> parent = parents[i];
        if (parent.valid() && parent < Id<Op>(i) && calls[parent.index()]) calls[i] = true;
    }
    const auto mark_launches = [&](const auto& ops, std::vector<bool>& launches) {
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (ops[i].valid() && calls[ops[i].index()]) launches[i] = true;
        }
    };
    mark_launches(trace.kernels.column<&Kernel::op>(), marked.of(CallKind::kKernel));
    mark_launches(trace.memcpys.column<&Memcpy::op>(), marked.of(CallKind::kMemcpy));
}

MarkedSpans marked_spans(const Trace& trace, std::span<const CallKey> keys) {
    MarkedSpans marked;
    marked.of(CallKind::kOp).resize(trace.ops.size());
    marked.of(CallKind::kKernel).resize(trace.kernels.size());
    marked.of(CallKind::kMemcpy).resize(trace.memcpys.size());
    const std::vector<int64_t> device_times_ns = device_times(trace);
    const OutermostOps counted(trace);
    for (const CallKey& key : keys) {
        const std::vector<CallId> calls = calls_of(trace, key, &counted);
        const CallTimes times = summary_of(times_of(trace, calls, device_times_ns));
        marked.num_calls += times.num_calls;
        marked.time_ns = add_times(marked.time_ns, times.total_ns);
        std::vector<bool>& spans = marked.of(key.kind);
        for (const CallId id : calls) spans[static_cast<std::size_t>(id.row)] = true;
    }
    mark_inner(trace, marked);
    return marked;
}

}  // namespace

CallKey key_of(const Trace& trace, CallId id) {
    return {id.kind, NameMatch::name_in_key(trace, id), phase_of(trace, id), std::nullopt};
}

std::vector<CallId> calls_of(const Trace& trace, const CallKey& key, const OutermostOps* counted) {
    switch (key.kind) {
        case CallKind::kKernel:
            return spans_named(trace, key, trace.kernels.column<&Kernel::name>());
        case CallKind::kMemcpy:
            return spans_named(trace, key, trace.memcpys.column<&Memcpy::kind>());
        case CallKind::kOp:
            break;
    }
    std::vector<CallId> calls = spans_named(trace, key, trace.ops.column<&Op::name>());
    keep_outer(trace, calls);
    if (key.module) keep_counted(*counted, *key.module, calls);
    return calls;
}

std::size_t CallGroup::class_of(int64_t time_ns) const {
    const double along = std::log(static_cast<double>(std::max<int64_t>(time_ns, 1)) / low_ns) /
                         std::log(high_ns / low_ns);
    const double place = std::floor(along * static_cast<double>(kNumClasses));
    return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kNumClasses - 1)));
}

CallGroup build_call_group(std::span<const Trace* const> traces, std::size_t source,
                           CallId picked) {
    CallGroup group{
        .key = key_of(*traces[source], picked), .source = source, .picked = picked, .sources = {}};
    std::vector<TimesOfCalls> times;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const Trace& trace = *traces[i];
        const std::vector<CallId> calls = calls_of(trace, group.key);
        times.push_back(times_of(trace, calls, device_times(trace)));
        group.sources.push_back(summary_of(times.back()));
        if (i != source) continue;
        const std::vector<int64_t>& own_ns = times.back().times_ns;
        const CallId counted = outer_call(trace, picked);
        const auto at = std::ranges::find(calls, counted);
        group.picked_ns = own_ns[static_cast<std::size_t>(at - calls.begin())];
        group.num_longer = std::ranges::count_if(
            own_ns, [&](int64_t time_ns) { return time_ns > group.picked_ns; });
        find_neighbours(group, trace, calls, own_ns, counted);
    }
    choose_axis(group);
    for (std::size_t i = 0; i < traces.size(); ++i) {
        std::vector<int64_t>& counts = group.sources[i].counts;
        counts.resize(CallGroup::kNumClasses);
        for (const int64_t time_ns : times[i].times_ns) ++counts[group.class_of(time_ns)];
    }
    return group;
}

MarksView build_marks_view(const MarksRequest& request) {
    MarksView view;
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
        view.traces.push_back(marked_spans(request.steps[i].trace(), request.marks.keys.at(i)));
    }
    return view;
}

}  // namespace profiler
