#include "profiler/formats/kineto/kineto_ops.h"

#include "profiler/trace/collective_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace profiler::kineto {
namespace {

OpClass class_of(std::string_view name) {
    struct Row {
        std::string_view word;
        OpClass op_class;
    };
    // Words of names of ATen's ops; the first that a name holds decides.
    static constexpr Row kRows[]{
        {"norm", OpClass::kNormalization},    {"softmax", OpClass::kNormalization},
        {"addmm", OpClass::kContraction},     {"bmm", OpClass::kContraction},
        {"::mm", OpClass::kContraction},      {"matmul", OpClass::kContraction},
        {"linear", OpClass::kContraction},    {"conv", OpClass::kContraction},
        {"attention", OpClass::kContraction}, {"einsum", OpClass::kContraction},
        {"gelu", OpClass::kElementWise},      {"relu", OpClass::kElementWise},
        {"silu", OpClass::kElementWise},      {"dropout", OpClass::kElementWise},
        {"::add", OpClass::kElementWise},     {"::mul", OpClass::kElementWise},
        {"::div", OpClass::kElementWise},     {"::sub", OpClass::kElementWise},
        {"tanh", OpClass::kElementWise},      {"sigmoid", OpClass::kElementWise},
        {"where", OpClass::kElementWise},     {"masked_fill", OpClass::kElementWise},
        {"_foreach", OpClass::kElementWise},
    };
    for (const Row& row : kRows) {
        if (name.find(row.word) != std::string_view::npos) return row.op_class;
    }
    return OpClass::kOther;
}

/// "host_to_device" of "Memcpy HtoD (Pinned -> Device)".
std::string_view copy_kind(const DeviceWork& work, std::string_view name) {
    if (work.kind == WorkKind::kMemset) return "memset";
    struct Row {
        std::string_view word, kind;
    };
    static constexpr Row kRows[]{{"HtoD", "host_to_device"},
                                 {"HostToDevice", "host_to_device"},
                                 {"DtoH", "device_to_host"},
                                 {"DeviceToHost", "device_to_host"},
                                 {"DtoD", "device_to_device"},
                                 {"PtoP", "device_to_device"},
                                 {"DeviceToDevice", "device_to_device"},
                                 {"HtoH", "host_to_host"}};
    for (const Row& row : kRows) {
        if (name.find(row.word) != std::string_view::npos) return row.kind;
    }
    return "copy";
}

int64_t number_of(std::string_view text) {
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

OpRows::OpRows(const KinetoEvents& events, int64_t start_ns, Trace& trace)
    : events_(events), start_ns_(start_ns), trace_(trace) {}

void OpRows::add() {
    add_ops();
    add_annotations();
    link_backward();
    add_calls();
    add_collectives();
    add_device_work();
}

void OpRows::add_ops() {
    const std::size_t num_threads = events_.threads.size();
    trees_.resize(num_threads);
    thread_rows_.resize(num_threads);
    std::vector<std::vector<SpanTree::Node>> nodes(num_threads);
    std::vector<std::size_t> num_forward(num_threads), num_calls(num_threads);
    std::vector<uint32_t> order;  // spans that are ops, by start
    for (std::size_t i = 0; i < events_.spans.size(); ++i) {
        const HostSpan& span = events_.spans[i];
        const auto thread = static_cast<std::size_t>(span.thread);
        num_calls[thread] += span.kind == SpanKind::kApi ? 1 : 0;
        if (span.kind != SpanKind::kOp) continue;
        num_forward[thread] += span.is_backward ? 0 : 1;
        order.push_back(static_cast<uint32_t>(i));
        nodes[thread].push_back({at(span.start_ns), at(span.end_ns), static_cast<uint32_t>(i), -1});
    }
    for (std::size_t i = 0; i < num_threads; ++i) {
        if (nodes[i].empty() && num_calls[i] == 0) continue;
        trees_[i] = SpanTree(std::move(nodes[i]));
        if (main_thread_ < 0 ||
            num_forward[i] > num_forward[static_cast<std::size_t>(main_thread_)])
            main_thread_ = static_cast<int32_t>(i);
    }
    add_threads();

    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const HostSpan &first = events_.spans[a], &second = events_.spans[b];
        if (first.start_ns != second.start_ns) return first.start_ns < second.start_ns;
        return first.end_ns > second.end_ns;
    });
    op_of_span_.resize(events_.spans.size());
    for (const uint32_t i : order) {
        const HostSpan& span = events_.spans[i];
        const std::string_view name = trace_.text(span.name);
        op_of_span_[i] =
            trace_.ops.append({.name = span.name,
                               .thread = thread_rows_[static_cast<std::size_t>(span.thread)],
                               .start_ns = at(span.start_ns),
                               .end_ns = at(span.end_ns),
                               .op_class = class_of(name)});
        if (span.external_id >= 0) op_of_external_id_.try_emplace(span.external_id, op_of_span_[i]);
    }
    for (const SpanTree& tree : trees_) {
        for (const SpanTree::Node& node : tree.nodes()) {
            if (node.parent < 0) continue;
            trace_.ops.set<&Op::parent>(op_of_span_[node.item],
                                        op_of_span_[tree.at(node.parent).item]);
        }
    }
}

/// Threads that ran ops or called the API. The main thread comes first.
void OpRows::add_threads() {
    std::vector<bool> is_used(events_.threads.size());
    for (const HostSpan& span : events_.spans) {
        if (span.kind == SpanKind::kOp || span.kind == SpanKind::kApi) {
            is_used[static_cast<std::size_t>(span.thread)] = true;
        }
    }
    const auto add = [&](std::size_t i) {
        const ThreadName& thread = events_.threads[i];
        const bool is_main = static_cast<int32_t>(i) == main_thread_;
        const std::string name = is_main                ? "main thread"
                                 : !thread.name.empty() ? thread.name
                                                        : fmt::format("thread {}", thread.thread);
        thread_rows_[i] = trace_.threads.append(
            {.name = trace_.strings.intern(name), .system_id = number_of(thread.thread)});
    };
    if (main_thread_ >= 0) add(static_cast<std::size_t>(main_thread_));
    for (std::size_t i = 0; i < is_used.size(); ++i) {
        if (is_used[i] && static_cast<int32_t>(i) != main_thread_) add(i);
    }
}

void OpRows::add_annotations() {
    std::vector<Annotation> rows;
    for (const HostSpan& span : events_.spans) {
        if (span.kind != SpanKind::kAnnotation) continue;
        rows.push_back({span.name, at(span.start_ns), at(span.end_ns)});
    }
    std::ranges::stable_sort(rows, {}, &Annotation::start_ns);
    for (const Annotation& row : rows) trace_.annotations.append(row);
}

void OpRows::link_backward() {
    link_by_arrows();
    link_by_numbers();
    for (const Id<Op> id : trace_.ops.ids()) {  // parents come before their children
        const Id<Op> parent = trace_.ops.get<&Op::parent>(id);
        if (!parent.valid() || trace_.ops.get<&Op::forward>(id).valid()) continue;
        trace_.ops.set<&Op::forward>(id, trace_.ops.get<&Op::forward>(parent));
    }
}

/// Autograd numbers the ops of each thread: the last forward op with a number made the node of the
/// backward op. A number that several threads used says nothing.
void OpRows::link_by_numbers() {
    struct Forward {
        int64_t start_ns = INT64_MIN;
        Id<Op> op;
        int32_t thread = -1;
        bool is_ambiguous = false;
    };
    std::unordered_map<int64_t, Forward> forward;  // by number
    for (std::size_t i = 0; i < events_.spans.size(); ++i) {
        const HostSpan& span = events_.spans[i];
        if (span.kind != SpanKind::kOp || span.is_backward || span.sequence < 0) continue;
        Forward& latest = forward[span.sequence];
        latest.is_ambiguous |= latest.thread >= 0 && latest.thread != span.thread;
        latest.thread = span.thread;
        if (span.start_ns < latest.start_ns) continue;
        latest.start_ns = span.start_ns;
        latest.op = op_of_span_[i];
    }
    for (std::size_t i = 0; i < events_.spans.size(); ++i) {
        const HostSpan& span = events_.spans[i];
        if (span.kind != SpanKind::kOp || !span.is_backward || span.sequence < 0) continue;
        if (trace_.ops.get<&Op::forward>(op_of_span_[i]).valid()) continue;
        const auto found = forward.find(span.sequence);
        if (found == forward.end() || found->second.is_ambiguous) continue;
        if (found->second.start_ns >= span.start_ns) continue;
        trace_.ops.set<&Op::forward>(op_of_span_[i], found->second.op);
    }
}

/// The profiler's own arrows from forward ops to backward ops ("fwdbwd").
void OpRows::link_by_arrows() {
    std::unordered_map<int64_t, Id<Op>> starts;
    for (const bool wants_start : {true, false}) {
        for (const FlowEnd& flow : events_.backward_flows) {
            if (flow.is_start != wants_start) continue;
            const Id<Op> op = innermost(flow.thread, at(flow.time_ns));
            if (!op.valid()) continue;
            if (wants_start) {
                starts[flow.id] = op;
            } else if (const auto found = starts.find(flow.id);
                       found != starts.end() && found->second != op) {
                trace_.ops.set<&Op::forward>(op, found->second);
            }
        }
    }
}

void OpRows::add_calls() {
    std::vector<uint32_t> order;
    for (std::size_t i = 0; i < events_.spans.size(); ++i) {
        if (events_.spans[i].kind == SpanKind::kApi) order.push_back(static_cast<uint32_t>(i));
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return events_.spans[i].start_ns; });
    for (const uint32_t i : order) {
        const HostSpan& span = events_.spans[i];
        const Id<Op> op = innermost(span.thread, at(span.start_ns));
        trace_.apis.append({.name = span.name,
                            .thread = thread_rows_[static_cast<std::size_t>(span.thread)],
                            .op = op,
                            .correlation = span.correlation,
                            .start_ns = at(span.start_ns),
                            .end_ns = at(span.end_ns)});
        if (span.correlation >= 0) op_of_correlation_.try_emplace(span.correlation, op);
    }
    for (const FlowEnd& flow : events_.launch_flows) {
        if (!flow.is_start) continue;
        const Id<Op> op = innermost(flow.thread, at(flow.time_ns));
        if (op.valid()) op_of_correlation_.try_emplace(flow.id, op);
    }
}

/// In the order of their ops.
void OpRows::add_collectives() {
    std::vector<const CollectiveEvent*> order;
    for (const CollectiveEvent& event : events_.collectives) order.push_back(&event);
    std::ranges::sort(order, {},
                      [&](const CollectiveEvent* event) { return op_of_span_[event->span]; });
    for (const CollectiveEvent* event : order) {
        Collective row = event->collective;
        row.op = op_of_span_[event->span];
        row.communicator = row_of(event->communicator);
        row.start_ns = trace_.ops.get<&Op::start_ns>(row.op);
        row.end_ns = trace_.ops.get<&Op::end_ns>(row.op);
        trace_.collectives.append(row);
    }
}

Id<Communicator> OpRows::row_of(const Communicator& communicator) {
    const auto [known, is_new] = communicators_.try_emplace(communicator.name.value);
    if (is_new) known->second = trace_.communicators.append(communicator);
    return known->second;
}

Id<Op> OpRows::op_of(const DeviceWork& work) const {
    if (const auto found = op_of_correlation_.find(work.correlation);
        found != op_of_correlation_.end() && found->second.valid()) {
        return found->second;
    }
    const auto found = op_of_external_id_.find(work.external_id);
    return found == op_of_external_id_.end() ? Id<Op>() : found->second;
}

void OpRows::add_device_work() {
    std::vector<const DeviceWork*> order;
    for (const DeviceWork& work : events_.work) order.push_back(&work);
    std::ranges::stable_sort(order, {}, &DeviceWork::start_ns);
    for (const DeviceWork* work : order) {
        const Id<Stream> stream = stream_row(work->device, work->stream);
        if (work->kind == WorkKind::kKernel) {
            trace_.kernels.append({.name = work->name,
                                   .stream = stream,
                                   .op = op_of(*work),
                                   .correlation = work->correlation,
                                   .start_ns = at(work->start_ns),
                                   .end_ns = at(work->end_ns),
                                   .grid_x = work->grid[0],
                                   .grid_y = work->grid[1],
                                   .grid_z = work->grid[2],
                                   .block_x = work->block[0],
                                   .block_y = work->block[1],
                                   .block_z = work->block[2],
                                   .registers_per_thread = work->registers_per_thread,
                                   .shared_memory_bytes = std::clamp<int64_t>(
                                       work->shared_memory_bytes, 0, int64_t{1} << 30)});
            link_collective(trace_, Id<Kernel>(trace_.kernels.size() - 1));
            continue;
        }
        const std::string_view kind = copy_kind(*work, trace_.text(work->name));
        trace_.memcpys.append({.kind = trace_.strings.intern(kind),
                               .stream = stream,
                               .op = op_of(*work),
                               .correlation = work->correlation,
                               .start_ns = at(work->start_ns),
                               .end_ns = at(work->end_ns),
                               .size_bytes = std::min(work->size_bytes, int64_t{1} << 44)});
    }
}

Id<Op> OpRows::innermost(int32_t thread, int64_t time_ns) const {
    const SpanTree& spans = tree(thread);
    const int32_t node = spans.innermost(time_ns);
    return node < 0 ? Id<Op>() : op_of_span_[spans.at(node).item];
}

Id<Device> OpRows::device_row(int64_t device) {
    const auto [known, is_new] = devices_.try_emplace(device);
    if (is_new) {
        const std::string name = device == kHost ? "cpu" : fmt::format("cuda:{}", device);
        known->second = trace_.devices.append({.name = trace_.strings.intern(name)});
    }
    return known->second;
}

Id<Stream> OpRows::stream_row(int64_t device, int64_t stream) {
    const auto [known, is_new] = streams_.try_emplace({device, stream});
    if (is_new) {
        known->second = trace_.streams.append({.device = device_row(device), .handle = stream});
    }
    return known->second;
}

}  // namespace profiler::kineto
