#pragma once

#include "profiler/capture/torch_adapter/torch_stacks.h"
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

/// A request that an allocator could not serve, as it stood at that moment. -1: not known.
struct Refusal {
    /// As the op asked. torch's CUDA allocator tells a refused request only after its rounding: up
    /// to 512 bytes, or further with its setting roundup_power2_divisions.
    int64_t requested_bytes = -1;
    int64_t allocated_bytes = -1;  // in blocks in use
    int64_t reserved_bytes = -1;   // in segments
    int64_t free_bytes = -1;       // what the device had left below the limit
    int64_t limit_bytes = -1;      // the most that the allocator may reserve
};

/// Whether a request that this thread makes now shall bring its call stack. Needs no lock, and may
/// be asked after the listener is gone.
using WantsStack = bool (*)();

/// Is told about every allocation and free, in their total order, under the allocator's lock.
class AllocationListener {
public:
    virtual ~AllocationListener() = default;
    virtual void on_alloc(BlockHeader& block, int64_t address) = 0;
    virtual void on_free(const BlockHeader& block) = 0;
    virtual void on_out_of_memory(const Refusal& refusal) = 0;
    /// What an allocator asks on the thread of a request, before it takes its lock: it gathers the
    /// stack there, as that waits for Python's lock. Null: no request shall bring one.
    virtual WantsStack wants_stack() const { return nullptr; }
    /// For an allocator that writes its own rows. While the result lives, the caller must not take
    /// the allocator's lock.
    virtual LockedMoment next_action() = 0;
    /// The call stack of the request that the action served. Under the lock of `moment`, after the
    /// action's rows.
    virtual void add_stack(GatheredStack /*stack*/, const AllocatorMoment& /*moment*/) {}
    /// The action was a refusal. Under the lock of `moment`, besides the allocator's own row.
    virtual void add_failure(const Refusal& refusal, const AllocatorMoment& moment) = 0;
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
