#pragma once

#include "profiler/capture/recorded_allocator.h"

namespace profiler {

/// The allocator of torch's Meta device: counts and tells, but there is no memory.
///
/// A storage's size, and the moment it is made and dropped, are those of the same program on CUDA;
/// sizes of 0 bytes, which CUDA's allocator never sees, are not blocks.
class MetaAllocator final : public RecordedAllocator {
public:
    /// Installs the process's Meta allocator on first use. It is never removed: live blocks keep
    /// their deleter.
    static MetaAllocator& instance();

    BlockHeader* block_of(const c10::StorageImpl& storage) const override;
    int64_t address_of(const BlockHeader&) const override { return 0; }

    int64_t allocated_bytes() const {
        const std::lock_guard lock(mutex_);
        return allocated_bytes_;
    }

    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
    void copy_data(void*, const void*, size_t) const override {}

private:
    MetaAllocator();
    static void free_block(void* context);

    int64_t allocated_bytes_ = 0;
};

}  // namespace profiler
