#include "profiler/virtual_gpu/contents.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace profiler::virtual_gpu {
namespace {

/// Of one device. What comes on top reads as zeros.
constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;

}  // namespace

/// The first piece that ends behind `address`.
Contents::Pieces::const_iterator Contents::first_at_or_over(uint64_t address) const {
    auto piece = pieces_.upper_bound(address);
    if (piece != pieces_.begin()) {
        const auto before = std::prev(piece);
        if (before->first + before->second.size() > address) return before;
    }
    return piece;
}

void Contents::forget(uint64_t address, std::size_t size) {
    const uint64_t end = address + size;
    auto piece = first_at_or_over(address);
    while (piece != pieces_.end() && piece->first < end) {
        const uint64_t start = piece->first;
        std::vector<std::byte> bytes = std::move(pieces_.extract(piece++).mapped());
        kept_bytes_ -= bytes.size();
        const uint64_t piece_end = start + bytes.size();
        if (piece_end > end) {
            std::vector<std::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(end - start),
                                        bytes.end());
            kept_bytes_ += rest.size();
            pieces_.emplace(end, std::move(rest));
        }
        if (start < address) {
            bytes.resize(address - start);
            kept_bytes_ += bytes.size();
            pieces_.emplace(start, std::move(bytes));
        }
    }
}

void Contents::write(uint64_t address, std::span<const std::byte> bytes) {
    forget(address, bytes.size());
    if (bytes.empty() || bytes.size() > kMaxKeptCopyBytes) return;
    if (kept_bytes_ + bytes.size() > kMaxKeptBytes) return;
    pieces_.emplace(address, std::vector<std::byte>(bytes.begin(), bytes.end()));
    kept_bytes_ += bytes.size();
}

void Contents::fill(uint64_t address, std::byte value, std::size_t size) {
    forget(address, size);
    if (value == std::byte{0} || size > kMaxKeptCopyBytes) return;
    write(address, std::vector<std::byte>(size, value));
}

void Contents::read(uint64_t address, std::span<std::byte> bytes) const {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    const uint64_t end = address + bytes.size();
    for (auto piece = first_at_or_over(address); piece != pieces_.end() && piece->first < end;
         ++piece) {
        const uint64_t from = std::max(address, piece->first);
        const uint64_t to = std::min(end, piece->first + piece->second.size());
        std::copy_n(piece->second.begin() + static_cast<std::ptrdiff_t>(from - piece->first),
                    to - from, bytes.begin() + static_cast<std::ptrdiff_t>(from - address));
    }
}

void Contents::copy(const Contents& from, uint64_t source, uint64_t target, std::size_t size) {
    if (size > kMaxKeptCopyBytes) return forget(target, size);
    const auto first = from.first_at_or_over(source);
    if (first == from.pieces_.end() || first->first >= source + size) return forget(target, size);
    std::vector<std::byte> bytes(size);
    from.read(source, bytes);
    write(target, bytes);
}

}  // namespace profiler::virtual_gpu
