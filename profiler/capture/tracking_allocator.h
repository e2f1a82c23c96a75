#pragma once

#include "profiler/capture/out_of_memory.h"
#include "profiler/capture/recorded_allocator.h"

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>

namespace profiler {

/// A CPU allocator for torch that knows every block. It counts exactly, tells a listener, and can
/// fail at a limit as a GPU would.
///
///     | BlockHeader (64 B) | data, as torch sees it ... |     data = context: oneDNN needs that
///
/// Blocks come from the allocator that was installed before, so that its accounting goes on.
class TrackingAllocator final : public RecordedAllocator {
public:
    static constexpr int64_t kHeaderBytes = 64;  // keeps torch's alignment of the data

    /// Installs the process's tracking allocator on first use. It is never removed: live blocks
    /// keep their deleter.
    static TrackingAllocator& instance();

    BlockHeader* block_of(const c10::StorageImpl& storage) const override;
    int64_t address_of(const BlockHeader& block) const override;

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
    void refuse_over_limit(int64_t size_bytes);
    c10::DataPtr ask_upstream(int64_t size_bytes);
    void note_out_of_memory(int64_t requested_bytes, int64_t free_bytes);

    c10::Allocator* upstream_;
    int64_t limit_bytes_ = -1;
    int64_t allocated_bytes_ = 0;
    int64_t peak_bytes_ = 0;
    OutOfMemoryDetail last_out_of_memory_;
};

}  // namespace profiler
