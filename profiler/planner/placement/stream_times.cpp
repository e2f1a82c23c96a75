#include "profiler/planner/placement/stream_times.h"

#include "models/config/parallel.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/collective_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace profiler {
namespace {

std::vector<int64_t> ranks_of(const Trace& trace, const Collective& row) {
    std::vector<int64_t> ranks;
    int64_t num_ranks = trace.run().world_size;
    if (row.communicator.valid()) {
        const Communicator group = trace.communicators[row.communicator];
        ranks = ranks_in(trace.text(group.ranks));
        if (group.num_ranks > 0) num_ranks = group.num_ranks;
    }
    if (ranks.empty()) {  // not told: as if they stood side by side
        ranks.resize(
            static_cast<std::size_t>(std::clamp<int64_t>(num_ranks, 1, models::kMostRanks)));
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    const auto peer = static_cast<std::size_t>(row.peer);
    if (row.peer < 0 || peer >= ranks.size()) return ranks;
    return {trace.run().rank, ranks[peer]};
}

/// The times of the parts of a kernel: what sends, and all else.
struct Parts {
    std::array<double, 2> times_ns{};
    bool leaves_node = false;
};

int64_t key_of(const Launch& launch) {
    return launch.kernel.valid() ? 2 * int64_t{launch.kernel.value}
                                 : 2 * int64_t{launch.memcpy.value} + 1;
}

}  // namespace

std::unordered_map<int64_t, Transfer> transfers_of(const Trace& trace,
                                                   const CommunicationModel& model) {
    std::unordered_map<int64_t, Parts> parts;
    const std::vector<Id<Kernel>> kernels = kernels_of_collectives(trace);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        const Id<Kernel> kernel = kernels[i];
        if (!kernel.valid()) continue;
        const RankPlaces places = places_of(ranks_of(trace, row), model.gpus_per_node());
        Parts& of_kernel = parts[kernel.value];
        of_kernel.times_ns[row.kind == CollectiveKind::kSend ? 0 : 1] +=
            model.time_ns(row.kind, std::max(row.in_bytes, row.out_bytes), places);
        of_kernel.leaves_node |= places.num_nodes > 1;
    }
    std::unordered_map<int64_t, Transfer> transfers;
    for (const auto& [kernel, of_kernel] : parts) {
        transfers[kernel] = {.time_ns = std::ranges::max(of_kernel.times_ns),
                             .leaves_node = of_kernel.leaves_node};
    }
    return transfers;
}

std::vector<Launch> launches_in_order(const Trace& trace) {
    std::vector<std::pair<int64_t, Launch>> launches;
    for (const Id<Kernel> kernel : trace.kernels.ids()) {
        launches.push_back({trace.kernels.get<&Kernel::correlation>(kernel), {.kernel = kernel}});
    }
    for (const Id<Memcpy> memcpy : trace.memcpys.ids()) {
        launches.push_back({trace.memcpys.get<&Memcpy::correlation>(memcpy), {.memcpy = memcpy}});
    }
    std::ranges::stable_sort(launches, {}, &std::pair<int64_t, Launch>::first);
    std::vector<Launch> in_order;
    for (const auto& [correlation, launch] : launches) in_order.push_back(launch);
    return in_order;
}

bool is_host_copy(const Trace& trace, Id<Memcpy> copy) {
    const std::string_view kind = trace.text(trace.memcpys.get<&Memcpy::kind>(copy));
    return kind == "host_to_device" || kind == "device_to_host";
}

StreamTimes::StreamTimes(Trace& trace, const KernelModel& kernels,
                         const std::optional<CommunicationModel>& model)
    : trace_(trace), kernels_(kernels) {
    if (model) transfers_ = transfers_of(trace, *model);
    computing_ = computing_stream();
    for (const StreamWait row : trace.stream_waits.rows()) {
        const Launch waits{row.kernel, row.memcpy};
        const Launch awaited{row.awaited_kernel, row.awaited_memcpy};
        awaited_[key_of(waits)].push_back(key_of(awaited));
        end_ns_[key_of(awaited)] = 0;
    }
}

Id<Stream> StreamTimes::computing_stream() const {
    std::vector<int64_t> counts(trace_.streams.size(), 0);
    for (const Id<Kernel> id : trace_.kernels.ids()) {
        const Id<Stream> stream = trace_.kernels.get<&Kernel::stream>(id);
        if (stream.valid() && !is_transfer(id)) ++counts[stream.index()];
    }
    if (counts.empty()) return {};
    const auto most = std::ranges::max_element(counts);
    return Id<Stream>(static_cast<std::size_t>(most - counts.begin()));
}

Id<Stream> StreamTimes::stream_of(const Launch& launch) const {
    return launch.kernel.valid() ? trace_.kernels.get<&Kernel::stream>(launch.kernel)
                                 : trace_.memcpys.get<&Memcpy::stream>(launch.memcpy);
}

bool StreamTimes::is_computing(const Launch& launch) const {
    const Id<Stream> stream = stream_of(launch);
    return !stream.valid() || stream == computing_;
}

void StreamTimes::end_step() {
    for (const auto& [stream, free_ns] : free_ns_) now_ns_ = std::max(now_ns_, free_ns);
    launched_ns_ = now_ns_;
}

double StreamTimes::ready_ns(const Launch& launch) const {
    double ready_ns = now_ns_;
    if (!is_computing(launch)) {
        const auto free = free_ns_.find(stream_of(launch).value);
        ready_ns = std::max(launched_ns_, free != free_ns_.end() ? free->second : 0);
    }
    const auto awaited = awaited_.find(key_of(launch));
    if (awaited == awaited_.end()) return ready_ns;
    for (const int64_t key : awaited->second) ready_ns = std::max(ready_ns, end_ns_.at(key));
    return ready_ns;
}

std::pair<StreamTimes::Wire*, double> StreamTimes::wire_of(const Launch& launch) {
    if (launch.kernel.valid()) {
        const auto transfer = transfers_.find(launch.kernel.value);
        if (transfer == transfers_.end()) return {nullptr, 0};
        return {&wires_[transfer->second.leaves_node ? 1 : 0], transfer->second.time_ns};
    }
    if (!is_host_copy(trace_, launch.memcpy)) return {nullptr, 0};
    const Memcpy copy = trace_.memcpys[launch.memcpy];
    return {&host_wires_[trace_.text(copy.kind) == "device_to_host" ? 0 : 1],
            kernels_.time_ns({.kernel = KernelKind::kHostCopy, .moved_bytes = copy.size_bytes})};
}

StreamTimes::Span StreamTimes::place(const Launch& launch, double duration_ns) {
    double start_ns = ready_ns(launch);
    if (const auto [wire, time_ns] = wire_of(launch); wire != nullptr) {
        duration_ns = time_ns;
        start_ns = wire->take(start_ns, duration_ns);
    }
    const Span span{start_ns, start_ns + duration_ns};
    if (launch.kernel.valid()) {
        trace_.kernels.set<&Kernel::start_ns>(launch.kernel, whole_ns(span.start_ns));
        trace_.kernels.set<&Kernel::end_ns>(launch.kernel, whole_ns(span.end_ns));
    } else {
        trace_.memcpys.set<&Memcpy::start_ns>(launch.memcpy, whole_ns(span.start_ns));
        trace_.memcpys.set<&Memcpy::end_ns>(launch.memcpy, whole_ns(span.end_ns));
    }
    if (is_computing(launch)) {
        now_ns_ = span.end_ns;
    } else {
        free_ns_[stream_of(launch).value] = span.end_ns;
    }
    const auto awaited = end_ns_.find(key_of(launch));
    if (awaited != end_ns_.end()) awaited->second = span.end_ns;
    return span;
}

double StreamTimes::Wire::take(double ready_ns, double duration_ns) {
    auto next = std::ranges::upper_bound(spans_, ready_ns, {}, &Span::end_ns);
    for (; next != spans_.end() && next->start_ns < ready_ns + duration_ns; ++next) {
        ready_ns = std::max(ready_ns, next->end_ns);
    }
    spans_.insert(next, {ready_ns, ready_ns + duration_ns});
    return ready_ns;
}

}  // namespace profiler
