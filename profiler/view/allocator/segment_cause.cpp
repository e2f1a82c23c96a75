#include "profiler/view/allocator/segment_cause.h"

#include "profiler/allocator/sizes.h"
#include "profiler/analysis/step/block_origin.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {
namespace {

/// A segment of the small pool has exactly this size; those of the large pool are larger.
bool is_small(const AllocatorEvent& event) { return event.size_bytes <= kSmallSegmentBytes; }

/// Blocks only go to requests of their own stream, pool and half of the pool.
bool same_pool(const AllocatorEvent& a, const AllocatorEvent& b) {
    return a.stream == b.stream && a.pool == b.pool && is_small(a) == is_small(b);
}

struct FreePieces {
    int64_t bytes = 0;
    int64_t count = 0;
    int64_t largest_bytes = 0;

    void add(int64_t piece_bytes) {
        if (piece_bytes <= 0) return;
        bytes += piece_bytes;
        ++count;
        largest_bytes = std::max(largest_bytes, piece_bytes);
    }
};

/// What is free between the blocks of the segments that `wanted` could have been served from.
FreePieces free_pieces(const SegmentReader& reader, std::size_t events,
                       const std::vector<PlacedBlock>& blocks, const AllocatorEvent& wanted) {
    FreePieces free;
    int64_t open_from = 0, open_to = 0;  // pages that touch are one range
    auto block = blocks.begin();
    const auto close = [&] {
        int64_t at = open_from;
        while (block != blocks.end() && block->address < open_from) ++block;
        for (; block != blocks.end() && block->address < open_to; ++block) {
            free.add(block->address - at);
            at = std::max(at, block->address + block->size_bytes);
        }
        free.add(open_to - at);
    };
    reader.segments_after(events).for_each(
        [&](int64_t address, int64_t size_bytes, Id<AllocatorEvent> id) {
            const AllocatorEvent& event = reader.event(id);
            if (!same_pool(event, wanted)) return;
            const bool grows = address == open_to && event.action == AllocatorAction::kSegmentMap;
            if (!grows) {
                close();
                open_from = address;
            }
            open_to = address + size_bytes;
        });
    close();
    return free;
}

std::string sentence(const FreePieces& free, const AllocatorEvent& segment, int64_t block_bytes,
                     const std::string& request) {
    const std::string pool = is_small(segment) ? "small" : "large";
    const bool is_nameless = request.starts_with("a request");
    const std::string asked = fmt::format("{} asked for {}", is_nameless ? "A request" : request,
                                          format_bytes(block_bytes));
    if (free.count == 0) return fmt::format("{}; nothing was free for {} blocks.", asked, pool);
    const std::string pieces =
        free.count == 1
            ? fmt::format("{} was free for {} blocks, in one piece", format_bytes(free.bytes), pool)
            : fmt::format("{} was free for {} blocks, but in {} pieces", format_bytes(free.bytes),
                          pool, format_count(free.count));
    const std::string largest =
        free.count == 1 ? std::string()
                        : fmt::format("; the largest had {}", format_bytes(free.largest_bytes));
    if (free.largest_bytes < block_bytes) return fmt::format("{}; {}{}.", asked, pieces, largest);
    return fmt::format("{}; {}{}, which the allocator keeps for other requests.", asked, pieces,
                       largest);
}

}  // namespace

std::string name_of_request(const StepIndex& source, Id<Allocation> allocation) {
    const Trace& trace = source.trace();
    const auto storage = trace.allocations.get<&Allocation::storage>(allocation);
    const BlockOrigin origin = origin_of(trace, source.storage_names(), storage, allocation);
    std::string name = name_of_block(source, allocation);
    if (name == "block") name = "a request";
    if (origin.maker.valid()) name = trace.text(trace.ops.get<&Op::name>(origin.maker));
    if (!origin.module_path.empty()) name += fmt::format(" in {}", origin.module_path);
    return name;
}

SegmentCause cause_of_segment(const SegmentReader& reader, std::size_t event) {
    SegmentCause cause;
    if (event >= reader.events().size()) return cause;
    const AllocatorEvent& segment = reader.events()[event];
    if (!reader.is_replayed() && segment.event < num_start_events(reader.source().trace())) {
        cause.text = "It was there when the recording began.";
        return cause;
    }
    const uint32_t block = reader.first_block_from(segment.event);
    cause.text = "The recording does not say which request it serves.";
    if (block == BlockHistory::kNone) return cause;
    const Id<Allocation> request = reader.source().blocks().allocation(block);
    const BlockPlace place = reader.place_of(request);
    const bool is_inside = place.address < segment.address + segment.size_bytes &&
                           place.address > segment.address - place.size_bytes;
    if (place.size_bytes <= 0 || !is_inside) return cause;
    const std::vector<PlacedBlock> blocks = reader.blocks_at(reader.before_block(block));
    const FreePieces free = free_pieces(reader, event, blocks, segment);
    cause.request = request;
    cause.text =
        sentence(free, segment, place.size_bytes, name_of_request(reader.source(), request));
    return cause;
}

}  // namespace profiler
