#pragma once

#include "profiler/allocator/block.h"
#include "profiler/allocator/driver.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

/// PyTorch 2.11's native CUDA caching allocator, rule for rule, without a GPU.
///
/// Segments come from a `Driver` and are cut into blocks; a freed block stays and is given out
/// again on its own stream (docs/allocator.md tells the policy and its sources).
///
///     segment  |  allocated  | free |  allocated  |      free      |
///              ^ block <-> block <-> block <-> block               neighbours merge when free
///
/// A free block is in the index of its half pool and stream. Half pools are the small and large
/// half of the default pool, then of each private pool (graph capture, MemPool).
namespace profiler {

struct AllocationRequest {
    int64_t size_bytes = 0;  // > 0; torch never asks for nothing
    int64_t stream = 0;      // CUDA's handle
    int64_t pool = 0;        // 0 = default; others as begin_pool named them
};

/// The counters of torch.cuda.memory_stats, at one moment.
struct MemoryUse {
    int64_t allocated_bytes = 0;       // blocks of tensors
    int64_t active_bytes = 0;          // and of those freed that other streams may still read
    int64_t requested_bytes = 0;       // of active blocks, before rounding
    int64_t reserved_bytes = 0;        // all segments
    int64_t inactive_split_bytes = 0;  // free parts of cut segments; not of expandable ones
};

struct OutOfMemory {
    int64_t requested_bytes = 0;
    int64_t asked_bytes = 0;  // of the driver: the segment that did not fit
    int64_t free_bytes = 0;   // of the device or the limit, whichever is less
    MemoryUse use;
};

struct SimulatorOptions {
    AllocatorSettings settings;
    std::optional<int64_t> memory_limit_bytes;  // reserved bytes may not exceed it
};

class Simulator {
public:
    /// `driver` must outlive the simulator. settings.memory_fraction is of the limit when there is
    /// one, else of the driver's device.
    Simulator(const SimulatorOptions& options, Driver& driver);

    // ---- what programs do ---------------------------------------------------------------------

    /// A block of at least the size, or none: out_of_memory() then says why.
    std::optional<BlockHandle> allocate(const AllocationRequest& request);
    /// As `allocate`, but a new segment is taken whatever is free: the end of a retry that a
    /// recording shows (the policy does not search again after it has released what was cached).
    std::optional<BlockHandle> allocate_new_segment(const AllocationRequest& request);
    /// Frees now, or, when record_stream named other streams, once those have got there.
    void free(BlockHandle block);
    void record_stream(BlockHandle block, int64_t stream);
    /// The GPU has done all work of `stream` so far; the next allocate notices.
    void finish_stream_work(int64_t stream);
    void empty_cache();

    /// Between begin and end, events are not looked at and nothing is retried (a graph may be
    /// captured). A pool made by begin_pool is given back by release_pool, as often as begun;
    /// its segments go with the next release of cached blocks.
    void begin_pool(int64_t pool);
    void end_pool(int64_t pool);
    void release_pool(int64_t pool);
    void set_no_split(int64_t pool);    // MemPool(no_split=True)
    void set_use_on_oom(int64_t pool);  // MemPool(use_on_oom=True)

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
    /// Starts from these segments; to be called before anything else. Expandable segments of one
    /// stream and half pool are taken as parts of one reservation, which begins with the first of
    /// them (one without bytes marks where address space begins that is not mapped).
    void load(std::span<const RecordedSegment> segments);

    // ---- what can be asked --------------------------------------------------------------------

    const Block& block(BlockHandle handle) const { return blocks_[handle]; }
    std::size_t num_blocks() const { return blocks_.size(); }  // handles below it; some unused
    const MemoryUse& use() const { return use_; }
    const MemoryUse& peak() const { return peak_; }  // each counter's own maximum
    void reset_peak() { peak_ = use_; }              // torch's reset_peak_memory_stats
    const OutOfMemory& out_of_memory() const { return out_of_memory_; }
    int64_t num_segments() const { return num_segments_; }  // expandable ones count as one each
    int64_t num_retries() const { return num_retries_; }
    const AllocatorSettings& settings() const { return settings_; }

    /// Segments and their blocks as a snapshot lists them.
    std::vector<RecordedSegment> segments() const;

    /// What happened beside the calls, in order, since it was last taken: segment events, and frees
    /// that an event or a release completed. The blocks of the latter once more as handles.
    std::vector<RecordedEvent> take_events() { return std::exchange(events_, {}); }
    std::vector<BlockHandle> take_completed() { return std::exchange(completed_, {}); }
    bool has_events() const { return !events_.empty(); }

private:
    struct HalfPool {
        std::size_t pool = 0;  // index into pools_
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
    struct Reservation {
        int64_t address = 0;
        int64_t size_bytes = 0;
        int64_t page_bytes = 0;
    };
    struct StreamUse {
        uint32_t stream = 0;
        bool in_capture = false;
    };
    struct StreamEvent {
        BlockHandle block = kNoBlock;
        bool is_done = false;
    };
    /// A request after rounding.
    struct Search {
        int64_t size_bytes = 0;
        int64_t segment_bytes = 0;
        uint32_t half_pool = 0;
        uint32_t stream = 0;
        bool expandable = false;
    };

    // simulator.cpp: allocation and free
    Search make_search(const AllocationRequest& request);
    BlockHandle take_free_block(const Search& search);
    FreeIndex::Place find_free_place(const Search& search) const;
    BlockHandle obtain_block(Search& search);
    BlockHandle take_from_overflow_pools(Search& search);
    BlockHandle allocate_segment(const Search& search);
    bool is_over_limit(int64_t more_bytes) const;
    bool should_split(const Block& block, const Search& search) const;
    BlockHandle place(BlockHandle block, const Search& search, int64_t requested_bytes);
    void begin_free(BlockHandle block);
    void finish_free(BlockHandle block);
    int64_t absorb(BlockHandle block, BlockHandle neighbour);
    void insert_free(BlockHandle block);
    void erase_free(const Block& block);
    void report_out_of_memory(int64_t requested_bytes, int64_t asked_bytes);
    void raise_peaks();
    void log(RecordedAction action, const Block& block, int64_t size_bytes);
    FreeIndex& free_index(const Block& block) { return half_pools_[block.pool].free[block.stream]; }
    uint32_t stream_index(int64_t stream);
    std::size_t pool_index(int64_t pool);
    std::size_t add_pool(int64_t id);
    std::vector<uint32_t> streams_by_value() const;

    // simulator_streams.cpp: other streams, captures, private pools
    void insert_events(BlockHandle block);
    void insert_deferred_events();
    void process_events();
    void pass_event(BlockHandle block);
    void complete_unasked(BlockHandle block);
    void synchronize_events();
    bool is_capturing() const { return !captures_.empty(); }

    // simulator_release.cpp: giving segments back
    void release_cached_blocks();
    void release_half_pool(uint32_t half_pool);
    bool release_available_blocks(const Search& search);
    void collect_garbage();
    void release_segment(BlockHandle block);

    // simulator_expandable.cpp: segments that grow
    BlockHandle allocate_expandable(const Search& search);
    BlockHandle find_expandable(const Search& search);
    BlockHandle reserve(const Search& search);
    bool map_block(BlockHandle block, int64_t size_bytes);
    void unmap_block(BlockHandle block);
    void release_reservation(BlockHandle block);
    FreeIndex::Place best_expandable(const FreeIndex& index, FreeIndex::Place place) const;
    int64_t expandable_size(const Block& block) const;

    // simulator_state.cpp: from and to the segments of a snapshot
    BlockHandle load_segment(const RecordedSegment& segment, int32_t reservation);
    void load_reservation(std::span<const RecordedSegment> segments);
    BlockHandle add_unmapped(const RecordedSegment& like, int32_t reservation, int64_t address,
                             int64_t size_bytes);
    RecordedSegment segment_from(BlockHandle head) const;

    AllocatorSettings settings_;
    std::optional<int64_t> limit_bytes_;
    Driver* driver_;

    BlockArena blocks_;
    std::vector<Pool> pools_;
    std::vector<HalfPool> half_pools_;  // small and large of pools_[0], of pools_[1], ...
    std::vector<int64_t> streams_;      // index -> CUDA's handle
    std::vector<Reservation> reservations_;

    std::unordered_map<BlockHandle, std::vector<StreamUse>> stream_uses_;
    std::vector<std::deque<StreamEvent>> stream_events_;  // by stream index, oldest first
    int64_t num_stream_events_ = 0;
    std::vector<BlockHandle> deferred_;  // freed during a capture while other streams used them
    std::vector<BlockHandle> held_;      // freed, completion comes from a recording
    std::vector<int64_t> captures_;      // pools between begin and end, oldest first

    MemoryUse use_;
    MemoryUse peak_;
    OutOfMemory out_of_memory_;
    int64_t num_segments_ = 0;
    int64_t num_retries_ = 0;
    std::vector<RecordedEvent> events_;
    std::vector<BlockHandle> completed_;
};

}  // namespace profiler
