#include "profiler/analysis/ops/calls.h"

#include "profiler/analysis/step/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace profiler {
namespace {

struct Span {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    CallId id;
};

/// Sorts outer calls before the calls inside them. Most traces hold them in that order.
void sort_spans(std::vector<Span>& spans) {
    const auto comes_before = [](const Span& a, const Span& b) {
        return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
    };
    if (std::ranges::is_sorted(spans, comes_before)) return;
    std::ranges::stable_sort(spans, comes_before);
}

void append(const Span& span, CallRow& row) {
    const bool first = row.ids.empty();
    row.busy_ns.push_back(first ? 0 : row.busy_ns.back() + row.end_ns.back() - row.start_ns.back());
    row.start_ns.push_back(span.start_ns);
    row.end_ns.push_back(span.end_ns);
    row.ids.push_back(span.id);
}

void lay_out(std::vector<Span>& spans, CallLane& lane) {
    sort_spans(spans);
    for (const Span& span : spans) {
        // Calls fill rows from the outermost inwards, so the search ends after a few rows.
        const auto is_free = [&](const CallRow& row) { return row.end_ns.back() <= span.start_ns; };
        auto row = std::ranges::find_if(lane.rows, is_free);
        if (row == lane.rows.end()) {
            if (lane.rows.size() == CallLane::kMostRows) {
                ++lane.left_out;
                continue;
            }
            row = lane.rows.emplace(lane.rows.end());
        }
        append(span, *row);
    }
}

/// The calls of the engine in which the node itself is recorded.
std::vector<bool> find_engine_calls(const Trace& trace) {
    std::vector<bool> is_engine_call(trace.ops.size());
    const auto names = trace.ops.column<&Op::name>();
    const auto parents = trace.ops.column<&Op::parent>();
    for (std::size_t i = 0; i < names.size(); ++i) {
        const Id<Op> parent = parents[i];
        if (!parent.valid() || parent.index() >= i) continue;
        std::string_view around = trace.text(names[parent.index()]);
        if (!around.starts_with(kEngineCall)) continue;
        around.remove_prefix(kEngineCall.size());
        if (around == trace.text(names[i])) is_engine_call[parent.index()] = true;
    }
    return is_engine_call;
}

/// Of each op; an op without a class gets that of the longest op in it. Ops stand after the op
/// that they are in, so one pass from the end is enough.
std::vector<OpClass> inherit_classes(const Trace& trace) {
    const auto own = trace.ops.column<&Op::op_class>();
    std::vector<OpClass> classes(own.begin(), own.end());
    std::vector<int64_t> longest_ns(classes.size(), -1);
    std::vector<OpClass> of_longest(classes.size(), OpClass::kOther);
    const auto parents = trace.ops.column<&Op::parent>();
    const auto starts = trace.ops.column<&Op::start_ns>();
    const auto ends = trace.ops.column<&Op::end_ns>();
    for (std::size_t i = classes.size(); i-- > 0;) {
        if (classes[i] == OpClass::kOther) classes[i] = of_longest[i];
        const Id<Op> parent = parents[i];
        if (classes[i] == OpClass::kOther || !parent.valid() || parent.index() >= i) continue;
        const int64_t length_ns = ends[i] < starts[i] ? 0 : ends[i] - starts[i];
        if (length_ns <= longest_ns[parent.index()]) continue;
        longest_ns[parent.index()] = length_ns;
        of_longest[parent.index()] = classes[i];
    }
    return classes;
}

/// Groups the rows of one table by thread or stream; -1 stands for rows without one.
template <auto Place, auto Start, auto End, typename Row>
void collect(const Table<Row>& table, CallKind kind, std::map<int32_t, std::vector<Span>>& to) {
    const auto places = table.template column<Place>();
    const auto starts = table.template column<Start>();
    const auto ends = table.template column<End>();
    for (std::size_t i = 0; i < table.size(); ++i) {
        // A call that was running when the capture was killed has no end.
        if (starts[i] < 0 || ends[i] < starts[i]) continue;
        to[places[i].value].push_back({starts[i], ends[i], {kind, static_cast<int32_t>(i)}});
    }
}

std::string name_of_thread(const Trace& trace, Id<Thread> id) {
    if (!id.valid()) return "calls";
    const Thread thread = trace.threads[id];
    const std::string_view name = trace.text(thread.name);
    return name.empty() ? fmt::format("thread {}", thread.system_id)
                        : fmt::format("{} thread", name);
}

std::string name_of_stream(const Trace& trace, Id<Stream> id) {
    if (!id.valid()) return "kernels";
    const Stream stream = trace.streams[id];
    const std::string name = fmt::format("stream {}", stream.handle);
    if (!stream.device.valid() || trace.devices.size() < 2) return name;
    return fmt::format("{} of {}", name,
                       trace.text(trace.devices.get<&Device::name>(stream.device)));
}

/// The classes of ops come first.
CallClass to_call_class(OpClass op_class) { return static_cast<CallClass>(op_class); }

}  // namespace

std::size_t CallRow::first_ending_after(int64_t time_ns) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(end_ns, time_ns) - end_ns.begin());
}

std::size_t CallRow::first_starting_at(int64_t time_ns) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(start_ns, time_ns) - start_ns.begin());
}

template <typename Row>
Calls::ByOp<Row>::ByOp(std::span<const Id<Op>> op_of_row, std::size_t num_ops)
    : first_(num_ops + 1) {
    for (const Id<Op> op : op_of_row) {
        if (op.valid()) ++first_[op.index() + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    rows_.resize(first_.back());
    std::vector<std::size_t> next = first_;
    for (std::size_t i = 0; i < op_of_row.size(); ++i) {
        if (op_of_row[i].valid()) rows_[next[op_of_row[i].index()]++] = Id<Row>(i);
    }
}

template <typename Row>
std::span<const Id<Row>> Calls::ByOp<Row>::of(Id<Op> op) const {
    if (!op.valid() || op.index() + 1 >= first_.size()) return {};
    return std::span(rows_).subspan(first_[op.index()],
                                    first_[op.index() + 1] - first_[op.index()]);
}

Calls::Calls(const Trace& trace)
    : op_classes_(inherit_classes(trace)),
      kernels_(trace.kernels.column<&Kernel::op>(), trace.ops.size()),
      allocations_(trace.allocations.column<&Allocation::op>(), trace.ops.size()) {
    std::map<int32_t, std::vector<Span>> threads, streams;
    collect<&Op::thread, &Op::start_ns, &Op::end_ns>(trace.ops, CallKind::kOp, threads);
    collect<&Kernel::stream, &Kernel::start_ns, &Kernel::end_ns>(trace.kernels, CallKind::kKernel,
                                                                 streams);
    collect<&Memcpy::stream, &Memcpy::start_ns, &Memcpy::end_ns>(trace.memcpys, CallKind::kMemcpy,
                                                                 streams);
    for (const auto& [stream, spans] : streams) {
        for (const Span& span : spans) {
            if (span.id.kind != CallKind::kKernel) continue;
            kernel_starts_ns_.push_back(span.start_ns);
            kernel_ends_ns_.push_back(span.end_ns);
        }
    }
    std::ranges::sort(kernel_starts_ns_);
    std::ranges::sort(kernel_ends_ns_);
    const std::vector<bool> is_engine_call = find_engine_calls(trace);
    for (auto& [thread, spans] : threads) {
        std::erase_if(spans, [&](const Span& span) {
            return is_engine_call[static_cast<std::size_t>(span.id.row)];
        });
    }
    const auto add = [&](std::vector<Span>& spans, std::string name, bool is_stream) {
        lay_out(spans, lanes_.emplace_back(CallLane{std::move(name), is_stream, {}, 0}));
    };
    for (auto& [stream, spans] : streams) {
        Id<Stream> id;
        id.value = stream;
        add(spans, name_of_stream(trace, id), true);
    }
    for (auto& [thread, spans] : threads) {
        Id<Thread> id;
        id.value = thread;
        add(spans, name_of_thread(trace, id), false);
    }
}

std::span<const Id<Kernel>> Calls::kernels_of(Id<Op> op) const { return kernels_.of(op); }

std::span<const Id<Allocation>> Calls::allocations_of(Id<Op> op) const {
    return allocations_.of(op);
}

int64_t Calls::count_kernels(int64_t start_ns, int64_t end_ns) const {
    // The kernels that began before the end, minus the kernels that ended by the start.
    const auto begun =
        std::ranges::lower_bound(kernel_starts_ns_, end_ns) - kernel_starts_ns_.begin();
    const auto ended =
        std::ranges::upper_bound(kernel_ends_ns_, start_ns) - kernel_ends_ns_.begin();
    return std::max<int64_t>(0, begun - ended);
}

CallClass Calls::class_of(const Trace& trace, CallId id) const {
    if (id.kind == CallKind::kMemcpy) return CallClass::kCopy;
    const Id<Op> op = op_of(trace, id);
    return op.valid() && op.index() < op_classes_.size() ? to_call_class(op_classes_[op.index()])
                                                         : CallClass::kOther;
}

std::string_view name_of(const Trace& trace, CallId id) {
    const auto row = static_cast<std::size_t>(id.row);
    switch (id.kind) {
        case CallKind::kOp:
            return name_of_call(trace, Id<Op>(row));
        case CallKind::kKernel:
            return trace.text(trace.kernels.get<&Kernel::name>(Id<Kernel>(row)));
        case CallKind::kMemcpy:
            return trace.text(trace.memcpys.get<&Memcpy::kind>(Id<Memcpy>(row)));
    }
    return {};
}

CallSpan span_of(const Trace& trace, CallId id) {
    const auto row = static_cast<std::size_t>(id.row);
    switch (id.kind) {
        case CallKind::kOp:
            return {trace.ops.get<&Op::start_ns>(Id<Op>(row)),
                    trace.ops.get<&Op::end_ns>(Id<Op>(row))};
        case CallKind::kKernel:
            return {trace.kernels.get<&Kernel::start_ns>(Id<Kernel>(row)),
                    trace.kernels.get<&Kernel::end_ns>(Id<Kernel>(row))};
        case CallKind::kMemcpy:
            return {trace.memcpys.get<&Memcpy::start_ns>(Id<Memcpy>(row)),
                    trace.memcpys.get<&Memcpy::end_ns>(Id<Memcpy>(row))};
    }
    return {};
}

Id<Op> op_of(const Trace& trace, CallId id) {
    if (!id.valid()) return {};
    const auto row = static_cast<std::size_t>(id.row);
    switch (id.kind) {
        case CallKind::kOp:
            return Id<Op>(row);
        case CallKind::kKernel:
            return trace.kernels.get<&Kernel::op>(Id<Kernel>(row));
        case CallKind::kMemcpy:
            return trace.memcpys.get<&Memcpy::op>(Id<Memcpy>(row));
    }
    return {};
}

}  // namespace profiler
