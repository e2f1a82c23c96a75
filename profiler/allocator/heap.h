#pragma once

#include "profiler/allocator/block.h"
#include "profiler/allocator/driver.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

/// What the allocator holds of one device: segments cut into blocks, pools, and counters. The
/// functions here are the steps that every rule of the policy is made of.
///
///     segment  |  allocated  | free |  allocated  |      free      |
///              ^ block <-> block <-> block <-> block               neighbours merge when free
///
/// A free block is in the index of its half pool and stream. Half pools are the small and the large
/// half of the default pool, then of each private pool (graph capture, MemPool).
namespace profiler {

/// The counters of torch.cuda.memory_stats, at one moment.
struct MemoryUse {
    int64_t allocated_bytes = 0;       // blocks of tensors
    int64_t active_bytes = 0;          // allocated, plus freed blocks that other streams still read
    int64_t requested_bytes = 0;       // of active blocks, before rounding
    int64_t reserved_bytes = 0;        // all segments
    int64_t inactive_split_bytes = 0;  // free parts of split segments, except expandable ones
};

struct HalfPool {
    std::size_t pool = 0;  // index into Heap::pools
    bool is_small = false;
    std::vector<FreeIndex> free;                           // by stream index
    std::vector<std::map<int64_t, BlockHandle>> unmapped;  // by stream index, by address
    int64_t num_searches = 0;                              // the clock of block ages
};

struct Pool {
    int64_t id = 0;
    int64_t use_count = 1;
    int64_t reserved_bytes = 0;
    bool is_erased = false;
    bool no_split = false;
    bool use_on_oom = false;
    bool is_freeable() const { return id != 0 && use_count == 0 && !is_erased; }
};

/// Address space of one expandable segment.
struct Reservation {
    int64_t address = 0;
    int64_t size_bytes = 0;
    int64_t page_bytes = 0;
};

/// A request after rounding.
struct BlockSearch {
    int64_t size_bytes = 0;
    uint32_t half_pool = 0;
    uint32_t stream = 0;
    bool expandable = false;
};

/// Copies share the driver, which must outlive them.
struct Heap {
    Heap(const AllocatorSettings& settings, std::optional<int64_t> limit_bytes, Driver& driver);

    AllocatorSettings settings;
    std::optional<int64_t> limit_bytes;  // on reserved bytes
    Driver* driver;

    BlockArena blocks;
    std::vector<Pool> pools;           // the default pool first
    std::vector<HalfPool> half_pools;  // small and large half of pools[0], of pools[1], ...
    std::vector<int64_t> streams;      // index -> CUDA's handle
    std::vector<int64_t> open_pools;   // ids of pools between begin and end, oldest first
    std::vector<Reservation> reservations;

    MemoryUse use;
    MemoryUse peak;  // the maximum of each counter
    int64_t num_segments = 0;
    std::vector<RecordedEvent> events;  // what the calls caused beside their own result

    // ---- free blocks --------------------------------------------------------------------------

    FreeIndex& free_index(const Block& block) { return half_pools[block.pool].free[block.stream]; }
    void insert_free(BlockHandle block);
    void erase_free(const Block& block) {
        free_index(block).erase(block.size_bytes, block.address);
    }
    /// try_merge_blocks: `block` takes over a neighbour of its kind. Returns the bytes gained.
    int64_t absorb(BlockHandle block, BlockHandle neighbour) {
        if (neighbour == kNoBlock || blocks[neighbour].use != blocks[block].use) return 0;
        return merge(block, neighbour);
    }
    int64_t merge(BlockHandle block, BlockHandle neighbour);
    /// free_block: an active block merges with its free neighbours and returns to the index.
    void finish_free(BlockHandle block);

    // ---- segments -----------------------------------------------------------------------------

    /// A plain segment as one free block that is not in the index yet. kNoBlock when the driver
    /// has no memory left.
    BlockHandle add_segment(const BlockSearch& search, int64_t size_bytes);
    /// Returns the segment of an unsplit free block to the driver.
    void release_segment(BlockHandle block);
    /// Counts memory taken from the driver, or given back when negative.
    void count_reserved(uint32_t half_pool, int64_t bytes);
    bool is_over_limit(int64_t more_bytes) const {
        return limit_bytes && use.reserved_bytes + more_bytes > *limit_bytes;
    }

    // ---- pools and streams --------------------------------------------------------------------

    uint32_t stream_index(int64_t stream) {
        for (uint32_t i = 0; i < streams.size(); ++i) {  // programs use a handful of streams
            if (streams[i] == stream) return i;
        }
        return add_stream(stream);
    }
    std::size_t pool_index(int64_t id) {
        if (id == 0) return 0;
        for (std::size_t i = 0; i < pools.size(); ++i) {
            if (pools[i].id == id && !pools[i].is_erased) return i;
        }
        return add_pool(id);
    }
    uint32_t half_pool_index(int64_t pool, bool is_small) {
        return static_cast<uint32_t>(2 * pool_index(pool)) + (is_small ? 0U : 1U);
    }
    Pool& pool_of(uint32_t half_pool) { return pools[half_pools[half_pool].pool]; }
    std::size_t add_pool(int64_t id);
    uint32_t add_stream(int64_t stream);
    /// Stream indices in the order in which torch walks the blocks of several streams: by handle.
    std::vector<uint32_t> streams_by_handle() const;
    bool is_capturing() const { return !open_pools.empty(); }

    // ---- counters and events ------------------------------------------------------------------

    void raise_peaks();
    void log(RecordedAction action, const Block& block, int64_t size_bytes);
};

}  // namespace profiler
