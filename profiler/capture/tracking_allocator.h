#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>

namespace c10 {
struct StorageImpl;
}

namespace profiler {

/// One live block, stored in the 64 bytes before its data.
struct Block {
    uint64_t magic = 0;
    int64_t size_bytes = 0;  // as asked for
    Block* previous = nullptr;
    Block* next = nullptr;
    int32_t allocation = -1;  // row in the trace's allocation table; -1 while not recorded
    int32_t reserved = 0;

    const void* data() const { return reinterpret_cast<const char*>(this) + kHeaderBytes; }
    static constexpr int64_t kHeaderBytes = 64;  // keeps torch's alignment of the data
};

/// Hears of every allocation and free, in their total order, under the allocator's lock.
class AllocationListener {
public:
    virtual ~AllocationListener() = default;
    virtual void on_alloc(Block& block) = 0;
    virtual void on_free(const Block& block) = 0;
};

/// torch's CPU allocator with every block known: counts exactly, tells a listener, and can refuse
/// to go over a limit as a card would.
///
///     | Block (64 B) | data, what torch sees ... |     data = context: oneDNN asks for that
///
/// Blocks come from the allocator that was installed before, so its own accounting goes on.
class TrackingAllocator final : public c10::Allocator {
public:
    struct OutOfMemory {
        int64_t requested_bytes = -1;
        int64_t free_bytes = -1;
    };

    /// Installs the process's tracking allocator on first use. It is never removed: live blocks
    /// keep their deleter.
    static TrackingAllocator& instance();

    /// The block behind a storage; null when another allocator made it.
    static Block* block_of(const c10::StorageImpl& storage);

    void set_limit(int64_t limit_bytes) {  // -1: none
        const std::lock_guard lock(mutex_);
        limit_bytes_ = limit_bytes;
    }
    void set_listener(AllocationListener* listener);
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
    /// The last refusal; sizes are -1 where they are not known.
    OutOfMemory last_out_of_memory() const {
        const std::lock_guard lock(mutex_);
        return last_out_of_memory_;
    }

    /// Calls `visit(Block&)` for every live block in the order of allocation, under the lock.
    template <typename Visit>
    void for_each_live(Visit&& visit) {
        const std::lock_guard lock(mutex_);
        for (Block* block = oldest_; block; block = block->next) visit(*block);
    }

    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
    void copy_data(void* destination, const void* source, size_t count) const override {
        default_copy_data(destination, source, count);
    }

private:
    TrackingAllocator();
    static void free_block(void* data);
    void refuse_over_limit(int64_t size_bytes);
    c10::DataPtr ask_upstream(int64_t size_bytes);
    void link(Block& block);
    void unlink(Block& block);

    c10::Allocator* upstream_;
    mutable std::mutex mutex_;
    Block* oldest_ = nullptr;
    Block* newest_ = nullptr;
    AllocationListener* listener_ = nullptr;
    int64_t limit_bytes_ = -1;
    int64_t allocated_bytes_ = 0;
    int64_t peak_bytes_ = 0;
    OutOfMemory last_out_of_memory_;
};

}  // namespace profiler
