#pragma once

#include "profiler/addresses/driver_addresses.h"

#include <cstdint>
#include <optional>

/// Where segments come from: the part of the CUDA driver that the caching allocator uses.
namespace profiler {

class Driver {
public:
    virtual ~Driver() = default;

    /// cudaMalloc: the address, or none when the device is full.
    virtual std::optional<int64_t> allocate_segment(int64_t size_bytes) = 0;
    virtual void free_segment(int64_t address, int64_t size_bytes) = 0;

    /// cuMemAddressReserve: address space without memory, aligned to `page_bytes`.
    virtual int64_t reserve_addresses(int64_t size_bytes, int64_t page_bytes) = 0;
    virtual void release_addresses(int64_t address, int64_t size_bytes) = 0;
    /// cuMemCreate and cuMemMap. False, with nothing mapped, when the device is full.
    virtual bool map(int64_t address, int64_t size_bytes) = 0;
    virtual void unmap(int64_t address, int64_t size_bytes) = 0;

    virtual int64_t total_bytes() const = 0;  // of the device
    virtual int64_t free_bytes() const = 0;
};

/// A model of a device with `total_bytes`. It gives out addresses in steps of 2 MiB.
class ModelDriver : public Driver {
public:
    /// The default, 1 TiB, stands for a device that never fills up.
    explicit ModelDriver(int64_t total_bytes = int64_t{1} << 40) : total_bytes_(total_bytes) {}

    std::optional<int64_t> allocate_segment(int64_t size_bytes) override;
    void free_segment(int64_t address, int64_t size_bytes) override;
    int64_t reserve_addresses(int64_t size_bytes, int64_t page_bytes) override;
    void release_addresses(int64_t, int64_t) override {}
    bool map(int64_t address, int64_t size_bytes) override;
    void unmap(int64_t address, int64_t size_bytes) override;
    int64_t total_bytes() const override { return total_bytes_; }
    int64_t free_bytes() const override { return total_bytes_ - used_bytes_; }
    /// Memory that was taken before, somewhere above the model's addresses.
    void hold(int64_t size_bytes) { used_bytes_ += size_bytes; }

private:
    int64_t total_bytes_;
    int64_t used_bytes_ = 0;
    int64_t next_reservation_ = int64_t{1} << 47;  // above the segments
    DriverAddresses segments_{uint64_t{1} << 35, uint64_t{1} << 46, SegmentPlacement::kChunks};
};

}  // namespace profiler
