#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace profiler::virtual_gpu {

/// What device memory holds, as far as it is known: what the host copied, what a fill wrote, and
/// what somebody computed in place of a kernel. A byte is known or unknown, and an unknown one
/// reads as zero, since no kernel runs. Addresses are those of one device. Not thread-safe.
class Contents {
public:
    /// A copy. It is unknown what comes on top of kMostHostBytes.
    void write(uint64_t address, std::span<const std::byte> bytes);
    /// `size` bytes in which `pattern` repeats, whatever their number.
    void fill(uint64_t address, std::span<const std::byte> pattern, std::size_t size);
    /// Returns whether all of them are known.
    bool read(uint64_t address, std::span<std::byte> bytes) const;
    bool knows(uint64_t address, std::size_t size) const;
    /// A copy within the device or from another one.
    void copy(const Contents& from, uint64_t source, uint64_t target, std::size_t size);
    /// The memory was given back, or serves another tensor, or a kernel has written to it.
    void forget(uint64_t address, std::size_t size);

    std::size_t host_bytes() const { return host_bytes_; }

    /// Of the host's memory, for one device.
    static constexpr std::size_t kMostHostBytes = std::size_t{256} << 20;

private:
    /// Bytes that repeat from the piece's start until its end.
    struct Piece {
        std::size_t size = 0;
        std::vector<std::byte> pattern;

        /// The part of `size` bytes from `offset` on.
        Piece part(std::size_t offset, std::size_t size) const;
        void read(std::size_t offset, std::span<std::byte> bytes) const;
    };
    using Pieces = std::map<uint64_t, Piece>;  // by address; none overlap
    struct Part {
        const Piece& piece;
        std::size_t offset = 0;  // in the piece
        uint64_t address = 0;
        std::size_t size = 0;
    };

    Pieces::const_iterator first_at_or_over(uint64_t address) const;
    /// What is known of the range, in the order of the addresses.
    template <typename Visit>
    void for_each_part(uint64_t address, std::size_t size, const Visit& visit) const;
    void add(uint64_t address, Piece piece);

    Pieces pieces_;
    std::size_t host_bytes_ = 0;  // of patterns
};

}  // namespace profiler::virtual_gpu
