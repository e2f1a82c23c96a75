#pragma once

#include "profiler/addresses/driver_addresses.h"
#include "profiler/virtual_gpu/card.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

/// The memory of one virtual device: addresses that no process memory has, and a count of the bytes
/// that are taken. No page stands behind an address; what the host copied is in Contents.
namespace profiler::virtual_gpu {

/// The driver takes memory in granules of this size.
inline constexpr uint64_t kGranuleBytes = uint64_t{2} << 20;

/// The address as the number that the functions here take.
inline uint64_t number_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

/// Larger copies are weights and batches of data, whose values the host does not look at.
inline constexpr std::size_t kMaxKeptCopyBytes = std::size_t{1} << 20;

/// What device memory holds, as far as the host put it there: small copies and fills. All else
/// reads as zeros, since no kernel runs. Addresses are those of one device. Not thread-safe.
class Contents {
public:
    /// A copy from the host. Larger ones than kMaxKeptCopyBytes read as zeros.
    void write(uint64_t address, std::span<const std::byte> bytes);
    /// `size` bytes of one value.
    void fill(uint64_t address, std::byte value, std::size_t size);
    void read(uint64_t address, std::span<std::byte> bytes) const;
    /// A copy within the device or from another one.
    void copy(const Contents& from, uint64_t source, uint64_t target, std::size_t size);
    /// The memory was given back, or serves another tensor: it reads as zeros.
    void forget(uint64_t address, std::size_t size);

    std::size_t host_bytes() const { return host_bytes_; }

private:
    using Pieces = std::map<uint64_t, std::vector<std::byte>>;  // by address; none overlap

    Pieces::const_iterator first_at_or_over(uint64_t address) const;

    Pieces pieces_;
    std::size_t host_bytes_ = 0;
};

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
    int64_t free_bytes() const;
    /// Start and size of the allocation around an address.
    std::optional<std::pair<uint64_t, uint64_t>> range_of(uint64_t address) const;

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
