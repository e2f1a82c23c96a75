#pragma once

#include "profiler/planner/step/communication.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

/// When kernels and copies run that were launched in order on several streams.
///
///     start = max(end of the stream's previous work, end of the awaited work, launch)
///
/// One stream computes: the one with the most kernels that are not NCCL's. Its kernels come as fast
/// as the schedule says; others begin when the host has launched them. Kernels of two streams do
/// not slow each other down, but transfers over the same wire take turns: the links of a node are
/// one wire, the network is another, and the link to the host has one in each direction. So a copy
/// beside the computation is free until something waits for it.
namespace profiler {

// What each kernel of NCCL moves, and for how long.

struct Transfer {
    double time_ns = 0;
    bool leaves_node = false;
};

/// By kernel. A kernel carries its own collective and the communicator's next collectives without a
/// kernel: grouped sends and receives, which run both ways at once.
std::unordered_map<int64_t, Transfer> transfers_of(const Trace& trace,
                                                   const CommunicationModel& model);

/// A kernel or a copy.
struct Launch {
    Id<Kernel> kernel;
    Id<Memcpy> memcpy;
};
/// Whether a copy is one between the GPU and the host.
bool is_host_copy(const Trace& trace, Id<Memcpy> copy);
/// All of the trace, as the host launched them.
std::vector<Launch> launches_in_order(const Trace& trace);

class StreamTimes {
public:
    /// Without a model of communication transfers take no time. Borrows trace and kernels.
    StreamTimes(Trace& trace, const KernelModel& kernels,
                const std::optional<CommunicationModel>& model);

    double now_ns() const { return now_ns_; }  // of the stream that computes
    void pass(double time_ns) { now_ns_ += time_ns; }
    bool is_transfer(Id<Kernel> kernel) const { return transfers_.contains(kernel.value); }
    bool is_computing(const Launch& launch) const;

    /// A step ends when all that was launched has ended, and the host goes on from there.
    void end_step();
    /// The host takes so long to launch what follows.
    void launch_takes(double time_ns) { launched_ns_ += time_ns; }
    struct Span {
        double start_ns = 0, end_ns = 0;
    };
    /// A kernel or copy gets these times. A transfer and a copy between GPU and host last as long
    /// as they are modelled.
    Span place(const Launch& launch, double duration_ns);

private:
    /// Transfers that do not overlap: each takes the first time that is free.
    class Wire {
    public:
        double take(double ready_ns, double duration_ns);

    private:
        std::vector<Span> spans_;  // by time
    };

    Id<Stream> computing_stream() const;
    Id<Stream> stream_of(const Launch& launch) const;
    /// The wire that it takes, and for how long; null: none.
    std::pair<Wire*, double> wire_of(const Launch& launch);
    double ready_ns(const Launch& launch) const;

    Trace& trace_;
    std::unordered_map<int64_t, Transfer> transfers_;            // by kernel
    std::unordered_map<int64_t, std::vector<int64_t>> awaited_;  // keys, by key of what waits
    std::unordered_map<int64_t, double> end_ns_;                 // by key of what is awaited
    std::unordered_map<int64_t, double> free_ns_;                // of streams that do not compute
    const KernelModel& kernels_;
    std::array<Wire, 2> wires_;       // of the node, of the network
    std::array<Wire, 2> host_wires_;  // to the host, from it
    Id<Stream> computing_;
    double now_ns_ = 1;  // events before the first step are at 0
    double launched_ns_ = 1;
};

}  // namespace profiler
