#include "profiler/capture/python/program_on_cpu.h"

#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// The blocks of the tracking allocator, and storages that it did not make: of NumPy, of a mapped
/// file, from before it was installed. Those become known when a recording names them (`adopt`),
/// with the bytes of the storage.
class ForeignStorages final : public AllocationSource {
public:
    void start(AllocationListener& listener) override {
        listener_ = &listener;
        allocator_.start(listener);
    }
    void stop() override {
        allocator_.stop();
        adopted_.clear();
        listener_ = nullptr;
    }
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override {
        if (const auto own = allocator_.allocation_of(storage); own.valid()) return own;
        const auto found = adopted_.find(&storage);
        if (found == adopted_.end()) return {};
        return Id<Allocation>(static_cast<std::size_t>(found->second.block->allocation));
    }

    /// Records the storage of `tensor`, if nobody has. Not under the recorder's lock.
    void adopt(const at::Tensor& tensor) {
        if (listener_ == nullptr || !tensor.defined() || !tensor.has_storage()) return;
        const at::Storage& handle = tensor.storage();
        c10::StorageImpl* const storage = handle.unsafeGetStorageImpl();
        // The storage of a wrapper class without memory has a size and no data.
        if (storage->nbytes() == 0 || storage->data() == nullptr) return;
        if (storage->device_type() != c10::kCPU) return;
        if (allocator_.block_of(*storage) != nullptr || adopted_.contains(storage)) return;
        auto block = std::make_unique<BlockHeader>(
            BlockHeader{.size_bytes = static_cast<int64_t>(storage->nbytes())});
        listener_->on_alloc(*block,
                            static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage->data())));
        const auto lock = listener_->lock_rows();
        adopted_.emplace(storage, Adopted{handle.getWeakStorageImpl(), std::move(block)});
        ++num_adopted_;
    }
    /// Records the frees of adopted storages that are gone. Torch does not tell when that happens.
    void release_freed() {
        for (auto entry = adopted_.begin(); entry != adopted_.end();) {
            if (!entry->second.storage.expired()) {
                ++entry;
                continue;
            }
            listener_->on_free(*entry->second.block);
            const auto lock = listener_->lock_rows();
            entry = adopted_.erase(entry);
        }
    }

    std::size_t num_adopted() const { return num_adopted_; }

private:
    struct Adopted {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps its address from being reused
        std::unique_ptr<BlockHeader> block;
    };

    TrackingAllocator& allocator_ = TrackingAllocator::instance();
    AllocationListener* listener_ = nullptr;
    std::unordered_map<const c10::StorageImpl*, Adopted> adopted_;
    std::size_t num_adopted_ = 0;
};

class ProgramOnCpu final : public ProgramDevice {
public:
    RunEnvironment environment() const override {
        return {.source = Source::kMeasuredCpu,
                .time_basis = TimeBasis::kMeasured,
                .device_name = processor_name(),
                .num_threads = at::get_num_threads()};
    }
    RecorderOptions recorder_options() override { return {.allocations = &storages_}; }
    void adopt(const at::Tensor& tensor) override { storages_.adopt(tensor); }
    void read_step() override { storages_.release_freed(); }
    void stop(Recorder& recorder) override {
        if (storages_.num_adopted() == 0) return;
        recorder.add_note(
            "adopted_storages", Severity::kInfo,
            fmt::format("{} named storages were not made by torch's allocator while Temposcope "
                        "watched it: they are of NumPy, of a mapped file, or older than the import "
                        "of temposcope. They are recorded from when they were named.",
                        storages_.num_adopted()));
    }

private:
    ForeignStorages storages_;
};

}  // namespace

std::unique_ptr<ProgramDevice> program_on_cpu() { return std::make_unique<ProgramOnCpu>(); }

}  // namespace profiler
