#include "profiler/allocator/pending_frees.h"

#include <algorithm>
#include <iterator>

namespace profiler {

void PendingFrees::record_use(Heap& heap, BlockHandle handle, int64_t stream) {
    const uint32_t index = heap.stream_index(stream);
    Block& block = heap.blocks[handle];
    if (index == block.stream) return;  // its own stream needs no synchronization
    auto& uses = uses_[handle];
    const bool is_known = std::any_of(uses.begin(), uses.end(),
                                      [&](const StreamUse& use) { return use.stream == index; });
    if (!is_known) uses.push_back({index, heap.is_capturing()});
    block.has_stream_uses = true;
}

void PendingFrees::free(Heap& heap, BlockHandle block) {
    if (heap.is_capturing()) {
        deferred_.push_back(block);
    } else {
        insert_events(heap, block);
    }
}

void PendingFrees::finish_stream_work(Heap& heap, int64_t stream) {
    for (StreamEvent& event : events_of(heap.stream_index(stream))) event.is_done = true;
}

void PendingFrees::stop_holding(BlockHandle block) {
    // Most frees are completed at once, so the search starts at the back.
    const auto found = std::find(held_.rbegin(), held_.rend(), block);
    if (found != held_.rend()) held_.erase(std::next(found).base());
}

std::deque<PendingFrees::StreamEvent>& PendingFrees::events_of(uint32_t stream) {
    if (stream >= events_.size()) events_.resize(stream + 1);
    return events_[stream];
}

/// One event on each stream that used the block.
void PendingFrees::insert_events(Heap& heap, BlockHandle handle) {
    Block& block = heap.blocks[handle];
    for (const StreamUse& use : uses_[handle]) {
        events_of(use.stream).push_back({handle, false});
        ++block.pending_events;
        ++num_events_;
    }
    uses_.erase(handle);
    block.has_stream_uses = false;
}

/// Blocks freed during a capture. Streams that used a block only inside the capture are not waited
/// for: the graph orders them.
void PendingFrees::insert_deferred_events(Heap& heap) {
    for (const BlockHandle handle : std::exchange(deferred_, {})) {
        std::erase_if(uses_[handle], [](const StreamUse& use) { return use.in_capture; });
        insert_events(heap, handle);
        if (heap.blocks[handle].pending_events == 0) complete(heap, handle);
    }
}

/// First in, first out per stream. Across streams torch follows the order of a hash map; it decides
/// only the order of the completions.
void PendingFrees::process_waiting(Heap& heap) {
    insert_deferred_events(heap);
    for (auto& events : events_) {
        while (!events.empty() && events.front().is_done) {
            pass_event(heap, events.front().block);
            events.pop_front();
        }
    }
}

void PendingFrees::synchronize(Heap& heap) {
    insert_deferred_events(heap);
    for (auto& events : events_) {
        for (const StreamEvent& event : events) pass_event(heap, event.block);
        events.clear();
    }
    for (const BlockHandle block : std::exchange(held_, {})) complete(heap, block);
}

void PendingFrees::pass_event(Heap& heap, BlockHandle block) {
    --num_events_;
    if (--heap.blocks[block].pending_events == 0) complete(heap, block);
}

void PendingFrees::complete(Heap& heap, BlockHandle handle) {
    completed_.push_back(handle);
    const Block& block = heap.blocks[handle];
    heap.log(RecordedAction::kFreeCompleted, block, block.requested_bytes);
    heap.finish_free(handle);
}

}  // namespace profiler
