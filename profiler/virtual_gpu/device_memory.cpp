#include "profiler/virtual_gpu/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

namespace profiler::virtual_gpu {
namespace {

constexpr uint64_t kSpaceBytes = uint64_t{2} << 40;  // of a device: holes never run out
/// Far below where the kernel puts libraries and stacks.
constexpr uint64_t kFirstBase = uint64_t{0x600000000000};

std::atomic<bool> are_unlimited = false;

/// Addresses without pages, which no limit on memory counts.
uint64_t reserve_addresses(std::size_t device) {
    auto* const wanted = reinterpret_cast<void*>(kFirstBase + device * kSpaceBytes);
    void* const base =
        mmap(wanted, kSpaceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        std::fprintf(
            stderr,
            "The simulated GPU cannot reserve 2 TiB of addresses for device %zu (%s): lift "
            "the limit on address space (ulimit -v unlimited).\n",
            device, std::strerror(errno));
        _exit(2);
    }
    return reinterpret_cast<uint64_t>(base);
}

}  // namespace

// ---- one device ---------------------------------------------------------------------------------

DeviceMemory::DeviceMemory(const Card& card, uint64_t base, uint64_t size,
                           SegmentPlacement placement)
    : total_bytes_(static_cast<uint64_t>(card.total_bytes)),
      used_bytes_(static_cast<uint64_t>(card.context_bytes)),
      addresses_(base, size, placement) {}

bool DeviceMemory::charge(uint64_t size) {
    const uint64_t limit = are_unlimited ? kSpaceBytes : total_bytes_;
    if (used_bytes_ > limit || size > limit - used_bytes_) return false;
    used_bytes_ += size;
    return true;
}

std::optional<uint64_t> DeviceMemory::allocate(uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (size > kSpaceBytes) return std::nullopt;  // rounding it up could overflow
    const uint64_t bytes = round_up(size, kGranuleBytes);
    if (!charge(bytes)) return std::nullopt;
    const auto address = addresses_.take(bytes);
    if (address) {
        allocations_.emplace(*address, bytes);
    } else {
        used_bytes_ -= bytes;
    }
    return address;
}

bool DeviceMemory::free(uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    const uint64_t bytes = found->second;
    allocations_.erase(found);
    used_bytes_ -= bytes;
    contents_.forget(address, bytes);
    addresses_.give_back(address, bytes);
    return true;
}

std::optional<uint64_t> DeviceMemory::reserve(uint64_t size, uint64_t alignment) {
    const std::lock_guard lock(mutex_);
    return addresses_.take_aligned(size, std::max(alignment, kGranuleBytes));
}

void DeviceMemory::release(uint64_t address, uint64_t size) {
    const std::lock_guard lock(mutex_);
    addresses_.give_back(address, size);
}

std::unique_ptr<MemoryHandle> DeviceMemory::create(int device, uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (!charge(size)) return nullptr;
    return std::make_unique<MemoryHandle>(MemoryHandle{device, size, 1});
}

void DeviceMemory::map(uint64_t address, MemoryHandle& handle) {
    const std::lock_guard lock(mutex_);
    ++handle.num_uses;
    mappings_[address] = {handle.size_bytes, &handle};
}

void DeviceMemory::unmap(uint64_t address, uint64_t size) {
    const std::lock_guard lock(mutex_);
    contents_.forget(address, size);
    auto mapping = mappings_.lower_bound(address);
    while (mapping != mappings_.end() && mapping->first < address + size) {
        end_use_locked(mapping->second.handle);
        mapping = mappings_.erase(mapping);
    }
}

void DeviceMemory::end_use(MemoryHandle* handle) {
    const std::lock_guard lock(mutex_);
    end_use_locked(handle);
}

void DeviceMemory::end_use_locked(MemoryHandle* handle) {
    if (--handle->num_uses > 0) return;
    used_bytes_ -= handle->size_bytes;
    delete handle;
}

int64_t DeviceMemory::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(total_bytes_ - std::min(used_bytes_, total_bytes_));
}

void DeviceMemory::set_unlimited(bool is_unlimited) { are_unlimited = is_unlimited; }

std::optional<std::pair<uint64_t, uint64_t>> DeviceMemory::range_of(uint64_t address) const {
    const std::lock_guard lock(mutex_);
    const auto after = allocations_.upper_bound(address);
    if (after != allocations_.begin()) {
        const auto [start, bytes] = *std::prev(after);
        if (address < start + bytes) return std::pair(start, bytes);
    }
    const auto mapped_after = mappings_.upper_bound(address);
    if (mapped_after == mappings_.begin()) return std::nullopt;
    const auto& [start, mapping] = *std::prev(mapped_after);
    if (address >= start + mapping.size_bytes) return std::nullopt;
    return std::pair(start, mapping.size_bytes);
}

// ---- all devices --------------------------------------------------------------------------------

Memories& Memories::instance() {
    static auto* const memories = new Memories;
    return *memories;
}

Memories::Memories() {
    const Machine& all = machine();
    for (std::size_t i = 0; i < all.cards.size(); ++i) {
        devices_.push_back(std::make_unique<DeviceMemory>(all.cards[i], reserve_addresses(i),
                                                          kSpaceBytes, all.placement));
    }
}

int Memories::device_of(const void* address) const {
    const auto number = reinterpret_cast<uint64_t>(address);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (devices_[i]->contains(number)) return static_cast<int>(i);
    }
    return -1;
}

}  // namespace profiler::virtual_gpu
