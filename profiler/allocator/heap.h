#pragma once

#include "profiler/allocator/driver.h"
#include "profiler/allocator/free_index.h"
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

/// The state of a block. Free and unmapped blocks merge with neighbours of the same state.
enum class BlockUse : uint8_t {
    kFree,       // in the free index of its pool and stream
    kAllocated,  // holds a tensor
    kPending,    // freed, but other streams may still read it
    kUnmapped,   // address space of an expandable segment without memory
    kNone        // no block: the handle is free for reuse
};

struct alignas(64) Block {  // one cache line, since neighbours lie anywhere
    int64_t address = 0;
    int64_t size_bytes = 0;
    int64_t requested_bytes = 0;  // of an allocated or pending block
    int64_t searches_when_freed =
        0;  // the pool's counter then; gives the age for garbage collection
    BlockHandle previous = kNoBlock;  // neighbours in its segment
    BlockHandle next = kNoBlock;
    uint32_t pool = 0;            // index of the half pool, see Heap
    uint32_t stream = 0;          // index of the stream
    int32_t reservation = -1;     // of an expandable segment; -1 = in a plain segment
    uint32_t pending_events = 0;  // events that have not passed yet
    BlockUse use = BlockUse::kNone;
    bool has_stream_uses = false;  // record_stream named another stream
    uint32_t order = 0;  // among free blocks of one size the lowest goes first; see TieOrder

    bool is_split() const { return previous != kNoBlock || next != kNoBlock; }
    bool is_expandable() const { return reservation >= 0; }
    /// Neither in use nor waiting to become free.
    bool is_allocatable() const { return use == BlockUse::kFree || use == BlockUse::kUnmapped; }
    bool is_mapped() const { return use != BlockUse::kUnmapped; }
    int64_t end() const { return address + size_bytes; }
};

static_assert(sizeof(Block) == 64);

/// All blocks of a device. A handle is valid until its block is removed; then it is used again.
class BlockArena {
public:
    Block& operator[](BlockHandle handle) { return blocks_[handle]; }
    const Block& operator[](BlockHandle handle) const { return blocks_[handle]; }
    std::size_t size() const { return blocks_.size(); }  // handles, including those with kNone

    BlockHandle add(const Block& block) {
        if (spare_.empty()) {
            blocks_.push_back(block);
            return static_cast<BlockHandle>(blocks_.size() - 1);
        }
        const BlockHandle handle = spare_.back();
        spare_.pop_back();
        blocks_[handle] = block;
        return handle;
    }
    void remove(BlockHandle handle) {
        blocks_[handle].use = BlockUse::kNone;
        spare_.push_back(handle);
    }

    /// Puts `handle` between two neighbours; each may be kNoBlock.
    void link(BlockHandle previous, BlockHandle handle, BlockHandle next) {
        blocks_[handle].previous = previous;
        blocks_[handle].next = next;
        if (previous != kNoBlock) blocks_[previous].next = handle;
        if (next != kNoBlock) blocks_[next].previous = handle;
    }

private:
    std::vector<Block> blocks_;
    std::vector<BlockHandle> spare_;
};

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
    Heap(const AllocatorSettings& settings, std::optional<int64_t> limit_bytes, TieOrder tie_order,
         Driver& driver);

    AllocatorSettings settings;
    std::optional<int64_t> limit_bytes;  // on reserved bytes
    TieOrder tie_order;
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
    uint32_t num_orders = 0;            // that were given to blocks
    std::vector<RecordedEvent> events;  // what the calls caused beside their own result

    // ---- free blocks --------------------------------------------------------------------------

    FreeIndex& free_index(const Block& block) { return half_pools[block.pool].free[block.stream]; }
    void insert_free(BlockHandle block);
    void erase_free(const Block& block) {
        free_index(block).erase(
            FreeIndex::Entry{block.size_bytes, block.address, kNoBlock, block.order});
    }
    /// Block::order of the first block of new memory.
    uint32_t order_of_new_segment() { return tie_order == TieOrder::kAddress ? 0 : ++num_orders; }
    /// Block::order of a block that is made from a part of another one.
    uint32_t order_of_part(const Block& whole) {
        return tie_order == TieOrder::kBlockAge ? ++num_orders : whole.order;
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

// ---- expandable segments ----------------------------------------------------------------------
//
// Address space is reserved once per half pool and stream, and memory is mapped into it page by
// page as blocks need it.
//
//     reservation  | allocated |   free   |     unmapped      ...  to 9/8 of the device's memory |
//                  |<- page ->|<- page ->|                     map grows the free block before it

/// From `place`, the first block that fits, forward while the next one could grow to less: best
/// fit counts the address space behind a block.
FreeIndex::Place best_expandable_place(const Heap& heap, const FreeIndex& index,
                                       FreeIndex::Place place);

/// try_allocate_expandable_block: a free block of at least the size, taken out of the index, or
/// kNoBlock when the device is full. Memory that was mapped before it was full stays mapped, free.
BlockHandle allocate_expandable(Heap& heap, const BlockSearch& search);

/// Unmaps the whole pages inside a free block; what is left before and after them stays free.
/// Then gives the address space back if nothing in it is mapped any more.
void release_pages(Heap& heap, BlockHandle block);

/// Adds address space from `address` on; nothing in it is mapped yet. Returns its number, which
/// blocks name in Block::reservation.
int32_t add_reservation(Heap& heap, int64_t address, bool is_small);
BlockHandle add_unmapped(Heap& heap, const Block& block);

/// The size of every reservation: one alone can hold the whole device even when it is fragmented.
int64_t reservation_bytes(const Heap& heap, bool is_small);

}  // namespace profiler
