#pragma once

#include "profiler/capture/torch_adapter/activity_records.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

/// Finds the kernels and copies that wait for work of another stream. The order of launches,
/// recorded events and waits gives the rows of `stream_wait`.
///
///     stream A   kernel 1   record e                 ──►   kernel 2 waits for kernel 1
///     stream B                         wait e   kernel 2
///
/// Correlation ids are the order: they count the calls of a process.
namespace profiler {

class StreamOrder {
public:
    explicit StreamOrder(Trace& trace) : trace_(trace) {}

    /// A kernel or a copy.
    struct Launch {
        uint32_t correlation = 0;
        uint32_t stream = 0;  // CUPTI's number
        Id<Kernel> kernel;
        Id<Memcpy> memcpy;
    };
    /// Adds the rows of what happened since the last call.
    void add(std::span<const Launch> launches, std::span<const EventRecord> events,
             std::span<const StreamWaitRecord> waits);

private:
    /// By stream, the last of its launches that have ended for certain.
    using Ended = std::unordered_map<uint32_t, Launch>;
    struct StreamState {
        std::optional<Launch> last;
        Ended awaited;  // by its launches so far
        Ended pending;  // for the next one to wait for
    };

    void launch(const Launch& launch);
    void record(const EventRecord& event);
    void wait(const StreamWaitRecord& wait);

    Trace& trace_;
    std::unordered_map<uint32_t, StreamState> streams_;
    std::unordered_map<uint64_t, Ended> recordings_;
};

}  // namespace profiler
