#pragma once

#include <cstdint>
#include <map>
#include <optional>

/// Where segments come from: the part of the CUDA driver that the caching allocator talks to.
namespace profiler {

class Driver {
public:
    virtual ~Driver() = default;

    /// cudaMalloc: the address, or none when the device is full.
    virtual std::optional<int64_t> allocate_segment(int64_t size_bytes) = 0;
    virtual void free_segment(int64_t address, int64_t size_bytes) = 0;

    /// cuMemAddressReserve: address space without memory. `page_bytes` tells pools apart.
    virtual int64_t reserve_addresses(int64_t size_bytes, int64_t page_bytes) = 0;
    virtual void release_addresses(int64_t address, int64_t size_bytes) = 0;
    /// cuMemCreate and cuMemMap: false when the device is full; nothing is mapped then.
    virtual bool map(int64_t address, int64_t size_bytes) = 0;
    virtual void unmap(int64_t address, int64_t size_bytes) = 0;

    virtual int64_t total_bytes() const = 0;  // of the device
    virtual int64_t free_bytes() const = 0;
};

/// A device of `total_bytes` whose addresses are handed out in 2 MiB steps, the lowest hole that
/// fits first, as recordings of real ones show (all their segments are 2 MiB aligned, nearly all
/// back to back).
class ModelDriver : public Driver {
public:
    /// 1 TiB stands for a device that never fills up.
    explicit ModelDriver(int64_t total_bytes = int64_t{1} << 40) : total_bytes_(total_bytes) {}

    std::optional<int64_t> allocate_segment(int64_t size_bytes) override;
    void free_segment(int64_t address, int64_t size_bytes) override;
    int64_t reserve_addresses(int64_t size_bytes, int64_t page_bytes) override;
    void release_addresses(int64_t, int64_t) override {}
    bool map(int64_t address, int64_t size_bytes) override;
    void unmap(int64_t address, int64_t size_bytes) override;
    int64_t total_bytes() const override { return total_bytes_; }
    int64_t free_bytes() const override { return total_bytes_ - used_bytes_; }

private:
    int64_t total_bytes_;
    int64_t used_bytes_ = 0;
    int64_t top_ = int64_t{1} << 35;               // above all segments so far
    int64_t next_reservation_ = int64_t{1} << 45;  // far from them
    std::map<int64_t, int64_t> holes_;             // address -> bytes, below top_
};

}  // namespace profiler
