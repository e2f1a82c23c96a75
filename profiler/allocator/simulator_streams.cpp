#include "profiler/allocator/simulator.h"

#include <algorithm>

/// Memory that other streams use, captures of CUDA graphs, and private pools.
///
///     free(b)  ──► no other stream used b ──────────────────────────► free
///        │
///        ├──► an event on each stream that did ──► all have passed ─► free (seen by an allocate)
///        └──► within a capture: deferred until none is under way, then as above
namespace profiler {

void Simulator::record_stream(BlockHandle handle, int64_t stream) {
    const uint32_t index = stream_index(stream);
    Block& block = blocks_[handle];
    if (index == block.stream) return;  // its own stream needs no synchronization
    auto& uses = stream_uses_[handle];
    const bool is_known = std::any_of(uses.begin(), uses.end(),
                                      [&](const StreamUse& use) { return use.stream == index; });
    if (!is_known) uses.push_back({index, is_capturing()});
    block.has_stream_uses = true;
}

/// One event on each stream that used the block.
void Simulator::insert_events(BlockHandle handle) {
    Block& block = blocks_[handle];
    for (const StreamUse& use : stream_uses_[handle]) {
        stream_events_[use.stream].push_back({handle, false});
        ++block.pending_events;
        ++num_stream_events_;
    }
    stream_uses_.erase(handle);
    block.has_stream_uses = false;
}

/// What was freed during a capture. Streams that used a block only inside the capture are not
/// waited for: the graph orders them.
void Simulator::insert_deferred_events() {
    for (const BlockHandle handle : std::exchange(deferred_, {})) {
        std::erase_if(stream_uses_[handle], [](const StreamUse& use) { return use.in_capture; });
        insert_events(handle);
        if (blocks_[handle].pending_events == 0) complete_unasked(handle);
    }
}

void Simulator::finish_stream_work(int64_t stream) {
    for (StreamEvent& event : stream_events_[stream_index(stream)]) event.is_done = true;
}

void Simulator::pass_event(BlockHandle handle) {
    --num_stream_events_;
    if (--blocks_[handle].pending_events == 0) complete_unasked(handle);
}

/// Finishes a free in the course of another call.
void Simulator::complete_unasked(BlockHandle handle) {
    completed_.push_back(handle);
    log(RecordedAction::kFreeCompleted, blocks_[handle], blocks_[handle].requested_bytes);
    finish_free(handle);
}

/// First in, first out per stream. The order across streams is that of a hash map in torch; it
/// decides nothing but the order of the completions.
void Simulator::process_events() {
    if (!deferred_.empty()) insert_deferred_events();
    if (num_stream_events_ == 0) return;
    for (auto& events : stream_events_) {
        while (!events.empty() && events.front().is_done) {
            pass_event(events.front().block);
            events.pop_front();
        }
    }
}

/// Waits for everything outstanding, as a release of cached blocks does first.
void Simulator::synchronize_events() {
    insert_deferred_events();
    for (auto& events : stream_events_) {
        for (const StreamEvent& event : events) pass_event(event.block);
        events.clear();
    }
    for (const BlockHandle handle : std::exchange(held_, {})) complete_unasked(handle);
}

void Simulator::begin_pool(int64_t pool) {
    const auto is_it = [&](const Pool& known) { return known.id == pool && !known.is_erased; };
    const auto known = std::find_if(pools_.begin(), pools_.end(), is_it);
    if (known == pools_.end()) {
        add_pool(pool);
    } else {
        ++known->use_count;
    }
    captures_.push_back(pool);
}

void Simulator::end_pool(int64_t pool) { std::erase(captures_, pool); }

void Simulator::release_pool(int64_t pool) { --pools_[pool_index(pool)].use_count; }

void Simulator::set_no_split(int64_t pool) { pools_[pool_index(pool)].no_split = true; }

void Simulator::set_use_on_oom(int64_t pool) { pools_[pool_index(pool)].use_on_oom = true; }

}  // namespace profiler
