#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

/// What device memory holds, as far as the host put it there: small copies and fills. All else
/// reads as zeros, since no kernel runs.
namespace profiler::virtual_gpu {

/// Larger copies are weights and batches of data, whose values the host does not look at.
inline constexpr std::size_t kMaxKeptCopyBytes = std::size_t{1} << 20;

/// Addresses are those of one device. Not thread-safe.
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

    std::size_t kept_bytes() const { return kept_bytes_; }

private:
    using Pieces = std::map<uint64_t, std::vector<std::byte>>;  // by address; none overlap

    Pieces::const_iterator first_at_or_over(uint64_t address) const;

    Pieces pieces_;
    std::size_t kept_bytes_ = 0;
};

}  // namespace profiler::virtual_gpu
