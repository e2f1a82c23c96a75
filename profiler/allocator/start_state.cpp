#include "profiler/allocator/start_state.h"

#include "profiler/allocator/mapped_ranges.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

namespace profiler {
namespace {

using models::fail;
using models::Result;

/// A block in use while walking back.
struct LiveBlock {
    int64_t requested_bytes = 0;
    int64_t size_bytes = -1;  // -1 = the recording does not say
    BlockState state = BlockState::kAllocated;
};

class BackwardWalk {
public:
    BackwardWalk(const AllocatorRecording& recording, const AllocatorSettings& settings)
        : recording_(recording), settings_(settings) {
        for (const RecordedSegment& segment : recording.segments) {
            add_segment(segment);
            for (const RecordedBlock& block : segment.blocks) {
                if (block.state == BlockState::kInactive) continue;
                live_[block.address] = {block.requested_bytes, block.size_bytes, block.state};
            }
        }
    }

    Result<void> run() {
        for (std::size_t i = recording_.events.size(); i-- > 0;) {
            const char* problem = undo(recording_.events[i]);
            if (reserved_bytes_ > kMaxReservedBytes) problem = "no device has so much memory";
            if (problem != nullptr) {
                const RecordedEvent& event = recording_.events[i];
                return fail(
                    "event {} ({} of {} bytes at {:#x}) contradicts what comes after it: {}, so "
                    "events are missing between them; record again with max_entries of "
                    "torch.cuda.memory._record_memory_history large enough for all",
                    i, name_of(event.action), event.size_bytes, event.address, problem);
            }
        }
        return {};
    }

    const std::map<int64_t, LiveBlock>& live() const { return live_; }
    /// Plain segments and mapped ranges, by address, without blocks.
    std::vector<RecordedSegment> segments() const {
        std::vector<RecordedSegment> all = ranges_.ranges();
        for (const auto& [address, segment] : segments_) all.push_back(segment);
        std::ranges::sort(all, {}, &RecordedSegment::address);
        return all;
    }

private:
    /// More than any device has; small enough that sums fit into 64 bits.
    static constexpr int64_t kMaxReservedBytes = int64_t{1} << 57;

    void add_segment(const RecordedSegment& segment) {
        reserved_bytes_ = std::min(reserved_bytes_, kMaxReservedBytes) + segment.size_bytes;
        RecordedSegment bare = segment;
        bare.blocks.clear();
        if (segment.is_expandable) {
            ranges_.add(bare);
        } else {
            segments_[segment.address] = bare;
        }
    }

    /// Null, or why the event contradicts the state after it.
    const char* undo(const RecordedEvent& event) {
        const auto block = live_.find(event.address);
        const bool is_live = block != live_.end();
        switch (event.action) {
            case RecordedAction::kFreeCompleted:
                if (is_live) return "a block is in use there";
                live_[event.address] = {event.size_bytes, -1, BlockState::kPendingFree};
                return nullptr;
            case RecordedAction::kFreeRequested:
                if (!is_live) return "no block is in use there";
                if (block->second.requested_bytes != event.size_bytes) return "the sizes differ";
                block->second.state = BlockState::kAllocated;
                return nullptr;
            case RecordedAction::kAlloc:
                if (!is_live) return "no block is in use there";
                if (block->second.requested_bytes != event.size_bytes) return "the sizes differ";
                live_.erase(block);
                return nullptr;
            default:
                return undo_segment(event);
        }
    }

    const char* undo_segment(const RecordedEvent& event) {
        const RecordedSegment segment = segment_of(event);
        switch (event.action) {
            case RecordedAction::kSegmentAlloc: {
                const auto known = segments_.find(event.address);
                if (known == segments_.end()) return "no segment begins there";
                if (known->second.size_bytes != event.size_bytes) return "the sizes differ";
                segments_.erase(known);
                reserved_bytes_ -= event.size_bytes;
                return has_live_block(segment) ? "it holds a block in use" : nullptr;
            }
            case RecordedAction::kSegmentFree:
                if (segments_.contains(event.address)) return "a segment begins there";
                add_segment(segment);
                return nullptr;
            case RecordedAction::kSegmentMap:
                if (!ranges_.remove(segment)) return "that range is not mapped";
                reserved_bytes_ -= event.size_bytes;
                return has_live_block(segment) ? "it holds a block in use" : nullptr;
            case RecordedAction::kSegmentUnmap:
                add_segment(segment);
                return nullptr;
            default:
                return nullptr;  // out of memory and snapshots change nothing
        }
    }

    /// A segment as its event tells it. Only the small pool has segments of 2 MiB, and pages that
    /// are no multiples of the large pool's.
    RecordedSegment segment_of(const RecordedEvent& event) const {
        const bool is_page = event.action == RecordedAction::kSegmentMap ||
                             event.action == RecordedAction::kSegmentUnmap;
        const bool is_small = is_page ? event.size_bytes % settings_.large_segment_bytes != 0
                                      : event.size_bytes == kSmallSegmentBytes;
        return {.address = event.address,
                .size_bytes = event.size_bytes,
                .stream = event.stream,
                .pool = std::max<int64_t>(event.pool, 0),
                .is_small = is_small,
                .is_expandable = is_page};
    }

    bool has_live_block(const RecordedSegment& segment) const {
        const auto first = live_.lower_bound(segment.address);
        return first != live_.end() && first->first < segment.address + segment.size_bytes;
    }

    const AllocatorRecording& recording_;
    const AllocatorSettings& settings_;
    std::map<int64_t, LiveBlock> live_;
    std::map<int64_t, RecordedSegment> segments_;
    MappedRanges ranges_;
    int64_t reserved_bytes_ = 0;
};

/// Cuts one segment into the blocks in use and the free gaps between them.
class SegmentFiller {
public:
    SegmentFiller(RecordedSegment& segment, const AllocatorSettings& settings,
                  std::vector<OpenBlock>& open)
        : segment_(segment), settings_(settings), open_(open), end_(segment.address) {}

    /// False when the block overlaps the one before it or the end of the segment.
    bool add(int64_t address, const LiveBlock& live, int64_t next_address) {
        add_gap(address);
        RecordedBlock block{.address = address,
                            .size_bytes = live.size_bytes,
                            .requested_bytes = live.requested_bytes,
                            .state = live.state};
        if (live.size_bytes < 0) {
            block.size_bytes = round_size(live.requested_bytes, settings_);
            block.size_bytes += rest_of(block, next_address - address - block.size_bytes);
        }
        end_ = address + block.size_bytes;
        segment_.blocks.push_back(block);
        return end_ <= next_address;
    }

    void finish() { add_gap(segment_.address + segment_.size_bytes); }

private:
    void add_gap(int64_t until) {
        if (until > end_) segment_.blocks.push_back({.address = end_, .size_bytes = until - end_});
        end_ = until;
    }

    /// The part of the gap behind a request that belongs to its block. If that is unknown, 0, and
    /// the block is noted as open.
    int64_t rest_of(const RecordedBlock& block, int64_t gap_bytes) {
        if (segment_.is_small || settings_.expandable_segments || gap_bytes <= 0) return 0;
        if (block.size_bytes >= settings_.max_split_bytes) return gap_bytes;
        if (gap_bytes <= kSmallRequestBytes) return gap_bytes;
        const int64_t max_rest_bytes =
            std::min(kSmallRequestBytes, gap_bytes - kSmallRequestBytes - kMinBlockBytes);
        if (max_rest_bytes > 0) open_.push_back({block.address, max_rest_bytes});
        return 0;
    }

    RecordedSegment& segment_;
    const AllocatorSettings& settings_;
    std::vector<OpenBlock>& open_;
    int64_t end_;
};

Result<StartState> fill_segments(const BackwardWalk& walk, const AllocatorSettings& settings) {
    StartState state{.segments = walk.segments()};
    auto live = walk.live().begin();
    for (RecordedSegment& segment : state.segments) {
        const int64_t segment_end = segment.address + segment.size_bytes;
        SegmentFiller filler(segment, settings, state.open);
        for (; live != walk.live().end() && live->first < segment_end; ++live) {
            if (live->first < segment.address) break;
            const auto next = std::next(live);
            const bool is_last = next == walk.live().end() || next->first >= segment_end;
            const int64_t limit = is_last ? segment_end : next->first;
            if (!filler.add(live->first, live->second, limit)) {
                return fail("the block at {:#x} overlaps what lies behind it", live->first);
            }
        }
        filler.finish();
    }
    if (live != walk.live().end()) {
        return fail("the block at {:#x} lies in no segment", live->first);
    }
    return state;
}

/// Walks forward: the first block allocated right behind an open block shows where the open block
/// ends.
class RestFinder {
public:
    RestFinder(const StartState& state) {
        for (const OpenBlock& open : state.open) max_rest_[open.address] = open.max_rest_bytes;
        for (const RecordedSegment& segment : state.segments) {
            for (const RecordedBlock& block : segment.blocks) {
                const auto open = max_rest_.find(block.address);
                if (open == max_rest_.end()) continue;
                by_end_[block.address + block.size_bytes] = block.address;
                end_of_[block.address] = block.address + block.size_bytes;
            }
        }
    }

    /// Address of the block -> its rest.
    std::unordered_map<int64_t, int64_t> find(const std::vector<RecordedEvent>& events) {
        for (const RecordedEvent& event : events) {
            if (by_end_.empty()) break;
            if (event.action == RecordedAction::kAlloc) see_alloc(event.address);
            if (event.action == RecordedAction::kFreeCompleted) see_free(event.address);
        }
        return std::move(found_);
    }

private:
    void see_alloc(int64_t address) {
        auto open = by_end_.upper_bound(address);
        if (open == by_end_.begin()) return;
        --open;
        const int64_t rest_bytes = address - open->first;
        if (rest_bytes > max_rest_[open->second]) return;
        found_[open->second] = rest_bytes;
        end_of_.erase(open->second);
        by_end_.erase(open);
    }

    void see_free(int64_t address) {
        const auto open = end_of_.find(address);
        if (open == end_of_.end()) return;
        by_end_.erase(open->second);
        end_of_.erase(open);
    }

    std::unordered_map<int64_t, int64_t> max_rest_;
    std::unordered_map<int64_t, int64_t> end_of_;  // open block -> end of its request
    std::map<int64_t, int64_t> by_end_;            // end of its request -> open block
    std::unordered_map<int64_t, int64_t> found_;
};

void apply_rests(StartState& state, const std::unordered_map<int64_t, int64_t>& rests) {
    for (RecordedSegment& segment : state.segments) {
        for (std::size_t i = 0; i + 1 < segment.blocks.size(); ++i) {
            const auto rest = rests.find(segment.blocks[i].address);
            if (rest == rests.end() || segment.blocks[i].state == BlockState::kInactive) continue;
            segment.blocks[i].size_bytes += rest->second;
            segment.blocks[i + 1].address += rest->second;
            segment.blocks[i + 1].size_bytes -= rest->second;
        }
    }
    std::erase_if(state.open, [&](const OpenBlock& open) { return rests.contains(open.address); });
}

/// The lowest pages of an expandable segment may not be mapped at the start. If events map pages
/// below its first one, the reservation begins there.
void add_reservation_starts(StartState& state, const AllocatorRecording& recording,
                            const AllocatorSettings& settings) {
    std::map<std::tuple<int64_t, int64_t, bool>, RecordedSegment> lowest;
    const auto key_of = [](const RecordedSegment& s) {
        return std::tuple(s.stream, s.pool, s.is_small);
    };
    for (const RecordedSegment& segment : state.segments) {
        if (!segment.is_expandable) continue;
        RecordedSegment start = segment;
        start.size_bytes = 0;
        start.blocks.clear();
        lowest.emplace(key_of(segment), start);  // segments come by address, so the lowest stays
    }
    const auto known = lowest;
    for (const RecordedEvent& event : recording.events) {
        if (event.action != RecordedAction::kSegmentMap) continue;
        const auto found = lowest.find({event.stream, std::max<int64_t>(event.pool, 0),
                                        event.size_bytes % settings.large_segment_bytes != 0});
        if (found == lowest.end()) continue;
        found->second.address = std::min(found->second.address, event.address);
    }
    for (const auto& [key, start] : lowest) {
        if (start.address < known.at(key).address) state.segments.push_back(start);
    }
}

}  // namespace

Result<StartState> rebuild_start_state(const AllocatorRecording& recording,
                                       const AllocatorSettings& settings) {
    BackwardWalk walk(recording, settings);
    if (auto walked = walk.run(); !walked) return tl::unexpected(walked.error());
    auto state = fill_segments(walk, settings);
    if (!state) return state;
    apply_rests(*state, RestFinder(*state).find(recording.events));
    add_reservation_starts(*state, recording, settings);
    return state;
}

}  // namespace profiler
