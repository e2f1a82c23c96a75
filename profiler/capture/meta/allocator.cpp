#include "profiler/capture/meta/allocator.h"

#include <c10/core/StorageImpl.h>

#include <memory>

namespace profiler {
namespace {

constexpr uint8_t kPriority = 255;  // over torch's own allocator of the device

}  // namespace

MetaAllocator& MetaAllocator::instance() {
    static auto* const allocator = new MetaAllocator;
    return *allocator;
}

MetaAllocator::MetaAllocator() { c10::SetAllocator(c10::kMeta, this, kPriority); }

BlockHeader* MetaAllocator::block_of(const c10::StorageImpl& storage) const {
    if (storage.data_ptr().get_deleter() != &free_block) return nullptr;
    return static_cast<BlockHeader*>(storage.data_ptr().get_context());
}

/// The data pointer stays null; the context is what makes torch call the deleter.
c10::DataPtr MetaAllocator::allocate(size_t size) {
    const c10::Device meta(c10::kMeta);
    if (size == 0) return {nullptr, nullptr, &free_block, meta};
    auto block =
        std::make_unique<BlockHeader>(BlockHeader{.size_bytes = static_cast<int64_t>(size)});
    const std::lock_guard lock(mutex_);
    if (listener_) listener_->on_alloc(*block, address_of(*block));
    link(*block);
    allocated_bytes_ += block->size_bytes;
    return {nullptr, block.release(), &free_block, meta};
}

void MetaAllocator::free_block(void* context) {
    if (!context) return;
    const std::unique_ptr<BlockHeader> block(static_cast<BlockHeader*>(context));
    MetaAllocator& self = instance();
    const std::lock_guard lock(self.mutex_);
    if (self.listener_) self.listener_->on_free(*block);
    self.allocated_bytes_ -= block->size_bytes;
    self.unlink(*block);
}

}  // namespace profiler
