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

/// The moment of the next action, and the lock under which its rows are written.
struct LockedMoment {
    std::unique_lock<std::mutex> lock;
    AllocatorMoment moment;
};

/// Hears of every allocation and free, in their total order, under the allocator's lock.
class AllocationListener {
public:
    virtual ~AllocationListener() = default;
    virtual void on_alloc(BlockHeader& block, int64_t address) = 0;
    virtual void on_free(const BlockHeader& block) = 0;
    /// For an allocator that writes its own rows. Nothing that takes the allocator's lock may
    /// happen while the result lives.
    virtual LockedMoment next_action() = 0;
    /// The same lock alone, for what is learned of an action afterwards.
    virtual std::unique_lock<std::mutex> lock_rows() = 0;
};

/// Whose allocations a recorder turns into rows.
class AllocationSource {
public:
    virtual ~AllocationSource() = default;
    /// Tells `listener` of the blocks that are live already, in order, and of everything after.
    virtual void start(AllocationListener& listener) = 0;
    virtual void stop() = 0;
    /// The recorded allocation behind a storage; none where there is none. Under the lock of
    /// next_action().
    virtual Id<Allocation> allocation_of(const c10::StorageImpl& storage) const = 0;
};

}  // namespace profiler
