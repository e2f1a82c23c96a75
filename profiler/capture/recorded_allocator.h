#pragma once

#include "profiler/capture/allocation_source.h"

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>

namespace profiler {

/// What a recorded allocator keeps about one live block.
struct BlockHeader {
    uint64_t magic = 0;
    int64_t size_bytes = 0;  // as requested
    BlockHeader* previous = nullptr;
    BlockHeader* next = nullptr;
    int32_t allocation = -1;  // row in the trace's allocation table; -1 while not recorded
    int32_t reserved = 0;
};

/// An allocator that knows its live blocks and tells a listener about each allocation and free.
class RecordedAllocator : public c10::Allocator, public AllocationSource {
public:
    void start(AllocationListener& listener) override {
        set_listener(&listener);
        for_each_live([&](BlockHeader& block) { listener.on_alloc(block, address_of(block)); });
    }
    void stop() override {
        set_listener(nullptr);
        for_each_live([](BlockHeader& block) { block.allocation = -1; });
    }
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override {
        const BlockHeader* const block = block_of(storage);
        if (!block || block->allocation < 0) return {};
        return Id<Allocation>(static_cast<std::size_t>(block->allocation));
    }

    /// The block of a storage; null if another allocator made it.
    virtual BlockHeader* block_of(const c10::StorageImpl& storage) const = 0;
    /// Address of the block's data.
    virtual int64_t address_of(const BlockHeader& block) const = 0;

    void set_listener(AllocationListener* listener) {
        const std::lock_guard lock(mutex_);
        listener_ = listener;
    }
    /// For a process that was forked while another thread may have held the lock (`hold`).
    void drop_listener() { listener_ = nullptr; }

    /// Holds all threads that allocate or free, for a fork.
    std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

    /// Calls `visit(BlockHeader&)` for every live block in the order of allocation, under the lock.
    template <typename Visit>
    void for_each_live(Visit&& visit) {
        const std::lock_guard lock(mutex_);
        for (BlockHeader* block = oldest_; block; block = block->next) visit(*block);
    }

protected:
    // Under mutex_.
    void link(BlockHeader& block) {
        block.previous = newest_;
        (newest_ ? newest_->next : oldest_) = &block;
        newest_ = &block;
    }
    void unlink(BlockHeader& block) {
        (block.previous ? block.previous->next : oldest_) = block.next;
        (block.next ? block.next->previous : newest_) = block.previous;
    }

    mutable std::mutex mutex_;
    AllocationListener* listener_ = nullptr;

private:
    BlockHeader* oldest_ = nullptr;
    BlockHeader* newest_ = nullptr;
};

}  // namespace profiler
