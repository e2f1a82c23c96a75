#pragma once

#include "profiler/allocator/heap.h"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

/// Frees that must wait because other streams use the memory.
///
///     free(b)  ──► no other stream used b ──────────────────────────► free
///        │
///        ├──► an event on each stream that did ──► all have passed ─► free (seen by an allocate)
///        └──► within a capture: deferred until it ends, then as above
namespace profiler {

class PendingFrees {
public:
    /// record_stream: `stream` uses the block, so its free waits for that stream.
    void record_use(Heap& heap, BlockHandle block, int64_t stream);
    /// Frees a block that other streams used.
    void free(Heap& heap, BlockHandle block);
    /// The GPU has done all work of `stream` so far; process() notices.
    void finish_stream_work(Heap& heap, int64_t stream);

    /// A free whose completion is known from a recording.
    void hold(BlockHandle block) { held_.push_back(block); }
    void stop_holding(BlockHandle block);

    /// process_events: completes the frees whose events have passed.
    void process(Heap& heap) {
        if (!deferred_.empty() || num_events_ > 0) process_waiting(heap);
    }
    /// Waits for all outstanding work, as torch does before it releases cached blocks.
    void synchronize(Heap& heap);

    /// The blocks whose frees were completed since the last call, by process() or synchronize().
    std::vector<BlockHandle> take_completed() { return std::exchange(completed_, {}); }

private:
    struct StreamUse {
        uint32_t stream = 0;
        bool in_capture = false;
    };
    struct StreamEvent {
        BlockHandle block = kNoBlock;
        bool is_done = false;
    };

    std::deque<StreamEvent>& events_of(uint32_t stream);
    void process_waiting(Heap& heap);
    void insert_events(Heap& heap, BlockHandle block);
    void insert_deferred_events(Heap& heap);
    void pass_event(Heap& heap, BlockHandle block);
    void complete(Heap& heap, BlockHandle block);

    std::unordered_map<BlockHandle, std::vector<StreamUse>> uses_;
    std::vector<std::deque<StreamEvent>> events_;  // by stream index, oldest first
    int64_t num_events_ = 0;
    std::vector<BlockHandle> deferred_;  // freed during a capture
    std::vector<BlockHandle> held_;
    std::vector<BlockHandle> completed_;
};

}  // namespace profiler
