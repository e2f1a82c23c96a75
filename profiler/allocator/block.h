#pragma once

#include "profiler/allocator/free_index.h"

#include <cstdint>
#include <vector>

/// Blocks: the parts that a segment is cut into.
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

}  // namespace profiler
