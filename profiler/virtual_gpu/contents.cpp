#include "profiler/virtual_gpu/contents.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace profiler::virtual_gpu {

Contents::Piece Contents::Piece::part(std::size_t offset, std::size_t part_size) const {
    std::vector<std::byte> own(std::min(part_size, pattern.size()));
    read(offset, own);
    return {part_size, std::move(own)};
}

void Contents::Piece::read(std::size_t offset, std::span<std::byte> bytes) const {
    std::size_t at = offset % pattern.size();
    while (!bytes.empty()) {
        const std::size_t count = std::min(bytes.size(), pattern.size() - at);
        std::copy_n(pattern.begin() + static_cast<std::ptrdiff_t>(at), count, bytes.begin());
        bytes = bytes.subspan(count);
        at = 0;
    }
}

/// The first piece that ends behind `address`.
Contents::Pieces::const_iterator Contents::first_at_or_over(uint64_t address) const {
    const auto piece = pieces_.upper_bound(address);
    if (piece != pieces_.begin()) {
        const auto before = std::prev(piece);
        if (before->first + before->second.size > address) return before;
    }
    return piece;
}

template <typename Visit>
void Contents::for_each_part(uint64_t address, std::size_t size, const Visit& visit) const {
    const uint64_t end = address + size;
    for (auto found = first_at_or_over(address); found != pieces_.end() && found->first < end;
         ++found) {
        const auto& [start, piece] = *found;
        const uint64_t from = std::max(address, start);
        const uint64_t to = std::min(end, start + piece.size);
        visit(Part{piece, from - start, from, to - from});
    }
}

void Contents::add(uint64_t address, Piece piece) {
    if (piece.size == 0 || host_bytes_ + piece.pattern.size() > kMostHostBytes) return;
    host_bytes_ += piece.pattern.size();
    pieces_.emplace(address, std::move(piece));
}

void Contents::forget(uint64_t address, std::size_t size) {
    const uint64_t end = address + size;
    auto piece = first_at_or_over(address);
    while (piece != pieces_.end() && piece->first < end) {
        const uint64_t start = piece->first;
        const Piece cut = std::move(pieces_.extract(piece++).mapped());
        host_bytes_ -= cut.pattern.size();
        const uint64_t cut_end = start + cut.size;
        if (start < address) add(start, cut.part(0, address - start));
        if (cut_end > end) add(end, cut.part(end - start, cut_end - end));
    }
}

void Contents::write(uint64_t address, std::span<const std::byte> bytes) {
    forget(address, bytes.size());
    add(address, {bytes.size(), {bytes.begin(), bytes.end()}});
}

void Contents::fill(uint64_t address, std::span<const std::byte> pattern, std::size_t size) {
    forget(address, size);
    pattern = pattern.first(std::min(pattern.size(), size));
    add(address, {size, {pattern.begin(), pattern.end()}});
}

bool Contents::read(uint64_t address, std::span<std::byte> bytes) const {
    std::ranges::fill(bytes, std::byte{0});
    std::size_t num_known = 0;
    for_each_part(address, bytes.size(), [&](const Part& part) {
        part.piece.read(part.offset, bytes.subspan(part.address - address, part.size));
        num_known += part.size;
    });
    return num_known == bytes.size();
}

bool Contents::knows(uint64_t address, std::size_t size) const {
    std::size_t num_known = 0;
    for_each_part(address, size, [&](const Part& part) { num_known += part.size; });
    return num_known == size;
}

void Contents::copy(const Contents& from, uint64_t source, uint64_t target, std::size_t size) {
    std::vector<std::pair<uint64_t, Piece>> parts;
    from.for_each_part(source, size, [&](const Part& part) {
        parts.emplace_back(target + (part.address - source),
                           part.piece.part(part.offset, part.size));
    });
    forget(target, size);
    for (auto& [address, piece] : parts) add(address, std::move(piece));
}

}  // namespace profiler::virtual_gpu
