#include "profiler/capture/tracking_allocator.h"

#include "profiler/trace/units.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace profiler {
namespace {

constexpr uint64_t kMagic = 0x74656d706f73636fULL;  // "temposco"
constexpr uint8_t kPriority = 255;                  // over torch's own allocator

/// A page. Smaller tensors may be many, and a stack takes up to 1 KB: about what they hold.
constexpr int64_t kLeastBytesWithStack = 4096;

/// Its memory is the upstream allocator's.
struct DestroyHeader {
    void operator()(BlockHeader* block) const { std::destroy_at(block); }
};

}  // namespace

TrackingAllocator& TrackingAllocator::instance() {
    static auto* const allocator = new TrackingAllocator;
    return *allocator;
}

TrackingAllocator::TrackingAllocator() : upstream_(c10::GetAllocator(c10::kCPU)) {
    static_assert(sizeof(BlockHeader) <= kHeaderBytes);
    c10::SetAllocator(c10::kCPU, this, kPriority);
}

void TrackingAllocator::start(AllocationListener& listener) {
    gather_stacks(listener.wants_stack());
    set_listener(&listener);
    for_each_live([&](BlockHeader& block) { listener.on_alloc(block, address_of(block)); });
}

void TrackingAllocator::stop() {
    gather_stacks(nullptr);
    set_listener(nullptr);
    for_each_live([](BlockHeader& block) { block.allocation = -1; });
}

Id<Allocation> TrackingAllocator::allocation_of(const c10::StorageImpl& storage) const {
    const BlockHeader* const block = block_of(storage);
    if (!block || block->allocation < 0) return {};
    return Id<Allocation>(static_cast<std::size_t>(block->allocation));
}

BlockHeader* TrackingAllocator::block_of(const c10::StorageImpl& storage) const {
    if (storage.data_ptr().get_deleter() != &free_block || !storage.data_ptr().get())
        return nullptr;
    return reinterpret_cast<BlockHeader*>(static_cast<char*>(storage.data_ptr().get_context()) -
                                          kHeaderBytes);
}

int64_t TrackingAllocator::address_of(const BlockHeader& block) const {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(&block)) + kHeaderBytes;
}

void TrackingAllocator::link(BlockHeader& block) {
    block.previous = newest_;
    (newest_ ? newest_->next : oldest_) = &block;
    newest_ = &block;
}

void TrackingAllocator::unlink(BlockHeader& block) {
    (block.previous ? block.previous->next : oldest_) = block.next;
    (block.next ? block.next->previous : newest_) = block.previous;
}

c10::DataPtr TrackingAllocator::allocate(size_t size) {
    if (size == 0) return {nullptr, nullptr, &free_block, c10::Device(c10::kCPU)};
    const auto size_bytes = static_cast<int64_t>(size);
    GatheredStack stack = gather_stack(size_bytes);
    const std::lock_guard lock(mutex_);  // two threads must not pass the limit together
    refuse_over_limit(size_bytes);
    c10::DataPtr memory = ask_upstream(size_bytes);
    std::unique_ptr<BlockHeader, DestroyHeader> header(new (memory.get()) BlockHeader{
        .magic = kMagic, .size_bytes = size_bytes, .stack = std::move(stack)});
    if (listener_) {
        // May throw, so it comes before counting.
        listener_->on_alloc(*header, address_of(*header));
    }
    BlockHeader* const block = header.release();
    link(*block);
    allocated_bytes_ += size_bytes;
    peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
    memory.release_context();
    char* const data = reinterpret_cast<char*>(block) + kHeaderBytes;
    return {data, data, &free_block, c10::Device(c10::kCPU)};
}

/// Waits for Python's lock, so not under ours.
GatheredStack TrackingAllocator::gather_stack(int64_t size_bytes) const {
    const WantsStack wants = stack_is_wanted_;
    const bool is_wanted = wants != nullptr && size_bytes >= kLeastBytesWithStack && wants();
    return is_wanted ? gather_python_stack() : nullptr;
}

/// torch's allocator throws a plain c10::Error when the system has no memory.
c10::DataPtr TrackingAllocator::ask_upstream(int64_t size_bytes) {
    try {
        return upstream_->allocate(static_cast<size_t>(size_bytes + kHeaderBytes));
    } catch (const std::exception&) {
        note_out_of_memory(size_bytes, -1);
        TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: the system refused ",
                         format_bytes(size_bytes));
    }
}

void TrackingAllocator::free_block(void* data) {
    if (!data) return;
    TrackingAllocator& self = instance();
    auto* const block = reinterpret_cast<BlockHeader*>(static_cast<char*>(data) - kHeaderBytes);
    TORCH_INTERNAL_ASSERT(block->magic == kMagic,
                          "a block was freed twice or written before its start");
    {
        const std::lock_guard lock(self.mutex_);
        if (self.listener_) self.listener_->on_free(*block);
        self.allocated_bytes_ -= block->size_bytes;
        self.unlink(*block);
    }
    std::destroy_at(block);
    new (block) decltype(block->magic){0};  // for a second free, which has no block
    self.upstream_->raw_deleter()(block);
}

void TrackingAllocator::note_out_of_memory(int64_t requested_bytes, int64_t free_bytes) {
    last_out_of_memory_ = {.requested_bytes = requested_bytes, .free_bytes = free_bytes};
    if (listener_ == nullptr) return;
    listener_->on_out_of_memory({.requested_bytes = requested_bytes,
                                 .allocated_bytes = allocated_bytes_,
                                 .reserved_bytes = allocated_bytes_,
                                 .free_bytes = free_bytes,
                                 .limit_bytes = limit_bytes_});
}

/// Throws the same error as PyTorch's CUDA allocator, so that callers handle both alike.
void TrackingAllocator::refuse_over_limit(int64_t size_bytes) {
    const int64_t limit = limit_bytes_;
    if (limit < 0) return;
    const int64_t free_bytes = limit - allocated_bytes_;
    if (size_bytes <= free_bytes) return;
    note_out_of_memory(size_bytes, free_bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: tried to allocate ",
                     format_bytes(size_bytes), " with ", format_bytes(free_bytes), " of ",
                     format_bytes(limit), " free");
}

}  // namespace profiler
