#pragma once

#include "profiler/allocator/heap.h"
#include "profiler/allocator/pending_frees.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// PyTorch's native CUDA caching allocator, rule for rule, without a GPU. docs/allocator.md
/// states the policy and its sources.
///
///     Simulator   malloc and free: search, split, what to try when nothing fits
///       Heap                    blocks, pools, counters; segments from a Driver, or that grow
///                               page by page
///       pending_frees.h         frees that wait for other streams
namespace profiler {

struct AllocationRequest {
    int64_t size_bytes = 0;  // > 0; torch never asks for nothing
    int64_t stream = 0;      // CUDA's handle
    int64_t pool = 0;        // 0 = default; others as begin_pool named them
};

struct OutOfMemory {
    int64_t requested_bytes = 0;
    int64_t asked_bytes = 0;  // of the driver: the segment that did not fit
    int64_t free_bytes = 0;   // of the device or below the limit, whichever is less
    MemoryUse use;
};

struct SimulatorOptions {
    AllocatorSettings settings;
    std::optional<int64_t> memory_limit_bytes;  // reserved bytes may not exceed it
    TieOrder tie_order = TieOrder::kAddress;
};

class Simulator {
public:
    /// `driver` must outlive the simulator. settings.memory_fraction is a share of the limit if
    /// there is one, else of the driver's device.
    Simulator(const SimulatorOptions& options, Driver& driver);

    // ---- what programs do ---------------------------------------------------------------------

    /// A block of at least the size, or none: out_of_memory() then says why.
    std::optional<BlockHandle> allocate(const AllocationRequest& request);
    /// As `allocate`, but takes a new segment even if a free block fits. A recording can show this
    /// as the end of a retry: torch does not search again after it has released cached blocks.
    std::optional<BlockHandle> allocate_new_segment(const AllocationRequest& request);
    /// Frees now, or, when record_stream named other streams, once they have finished their work.
    void free(BlockHandle block);
    void record_stream(BlockHandle block, int64_t stream) {
        pending_.record_use(heap_, block, stream);
    }
    /// The GPU has done all work of `stream` so far; the next allocate notices.
    void finish_stream_work(int64_t stream) { pending_.finish_stream_work(heap_, stream); }
    void empty_cache();

    /// Between begin and end no event is looked at and no allocation is retried (a graph may be
    /// captured). A pool is given back when release_pool was called as often as begin_pool; its
    /// segments go with the next release of cached blocks.
    void begin_pool(int64_t pool);
    void end_pool(int64_t pool) { std::erase(heap_.open_pools, pool); }
    void release_pool(int64_t pool) { --heap_.pools[heap_.pool_index(pool)].use_count; }
    /// MemPool(no_split=True)
    void set_no_split(int64_t pool) { heap_.pools[heap_.pool_index(pool)].no_split = true; }
    /// MemPool(use_on_oom=True)
    void set_use_on_oom(int64_t pool) { heap_.pools[heap_.pool_index(pool)].use_on_oom = true; }

    // ---- what recordings know better ----------------------------------------------------------

    /// The two halves of a free whose completion is known from a recording.
    void request_free(BlockHandle block);
    void complete_free(BlockHandle block);
    /// Returns this wholly free segment to the driver; false when it is not one.
    bool free_segment(int64_t address);
    /// The free block that `allocate` would take; kNoBlock when it would ask the driver.
    BlockHandle find_free_block(const AllocationRequest& request);
    /// Moves the boundary between a block in use and the free block behind it.
    void grow_into_next(BlockHandle block, int64_t bytes);
    /// Starts from the segments of a snapshot. Call it before anything else.
    void load(std::span<const RecordedSegment> segments);

    // ---- what can be asked --------------------------------------------------------------------

    const Block& block(BlockHandle handle) const { return heap_.blocks[handle]; }
    std::size_t num_blocks() const { return heap_.blocks.size(); }  // some handles are unused
    const MemoryUse& use() const { return heap_.use; }
    const MemoryUse& peak() const { return heap_.peak; }  // the maximum of each counter
    void reset_peak() { heap_.peak = heap_.use; }         // torch's reset_peak_memory_stats
    const OutOfMemory& out_of_memory() const { return out_of_memory_; }
    int64_t num_segments() const { return heap_.num_segments; }  // an expandable one counts once
    int64_t num_retries() const { return num_retries_; }
    const AllocatorSettings& settings() const { return heap_.settings; }

    /// Segments and their blocks as a snapshot lists them.
    std::vector<RecordedSegment> segments() const;

    /// What happened beside the calls since the last take, in order: segment events, and frees that
    /// an event or a release completed.
    std::vector<RecordedEvent> take_events() { return std::exchange(heap_.events, {}); }
    /// The blocks of those completed frees.
    std::vector<BlockHandle> take_completed() { return pending_.take_completed(); }
    bool has_events() const { return !heap_.events.empty(); }

private:
    BlockSearch make_search(const AllocationRequest& request);
    BlockHandle take_free_block(const BlockSearch& search);
    FreeIndex::Place find_free_place(const BlockSearch& search) const;
    BlockHandle obtain_block(BlockSearch& search);
    BlockHandle take_from_overflow_pools(BlockSearch& search);
    BlockHandle allocate_segment(const BlockSearch& search);
    bool should_split(const Block& block, const BlockSearch& search) const;
    BlockHandle place(BlockHandle block, const BlockSearch& search, int64_t requested_bytes);
    void begin_free(BlockHandle block);
    void report_out_of_memory(int64_t requested_bytes, int64_t asked_bytes);
    bool collects_garbage() const { return heap_.limit_bytes && heap_.settings.gc_threshold > 0; }

    Heap heap_;
    PendingFrees pending_;
    OutOfMemory out_of_memory_;
    int64_t num_retries_ = 0;
};

}  // namespace profiler
