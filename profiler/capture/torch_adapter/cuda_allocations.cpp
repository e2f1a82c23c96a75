#include "profiler/capture/torch_adapter/cuda_allocations.h"

#include "models/observer/callback_target.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using allocator::TraceEntry;
constexpr auto kAggregate = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

/// The tracker's target. torch can attach a tracker but never detach it.
models::CallbackTarget<CudaAllocations> active;
std::atomic<int64_t> refused_bytes{-1};
std::atomic<int64_t> refused_free_bytes{-1};

/// Of the recording; null: it has no stacks.
std::atomic<WantsStack> stack_is_wanted{nullptr};

/// What torch's history asked for before the request that this thread makes.
struct AskedStack {
    bool was_asked = false;
    GatheredStack stack;  // null: it was not wanted
};
thread_local AskedStack of_request;

/// That recordings have begun in this process. They count from 1.
std::atomic<int64_t> num_histories{0};

/// The newest history when this thread's last request was served: its next one began after that.
thread_local int64_t seen_history = 0;

/// The history's way to a context of a request. It gets none: torch would keep it with the block.
std::shared_ptr<c10::GatheredContext> gather_for_request() {
    const WantsStack wants = stack_is_wanted;
    const bool is_wanted = wants != nullptr && wants();
    of_request = {.was_asked = true, .stack = is_wanted ? gather_python_stack() : nullptr};
    return nullptr;
}

RecordedAction action_of(TraceEntry::Action action) {
    switch (action) {
        case TraceEntry::ALLOC:
            return RecordedAction::kAlloc;
        case TraceEntry::FREE_REQUESTED:
            return RecordedAction::kFreeRequested;
        case TraceEntry::FREE_COMPLETED:
            return RecordedAction::kFreeCompleted;
        case TraceEntry::SEGMENT_ALLOC:
            return RecordedAction::kSegmentAlloc;
        case TraceEntry::SEGMENT_FREE:
            return RecordedAction::kSegmentFree;
        case TraceEntry::SEGMENT_MAP:
            return RecordedAction::kSegmentMap;
        case TraceEntry::SEGMENT_UNMAP:
            return RecordedAction::kSegmentUnmap;
        case TraceEntry::OOM:
            return RecordedAction::kOom;
        default:  // is_action() has left the others out
            break;
    }
    return RecordedAction::kSnapshot;
}

int64_t handle_of(void* stream) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(stream));
}

std::vector<RecordedBlock> blocks_of(const allocator::SegmentInfo& segment) {
    std::vector<RecordedBlock> blocks;
    auto address = static_cast<int64_t>(segment.address);
    for (const auto& block : segment.blocks) {
        const BlockState state = block.allocated ? BlockState::kAllocated
                                 : block.active  ? BlockState::kPendingFree
                                                 : BlockState::kInactive;
        const auto size_bytes = static_cast<int64_t>(block.size);
        blocks.push_back({.address = address,
                          .size_bytes = size_bytes,
                          .requested_bytes = static_cast<int64_t>(block.requested_size),
                          .state = state});
        address += size_bytes;
    }
    return blocks;
}

/// Numbers private pools from 1, in the order in which they occur. The default pool is 0.
int64_t number_of(std::map<MempoolId, int64_t>& pools, const MempoolId& id) {
    if (id == MempoolId{0, 0}) return 0;
    return pools.try_emplace(id, static_cast<int64_t>(pools.size()) + 1).first->second;
}

std::vector<RecordedSegment> segments_of(const allocator::SnapshotInfo& snapshot,
                                         c10::DeviceIndex device,
                                         std::map<MempoolId, int64_t>& pools) {
    std::vector<RecordedSegment> segments;
    for (const auto& segment : snapshot.segments) {
        if (segment.device != device) continue;
        segments.push_back({.address = static_cast<int64_t>(segment.address),
                            .size_bytes = static_cast<int64_t>(segment.total_size),
                            .stream = handle_of(segment.stream),
                            .pool = number_of(pools, segment.owner_private_pool_id),
                            .is_small = !segment.is_large,
                            .is_expandable = segment.is_expandable,
                            .blocks = blocks_of(segment)});
    }
    std::ranges::sort(segments, {}, &RecordedSegment::address);
    return segments;
}

/// The most that the allocator may reserve, by set_limit or by the program's own
/// torch.cuda.set_per_process_memory_fraction; -1: no limit. The tracker may ask: torch reads one
/// number, and takes no lock.
int64_t reserved_limit_bytes(c10::DeviceIndex device) {
    const double fraction = allocator::getMemoryFraction(device);
    if (fraction >= 1) return -1;
    const auto total_bytes = at::cuda::getDeviceProperties(device)->totalGlobalMem;
    return std::llround(fraction * static_cast<double>(total_bytes));
}

/// A device may have more free than a limit leaves.
Refusal refusal_of(c10::DeviceIndex device, int64_t requested_bytes, int64_t device_free_bytes,
                   const CudaMemory& memory) {
    const int64_t limit_bytes = reserved_limit_bytes(device);
    const int64_t below_limit_bytes = std::max<int64_t>(0, limit_bytes - memory.reserved_bytes);
    const bool is_limited = limit_bytes >= 0;
    return {.requested_bytes = requested_bytes,
            .allocated_bytes = memory.allocated_bytes,
            .reserved_bytes = memory.reserved_bytes,
            .free_bytes =
                is_limited ? std::min(device_free_bytes, below_limit_bytes) : device_free_bytes,
            .limit_bytes = is_limited ? limit_bytes : memory.reserved_bytes + device_free_bytes};
}

/// Called without the allocator's lock.
void on_out_of_memory(int64_t device, size_t asked_bytes, size_t, size_t device_free_bytes) {
    const auto index = static_cast<c10::DeviceIndex>(device);
    refused_bytes = static_cast<int64_t>(asked_bytes);
    refused_free_bytes = refusal_of(index, refused_bytes, static_cast<int64_t>(device_free_bytes),
                                    CudaAllocations::memory(index))
                             .free_bytes;
}

}  // namespace

/// torch tells a thread's memory profiler about each block, with its size after rounding. Autograd
/// passes thread-local state on, so that the backward pass's threads report too. torch takes what
/// it finds in this place for a ProfilerStateBase. GPUs report to it in any case; with
/// profile_memory the CPU would, too, and warn of each block that is older.
class CudaAllocations::BlockSizeReporter final : public torch::profiler::impl::ProfilerStateBase {
public:
    explicit BlockSizeReporter(c10::DeviceIndex device)
        : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(
              torch::profiler::impl::ProfilerState::Disabled, /*report_input_shapes=*/false,
              /*profile_memory=*/false)),
          device_(device) {}

    void reportMemoryUsage(void* address, int64_t size_bytes, size_t allocated_bytes,
                           size_t reserved_bytes, c10::Device device) override {
        if (!device.is_cuda() || device.index() != device_) return;
        active.with([&](CudaAllocations& allocations) {
            allocations.on_report(address, size_bytes, static_cast<int64_t>(allocated_bytes),
                                  static_cast<int64_t>(reserved_bytes));
        });
    }
    torch::profiler::impl::ActiveProfilerType profilerType() override {
        return torch::profiler::impl::ActiveProfilerType::NONE;
    }

private:
    c10::DeviceIndex device_;
};

CudaAllocations::CudaAllocations(Trace& trace, StreamRows& streams, c10::DeviceIndex device,
                                 AllocatorActions actions)
    : rows_(trace, streams), device_(device), actions_(actions) {
    [[maybe_unused]] static const bool attached = [] {
        allocator::attachAllocatorTraceTracker(&on_any_entry);
        return true;
    }();
}

CudaAllocations::~CudaAllocations() { stop(); }

void CudaAllocations::start(AllocationListener& listener) {
    listener_ = &listener;
    const std::vector<RecordedSegment> held = segments_of(take_snapshot(), device_, pools_);
    rows_.load(held, [&] { return listener.next_action().moment; });
    active.set(this);
    stack_is_wanted = listener.wants_stack();
    if (stack_is_wanted != nullptr) begin_history();
    set_reported(true);
}

void CudaAllocations::set_reported(bool wanted) {
    const auto place = c10::DebugInfoKind::PROFILER_STATE;
    if (!wanted) return reporter_.reset();
    const bool is_taken = c10::ThreadLocalDebugInfo::get(place) != nullptr;
    if (listener_ == nullptr || is_taken) return;
    reporter_ =
        std::make_unique<c10::DebugInfoGuard>(place, std::make_shared<BlockSizeReporter>(device_));
}

void CudaAllocations::stop() {
    if (listener_ == nullptr) return;
    reporter_.reset();
    end_history();
    active.set(nullptr);
    listener_ = nullptr;
}

/// A history that the program keeps is left alone: then requests bring no stacks.
void CudaAllocations::begin_history() {
    if (allocator::isHistoryEnabled()) return;
    record_history(true, &gather_for_request, allocator::RecordContext::STATE);
    history_ = seen_history = ++num_histories;
}

void CudaAllocations::end_history() {
    stack_is_wanted = nullptr;
    if (history_.exchange(0) == 0) return;
    record_history(false, nullptr, allocator::RecordContext::NEVER);
}

void CudaAllocations::on_any_entry(const TraceEntry& entry) {
    // Our own readings take snapshots, and each one is reported as an action.
    if (!is_action(entry)) return;
    AskedStack asked;
    const bool is_alloc = entry.action_ == TraceEntry::ALLOC;
    if (is_alloc) asked = std::exchange(of_request, {});
    active.with([&](CudaAllocations& allocations) {
        if (entry.device_ != allocations.device_) return;
        if (is_alloc) allocations.see_request(asked.was_asked);
        allocations.on_entry(entry, std::move(asked.stack));
    });
}

/// A request that our history did not ask tells that the program has taken the history over. The
/// first one of a thread tells nothing: it may have begun before our history.
void CudaAllocations::see_request(bool was_asked) {
    int64_t newest = num_histories;
    const bool began_after = std::exchange(seen_history, newest) == newest;
    if (began_after && !was_asked) history_.compare_exchange_strong(newest, 0);
}

void CudaAllocations::on_entry(const TraceEntry& entry, GatheredStack stack) {
    const bool is_request = entry.action_ == TraceEntry::ALLOC ||
                            entry.action_ == TraceEntry::FREE_REQUESTED ||
                            entry.action_ == TraceEntry::FREE_COMPLETED;
    if (actions_ == AllocatorActions::kRequests && !is_request) return;
    const LockedMoment locked = listener_->next_action();
    rows_.apply({.action = action_of(entry.action_),
                 .address = static_cast<int64_t>(entry.addr_),
                 .size_bytes = static_cast<int64_t>(entry.size_),
                 .stream = handle_of(entry.stream_),
                 .pool = number_of(pools_, pool_of(entry))},
                locked.moment);
    if (stack) listener_->add_stack(std::move(stack), locked.moment);
    if (entry.action_ != TraceEntry::OOM) return;
    const CudaMemory memory{.allocated_bytes = rows_.allocated_bytes(),
                            .reserved_bytes = rows_.reserved_bytes()};
    // In this entry, torch's "address" is what the device has free.
    listener_->add_failure(refusal_of(device_, static_cast<int64_t>(entry.size_),
                                      static_cast<int64_t>(entry.addr_), memory),
                           locked.moment);
}

void CudaAllocations::on_report(const void* address, int64_t size_bytes, int64_t allocated_bytes,
                                int64_t reserved_bytes) {
    const auto lock = listener_->lock_rows();
    if (size_bytes > 0) {
        rows_.set_block_bytes(static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)),
                              size_bytes);
    }
    const bool same =
        rows_.allocated_bytes() == allocated_bytes && rows_.reserved_bytes() == reserved_bytes;
    differing_totals_ += same ? 0 : 1;
}

Id<Allocation> CudaAllocations::allocation_of(const c10::StorageImpl& storage) const {
    if (!storage.device().is_cuda() || storage.device().index() != device_) return {};
    return rows_.at(static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage.data_ptr().get())));
}

// ---- the allocator itself --------------------------------------------------------------------

std::string CudaAllocations::backend() { return allocator::name(); }

CudaMemory CudaAllocations::memory(c10::DeviceIndex device) {
    const auto stats = allocator::getDeviceStats(device);
    return {.allocated_bytes = stats.allocated_bytes[kAggregate].current,
            .reserved_bytes = stats.reserved_bytes[kAggregate].current,
            .peak_allocated_bytes = stats.allocated_bytes[kAggregate].peak,
            .peak_reserved_bytes = stats.reserved_bytes[kAggregate].peak};
}

void CudaAllocations::reset_peak(c10::DeviceIndex device) { allocator::resetPeakStats(device); }

std::vector<RecordedSegment> CudaAllocations::segments(c10::DeviceIndex device) {
    std::map<MempoolId, int64_t> pools;
    return segments_of(take_snapshot(), device, pools);
}

std::string CudaAllocations::settings_text() {
    return take_snapshot().config_metadata.last_allocator_settings;
}

std::vector<std::pair<std::string, at::Tensor>> CudaAllocations::workspaces(
    c10::DeviceIndex device) {
    std::vector<std::pair<std::string, at::Tensor>> found;
    if (!has_cublas_workspace()) return found;  // asking for a handle would create one
    const void* const forward_handle = at::cuda::getCurrentCUDABlasHandle();
    const auto add_as = [&](std::string_view name) {
        return [&, name](const void* handle, void* address, int64_t size_bytes) {
            const char* const pass = handle == forward_handle ? "forward" : "backward";
            found.emplace_back(
                fmt::format("{} ({})", name, pass),
                at::from_blob(address, {size_bytes},
                              at::device(at::Device(at::kCUDA, device)).dtype(at::kByte)));
        };
    };
    visit_cublas_workspaces(add_as("cublas_workspace"));
    visit_cublaslt_workspaces(add_as("cublaslt_workspace"));
    return found;
}

void CudaAllocations::release_cache() {
    at::cuda::clearCublasWorkspaces();
    allocator::emptyCache();
}

void CudaAllocations::set_limit(c10::DeviceIndex device, int64_t bytes, int64_t total_bytes) {
    // torch computes floor(fraction * total) again. Without the half byte, rounding would lose one
    // byte of some limits, and with it the last segment.
    const double fraction =
        bytes < 0 ? 1 : (static_cast<double>(bytes) + 0.5) / static_cast<double>(total_bytes);
    allocator::setMemoryFraction(std::clamp(fraction, 0.0, 1.0), device);
}

OutOfMemoryDetail CudaAllocations::last_out_of_memory() {
    return {.requested_bytes = refused_bytes, .free_bytes = refused_free_bytes};
}

void CudaAllocations::watch_out_of_memory() {
    refused_bytes = -1;
    refused_free_bytes = -1;
    [[maybe_unused]] static const bool attached = [] {
        allocator::attachOutOfMemoryObserver(&on_out_of_memory);
        return true;
    }();
}

}  // namespace profiler
