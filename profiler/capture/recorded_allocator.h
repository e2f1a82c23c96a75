#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>

namespace c10 {
struct StorageImpl;
}

namespace profiler {

/// One live block of an allocator that is recorded.
struct Block {
    uint64_t magic = 0;
    int64_t size_bytes = 0;  // as asked for
    Block* previous = nullptr;
    Block* next = nullptr;
    int32_t allocation = -1;  // row in the trace's allocation table; -1 while not recorded
    int32_t reserved = 0;
};

/// Hears of every allocation and free, in their total order, under the allocator's lock.
class AllocationListener {
public:
    virtual ~AllocationListener() = default;
    virtual void on_alloc(Block& block) = 0;
    virtual void on_free(const Block& block) = 0;
};

/// An allocator that knows its live blocks and tells a listener of each allocation and free.
class RecordedAllocator : public c10::Allocator {
public:
    /// The block behind a storage; null when another allocator made it.
    virtual Block* block_of(const c10::StorageImpl& storage) const = 0;
    /// Where the block's data is; 0 on a device that has no memory.
    virtual int64_t address_of(const Block& block) const = 0;

    void set_listener(AllocationListener* listener) {
        const std::lock_guard lock(mutex_);
        listener_ = listener;
    }

    /// Calls `visit(Block&)` for every live block in the order of allocation, under the lock.
    template <typename Visit>
    void for_each_live(Visit&& visit) {
        const std::lock_guard lock(mutex_);
        for (Block* block = oldest_; block; block = block->next) visit(*block);
    }

protected:
    // Under mutex_.
    void link(Block& block) {
        block.previous = newest_;
        (newest_ ? newest_->next : oldest_) = &block;
        newest_ = &block;
    }
    void unlink(Block& block) {
        (block.previous ? block.previous->next : oldest_) = block.next;
        (block.next ? block.next->previous : newest_) = block.previous;
    }

    mutable std::mutex mutex_;
    AllocationListener* listener_ = nullptr;

private:
    Block* oldest_ = nullptr;
    Block* newest_ = nullptr;
};

}  // namespace profiler
