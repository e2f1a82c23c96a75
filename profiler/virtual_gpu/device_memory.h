#pragma once

#include "profiler/addresses/driver_addresses.h"
#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/contents.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

/// The memory of one virtual device: addresses that no process memory has, and a count of the bytes
/// that are taken. No page stands behind an address; what is known of the bytes is in Contents.
namespace profiler::virtual_gpu {

/// The driver takes memory in granules of this size.
inline constexpr uint64_t kGranuleBytes = uint64_t{2} << 20;

/// The address as the number that the functions here take.
inline uint64_t number_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

/// Physical memory of cuMemCreate.
struct MemoryHandle {
    int device = 0;
    uint64_t size_bytes = 0;
    int num_uses = 1;  // the handle itself and each mapping
};

/// Thread-safe, except for contents(), which need lock().
class DeviceMemory {
public:
    DeviceMemory(const Card& card, uint64_t base, uint64_t size, SegmentPlacement placement);

    /// cudaMalloc. None when the device is full.
    std::optional<uint64_t> allocate(uint64_t size);
    /// False when nothing was allocated at `address`.
    bool free(uint64_t address);

    /// cuMemAddressReserve and its end.
    std::optional<uint64_t> reserve(uint64_t size, uint64_t alignment);
    void release(uint64_t address, uint64_t size);

    /// cuMemCreate: null when the device is full.
    std::unique_ptr<MemoryHandle> create(int device, uint64_t size);
    void map(uint64_t address, MemoryHandle& handle);
    void unmap(uint64_t address, uint64_t size);
    /// Ends one use of a handle; the last one returns its memory.
    void end_use(MemoryHandle* handle);

    bool contains(uint64_t address) const { return addresses_.contains(address); }
    int64_t total_bytes() const { return static_cast<int64_t>(total_bytes_); }
    /// Not below 0, even if requests were granted beyond total_bytes().
    int64_t free_bytes() const;
    /// Start and size of the allocation around an address.
    std::optional<std::pair<uint64_t, uint64_t>> range_of(uint64_t address) const;

    /// Whether devices grant requests beyond total_bytes().
    static void set_unlimited(bool is_unlimited);

    std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
    Contents& contents() { return contents_; }

private:
    bool charge(uint64_t size);
    void end_use_locked(MemoryHandle* handle);

    mutable std::mutex mutex_;
    uint64_t total_bytes_;
    uint64_t used_bytes_;  // with the context
    DriverAddresses addresses_;
    std::map<uint64_t, uint64_t> allocations_;  // address -> bytes
    struct Mapping {
        uint64_t size_bytes = 0;
        MemoryHandle* handle = nullptr;
    };
    std::map<uint64_t, Mapping> mappings_;
    Contents contents_;
};

/// The memory of each device of the process.
class Memories {
public:
    static Memories& instance();

    DeviceMemory& operator[](int device) { return *devices_[static_cast<std::size_t>(device)]; }
    /// The device whose address it is; -1 for memory of the host.
    int device_of(const void* address) const;

private:
    Memories();
    std::vector<std::unique_ptr<DeviceMemory>> devices_;
};

}  // namespace profiler::virtual_gpu
