#pragma once

#include "profiler/capture/torch_adapter/allocation_source.h"
#include "profiler/capture/torch_adapter/allocator_version.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/allocator_rows.h"

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// torch's CUDA caching allocator as a source of allocations: the only file that calls it.
///
///     trace tracker        every action, with the requested bytes: the rows
///     memory reporter      right after it, on the same thread: the block's size, torch's totals
///     snapshot             the segments and blocks when recording starts
///     memory history       asks for the call stack of a request before the allocator's lock
///
/// The tracker runs under the allocator's lock, on the thread that allocates, and takes the
/// recorder's lock. Nothing under the recorder's lock allocates, so the two cannot deadlock.
namespace profiler {

struct CudaMemory {
    int64_t allocated_bytes = 0;
    int64_t reserved_bytes = 0;
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
};

/// Which of the allocator's actions become rows.
enum class AllocatorActions : uint8_t {
    kAll,
    kRequests  // allocations and frees, without the segments that serve them
};

class CudaAllocations final : public AllocationSource {
public:
    /// Needs an initialized CUDA with `device`, and the native backend.
    CudaAllocations(Trace& trace, StreamRows& streams, c10::DeviceIndex device,
                    AllocatorActions actions = AllocatorActions::kAll);
    ~CudaAllocations() override;

    void start(AllocationListener& listener) override;
    void stop() override;
    /// Whether torch reports the sizes of blocks from here on, as it does after start(). A profiler
    /// of the program needs the place of the reporter on this thread. Without reports a block has
    /// the size that was asked for.
    void set_reported(bool wanted);
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override;

    const AllocatorRowCounts& counts() const { return rows_.counts(); }
    /// How often torch's allocated or reserved bytes differed from those of the rows.
    int64_t differing_totals() const { return differing_totals_; }

    // The allocator itself, whether it is recorded or not.
    /// "native", the only one whose actions can be recorded: at the first snapshot, another one
    /// throws an error of its own. Needs no driver.
    static std::string backend();
    static CudaMemory memory(c10::DeviceIndex device);
    static void reset_peak(c10::DeviceIndex device);
    static std::vector<RecordedSegment> segments(c10::DeviceIndex device);
    static std::string settings_text();
    /// The workspaces of cuBLAS and cuBLASLt, one per handle and stream, by name. Each thread has
    /// its own handle: this thread runs forward, autograd's thread runs backward.
    static std::vector<std::pair<std::string, at::Tensor>> workspaces(c10::DeviceIndex device);
    /// Gives back the workspaces and the cached segments.
    static void release_cache();
    /// Limits the reserved bytes to `bytes` of the device's `total_bytes`; -1: no limit.
    static void set_limit(c10::DeviceIndex device, int64_t bytes, int64_t total_bytes);
    /// The last failed allocation since watch_out_of_memory(). Under a limit, the free bytes are
    /// those below the limit.
    static OutOfMemoryDetail last_out_of_memory();
    static void watch_out_of_memory();

private:
    class BlockSizeReporter;

    using TraceEntry = c10::cuda::CUDACachingAllocator::TraceEntry;
    static void on_any_entry(const TraceEntry& entry);
    void see_request(bool was_asked);
    void on_entry(const TraceEntry& entry, GatheredStack stack);
    void begin_history();
    void end_history();
    void on_report(const void* address, int64_t size_bytes, int64_t allocated_bytes,
                   int64_t reserved_bytes);

    AllocatorRows rows_;
    const c10::DeviceIndex device_;
    const AllocatorActions actions_;
    AllocationListener* listener_ = nullptr;
    std::map<MempoolId, int64_t> pools_;  // under the listener's lock
    int64_t differing_totals_ = 0;
    /// The number of torch's history that is on for our stacks; 0: none is. A program may take it
    /// over, and keeps it then.
    std::atomic<int64_t> history_ = 0;
    std::unique_ptr<c10::DebugInfoGuard> reporter_;
};

}  // namespace profiler
