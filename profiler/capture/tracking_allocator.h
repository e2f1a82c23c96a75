#pragma once

#include "profiler/capture/torch_adapter/allocation_source.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"
#include "profiler/capture/torch_adapter/torch_stacks.h"

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace profiler {

/// What the tracking allocator keeps about one live block.
struct BlockHeader {
    uint64_t magic = 0;
    int64_t size_bytes = 0;  // as requested
    BlockHeader* previous = nullptr;
    BlockHeader* next = nullptr;
    int32_t allocation = -1;  // row in the trace's allocation table; -1 while not recorded
    int32_t reserved = 0;
    GatheredStack stack;  // of the request; null: it was not wanted
};

/// A CPU allocator for torch that knows every block. It counts exactly, tells a listener about each
/// allocation and free, and can fail at a limit as a GPU would.
///
///     | BlockHeader (64 B) | data, as torch sees it ... |     data = context: oneDNN needs that
///
/// Blocks come from the allocator that was installed before, so that its accounting goes on.
class TrackingAllocator final : public c10::Allocator, public AllocationSource {
public:
    static constexpr int64_t kHeaderBytes = 64;  // keeps torch's alignment of the data

    /// Installs the process's tracking allocator on first use. It is never removed: live blocks
    /// keep their deleter.
    static TrackingAllocator& instance();

    void start(AllocationListener& listener) override;
    void stop() override;
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override;

    /// The block of a storage; null if another allocator made it.
    BlockHeader* block_of(const c10::StorageImpl& storage) const;
    /// Address of the block's data.
    int64_t address_of(const BlockHeader& block) const;

    /// From here on each block that is worth it remembers the call stack of its request, where
    /// `wants` says so; null: none does. Also before a recording, whose first allocations are the
    /// blocks that are live then. A recording replaces `wants` by its own, and ends with none.
    void gather_stacks(WantsStack wants) { stack_is_wanted_ = wants; }

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

    void set_limit(int64_t limit_bytes) {  // -1: none
        const std::lock_guard lock(mutex_);
        limit_bytes_ = limit_bytes;
    }
    void reset_peak() {
        const std::lock_guard lock(mutex_);
        peak_bytes_ = allocated_bytes_;
    }

    int64_t allocated_bytes() const {
        const std::lock_guard lock(mutex_);
        return allocated_bytes_;
    }
    int64_t peak_bytes() const {
        const std::lock_guard lock(mutex_);
        return peak_bytes_;
    }
    /// The last failed allocation. A size that is not known is -1.
    OutOfMemoryDetail last_out_of_memory() const {
        const std::lock_guard lock(mutex_);
        return last_out_of_memory_;
    }

    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
    void copy_data(void* destination, const void* source, size_t count) const override {
        default_copy_data(destination, source, count);
    }

private:
    TrackingAllocator();
    static void free_block(void* data);
    GatheredStack gather_stack(int64_t size_bytes) const;
    // Under mutex_.
    void link(BlockHeader& block);
    void unlink(BlockHeader& block);
    void refuse_over_limit(int64_t size_bytes);
    c10::DataPtr ask_upstream(int64_t size_bytes);
    void note_out_of_memory(int64_t requested_bytes, int64_t free_bytes);  // free -1: not known

    c10::Allocator* upstream_;
    std::atomic<WantsStack> stack_is_wanted_{nullptr};
    mutable std::mutex mutex_;
    AllocationListener* listener_ = nullptr;
    BlockHeader* oldest_ = nullptr;
    BlockHeader* newest_ = nullptr;
    int64_t limit_bytes_ = -1;
    int64_t allocated_bytes_ = 0;
    int64_t peak_bytes_ = 0;
    OutOfMemoryDetail last_out_of_memory_;
};

}  // namespace profiler
