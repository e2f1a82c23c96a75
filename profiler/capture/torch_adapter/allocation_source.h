#pragma once

#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <mutex>

namespace c10 {
struct StorageImpl;
}

namespace profiler {

struct BlockHeader;

/// The moment of the next action, with the lock under which its rows are written.
struct LockedMoment {
    std::unique_lock<std::mutex> lock;
    AllocatorMoment moment;
};

/// Is told about every allocation and free, in their total order, under the allocator's lock.
class AllocationListener {
public:
    virtual ~AllocationListener() = default;
    virtual void on_alloc(BlockHeader& block, int64_t address) = 0;
    virtual void on_free(const BlockHeader& block) = 0;
    /// The allocator refuses a block, because only `free_bytes` are left (-1: not known).
    virtual void on_out_of_memory(int64_t requested_bytes, int64_t free_bytes) = 0;
    /// For an allocator that writes its own rows. While the result lives, the caller must not take
    /// the allocator's lock.
    virtual LockedMoment next_action() = 0;
    /// The same lock alone, for facts about an action that are known only after it.
    virtual std::unique_lock<std::mutex> lock_rows() = 0;
};

/// An allocator whose actions a recorder turns into rows.
class AllocationSource {
public:
    virtual ~AllocationSource() = default;
    /// Tells `listener` about the blocks that are live already, in order, and then about each
    /// action.
    virtual void start(AllocationListener& listener) = 0;
    virtual void stop() = 0;
    /// The recorded allocation of a storage, if there is one. Call it under the lock of
    /// next_action().
    virtual Id<Allocation> allocation_of(const c10::StorageImpl& storage) const = 0;
};

}  // namespace profiler
