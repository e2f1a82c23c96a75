#include "profiler/capture/cuda/stream_order.h"

#include <algorithm>
#include <functional>

namespace profiler {
namespace {

struct Call {
    uint32_t correlation = 0;
    std::function<void()> happen;
};

}  // namespace

void StreamOrder::add(std::span<const Launch> launches, std::span<const EventRecord> events,
                      std::span<const StreamWaitRecord> waits) {
    if (events.empty() && waits.empty() && recordings_.empty()) return;  // nobody recorded them
    std::vector<Call> calls;
    calls.reserve(launches.size() + events.size() + waits.size());
    for (const Launch& one : launches) {
        calls.push_back({one.correlation, [this, &one] { launch(one); }});
    }
    for (const EventRecord& one : events) {
        calls.push_back({one.correlation, [this, &one] { record(one); }});
    }
    for (const StreamWaitRecord& one : waits) {
        calls.push_back({one.correlation, [this, &one] { wait(one); }});
    }
    std::ranges::stable_sort(calls, {}, &Call::correlation);
    for (const Call& call : calls) call.happen();
}

void StreamOrder::launch(const Launch& launch) {
    StreamState& state = streams_[launch.stream];
    for (const auto& [stream, awaited] : state.pending) {
        trace_.stream_waits.append({.kernel = launch.kernel,
                                    .memcpy = launch.memcpy,
                                    .awaited_kernel = awaited.kernel,
                                    .awaited_memcpy = awaited.memcpy});
        state.awaited[stream] = awaited;
    }
    state.pending.clear();
    state.last = launch;
}

/// The event covers pending waits of the stream, too, even if the stream gets no more work.
void StreamOrder::record(const EventRecord& event) {
    const StreamState& state = streams_[event.stream];
    Ended& ended = recordings_[event.recording];
    ended = state.pending;
    if (state.last) ended[event.stream] = *state.last;
}

void StreamOrder::wait(const StreamWaitRecord& wait) {
    const auto recording = recordings_.find(wait.recording);
    if (recording == recordings_.end()) return;  // it was recorded before we began
    StreamState& state = streams_[wait.stream];
    const auto has_as_new = [](const Ended& ended, uint32_t stream, const Launch& launch) {
        const auto known = ended.find(stream);
        return known != ended.end() && known->second.correlation >= launch.correlation;
    };
    for (const auto& [stream, launch] : recording->second) {
        if (stream == wait.stream || has_as_new(state.awaited, stream, launch)) continue;
        if (!has_as_new(state.pending, stream, launch)) state.pending[stream] = launch;
    }
}

}  // namespace profiler
