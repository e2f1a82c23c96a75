#include "profiler/capture/python/foreign_storages.h"

#include <cstdint>
#include <utility>

namespace profiler {

void ForeignStorages::start(AllocationListener& listener) {
    listener_ = &listener;
    allocator_.start(listener);
}

void ForeignStorages::stop() {
    allocator_.stop();
    adopted_.clear();
    listener_ = nullptr;
}

Id<Allocation> ForeignStorages::allocation_of(const c10::StorageImpl& storage) const {
    if (const auto own = allocator_.allocation_of(storage); own.valid()) return own;
    const auto found = adopted_.find(&storage);
    if (found == adopted_.end()) return {};
    return Id<Allocation>(static_cast<std::size_t>(found->second.block->allocation));
}

void ForeignStorages::adopt(const at::Tensor& tensor) {
    if (listener_ == nullptr || !tensor.defined() || !tensor.has_storage()) return;
    const at::Storage& handle = tensor.storage();
    c10::StorageImpl* const storage = handle.unsafeGetStorageImpl();
    // The storage of a wrapper class without memory has a size and no data.
    if (storage->nbytes() == 0 || storage->data() == nullptr) return;
    if (storage->device_type() != c10::kCPU) return;
    if (allocator_.block_of(*storage) != nullptr || adopted_.contains(storage)) return;
    auto block = std::make_unique<BlockHeader>(
        BlockHeader{.size_bytes = static_cast<int64_t>(storage->nbytes())});
    listener_->on_alloc(*block, static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage->data())));
    const auto lock = listener_->lock_rows();
    adopted_.emplace(storage, Adopted{handle.getWeakStorageImpl(), std::move(block)});
    ++num_adopted_;
}

void ForeignStorages::release_freed() {
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

}  // namespace profiler
