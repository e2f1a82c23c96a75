#include "profiler/allocator/replay.h"

#include "profiler/allocator/driver.h"
#include "profiler/allocator/sizes.h"
#include "profiler/allocator/start_state.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace profiler {
namespace {

/// Gives out segments at the addresses of a recording.
class RecordedDriver : public Driver {
public:
    /// A segment_alloc or segment_map that the next allocation may cause.
    void expect(const RecordedEvent& event) { expected_.push_back({event, false}); }

    bool expects_segment() const {
        return std::any_of(expected_.begin(), expected_.end(), [](const Expected& expected) {
            return expected.event.action == RecordedAction::kSegmentAlloc;
        });
    }

    const auto& expected() const { return expected_; }
    void forget() { expected_.clear(); }

    /// The simulator holds it from the start.
    void add(const RecordedSegment& segment) { segments_[segment.address] = segment.size_bytes; }

    std::optional<int64_t> allocate_segment(int64_t size_bytes) override {
        if (!hold(size_bytes)) return std::nullopt;
        for (Expected& expected : expected_) {
            const RecordedEvent& event = expected.event;
            if (expected.is_taken || event.action != RecordedAction::kSegmentAlloc) continue;
            if (event.size_bytes != size_bytes || is_held(event.address, size_bytes)) continue;
            expected.is_taken = true;
            segments_[event.address] = size_bytes;
            return event.address;
        }
        return nowhere(size_bytes);
    }

    void free_segment(int64_t address, int64_t size_bytes) override {
        segments_.erase(address);
        held_bytes_ -= size_bytes;
    }

    /// A new reservation begins where the recording maps next.
    int64_t reserve_addresses(int64_t size_bytes, int64_t) override {
        for (const Expected& expected : expected_) {
            if (expected.event.action == RecordedAction::kSegmentMap) return expected.event.address;
        }
        return nowhere(size_bytes);
    }

    void release_addresses(int64_t, int64_t) override {}
    bool map(int64_t, int64_t size_bytes) override { return hold(size_bytes); }
    void unmap(int64_t, int64_t size_bytes) override { held_bytes_ -= size_bytes; }
    int64_t total_bytes() const override { return int64_t{1} << 42; }
    int64_t free_bytes() const override { return total_bytes(); }

private:
    struct Expected {
        RecordedEvent event;
        bool is_taken = false;
    };

    /// Where a replay differs, torch may have released what the simulator still holds.
    bool is_held(int64_t address, int64_t size_bytes) const {
        const auto after = segments_.lower_bound(address + size_bytes);
        if (after == segments_.begin()) return false;
        const auto& [begin, bytes] = *std::prev(after);
        return begin + bytes > address;
    }

    /// Keeps the counters from overflowing when a recording is damaged.
    bool hold(int64_t size_bytes) {
        if (size_bytes > kNowhere - held_bytes_) return false;
        held_bytes_ += size_bytes;
        return true;
    }

    /// For a segment that the recording does not have, an address far from all recorded ones.
    int64_t nowhere(int64_t size_bytes) {
        if (size_bytes > 2 * kNowhere - next_unknown_) next_unknown_ = kNowhere;
        const int64_t address = next_unknown_;
        next_unknown_ += size_bytes;
        return address;
    }

    std::vector<Expected> expected_;
    std::map<int64_t, int64_t> segments_;  // at recorded addresses, with their sizes
    int64_t held_bytes_ = 0;
    int64_t next_unknown_ = kNowhere;
    static constexpr int64_t kNowhere = int64_t{1} << 58;  // above every address of a device
};

bool is_segment_release(const RecordedEvent& event) {
    return event.action == RecordedAction::kSegmentFree ||
           event.action == RecordedAction::kSegmentUnmap;
}

/// Pool and time are not compared: recorders may leave them out.
bool is_same_segment_event(const RecordedEvent& a, const RecordedEvent& b) {
    return a.action == b.action && a.address == b.address && a.size_bytes == b.size_bytes &&
           a.stream == b.stream;
}

class Replayer {
public:
    Replayer(const AllocatorRecording& recording, const AllocatorSettings& settings,
             const StartState& start, TieOrder order)
        : recording_(recording), simulator_({.settings = settings, .tie_order = order}, driver_) {
        for (const RecordedSegment& segment : start.segments) driver_.add(segment);
        simulator_.load(start.segments);
        reserved_bytes_ = simulator_.use().reserved_bytes;
        index_start(start);
        keep_peak();
    }

    ReplayReport run() {
        const auto& events = recording_.events;
        for (std::size_t i = 0; i < events.size();) i = step(i);
        report_.events = static_cast<int64_t>(events.size());
        report_.peak = simulator_.peak();
        compare_final_state();
        return std::move(report_);
    }

private:
    void index_start(const StartState& start) {
        // load() made the blocks in the order of their addresses.
        std::unordered_map<int64_t, int64_t> open;
        for (const OpenBlock& block : start.open) open[block.address] = block.max_rest_bytes;
        for (BlockHandle handle = 0; handle < simulator_.num_blocks(); ++handle) {
            const Block& block = simulator_.block(handle);
            if (block.is_allocatable()) continue;
            live_[block.address] = handle;
            const auto found = open.find(block.address);
            if (found != open.end()) open_rest_[handle] = found->second;
        }
        for (const RecordedSegment& segment : recording_.segments) {
            pool_of_segment_[segment.address] = segment.pool;
            has_private_pools_ |= segment.pool != 0;
        }
    }

    /// Handles the event, or all releases in a row from it on. Returns the next event.
    std::size_t step(std::size_t i) {
        const RecordedEvent& event = recording_.events[i];
        switch (event.action) {
            case RecordedAction::kAlloc:
                allocate(i);
                break;
            case RecordedAction::kFreeRequested:
                request_free(i);
                break;
            case RecordedAction::kFreeCompleted:
                complete_free(i);
                break;
            case RecordedAction::kSegmentAlloc:
            case RecordedAction::kSegmentMap:
                ++report_.segment_events;
                reserved_bytes_ += event.size_bytes;
                driver_.expect(event);
                break;
            case RecordedAction::kSegmentFree:
            case RecordedAction::kSegmentUnmap:
                return release(i);
            case RecordedAction::kOom:
                settle_segment_events(i);
                has_released_ = false;
                break;
            case RecordedAction::kSnapshot:
            case RecordedAction::kAnnotate:
                break;
        }
        return i + 1;
    }

    void request_free(std::size_t i) {
        has_released_ = false;
        const auto block = live_.find(recording_.events[i].address);
        if (block == live_.end()) return;  // could not be placed
        simulator_.request_free(block->second);
        compare_reserved(i);
    }

    void complete_free(std::size_t i) {
        const RecordedEvent& event = recording_.events[i];
        const auto found = live_.find(event.address);
        if (found == live_.end()) return;
        const BlockHandle block = found->second;
        const bool follows_request =
            i > 0 && recording_.events[i - 1].action == RecordedAction::kFreeRequested &&
            recording_.events[i - 1].address == event.address;
        if (simulator_.block(block).use != BlockUse::kPending) {
            request_free(i);  // the file has only the second event of the free
        } else if (!follows_request) {
            has_released_ = true;
        }
        simulator_.complete_free(block);
        live_.erase(found);
        open_rest_.erase(block);
        compare_reserved(i);
    }

    void allocate(std::size_t i) {
        const RecordedEvent& event = recording_.events[i];
        const AllocationRequest request{event.size_bytes, event.stream, pool_of(event)};
        // A segment_alloc right after a release belongs to a retry: torch did not search again,
        // although the release may have merged blocks that fit.
        const bool is_retry = has_released_ && driver_.expects_segment();
        if (!is_retry) correct_open_rests(event, request);
        const auto block =
            is_retry ? simulator_.allocate_new_segment(request) : simulator_.allocate(request);
        has_released_ = false;
        ++report_.allocations;
        settle_segment_events(i);
        if (!block) return note(i, "has no place in the simulator");
        live_[event.address] = *block;
        const int64_t address = simulator_.block(*block).address;
        if (address == event.address) {
            ++report_.address_matches;
        } else {
            note(i, "was placed at {:#x}, the simulator places it at {:#x}", event.address,
                 address);
        }
        compare_reserved(i);
        keep_peak();
    }

    /// An open block (start_state.h) may be larger than assumed, and the free block behind it
    /// smaller. If the simulator would choose that free block and torch chose another, it was too
    /// small. No step goes further than this needs, so a rest never exceeds the true one.
    void correct_open_rests(const RecordedEvent& event, const AllocationRequest& request) {
        while (!open_rest_.empty()) {
            const BlockHandle candidate = simulator_.find_free_block(request);
            if (candidate == kNoBlock) return;
            const Block& free = simulator_.block(candidate);
            if (free.address == event.address) return;
            const auto open = open_rest_.find(free.previous);
            if (open == open_rest_.end()) return;
            const int64_t need_bytes = round_size(request.size_bytes, simulator_.settings());
            const int64_t growth_bytes = free.size_bytes - need_bytes + kMinBlockBytes;
            if (growth_bytes > open->second) return;
            open->second -= growth_bytes;
            simulator_.grow_into_next(open->first, growth_bytes);
        }
    }

    /// Handles segment_free and segment_unmap events in a row. If releasing all cached blocks gives
    /// exactly these events, or the last of them, they count as predicted. Earlier events are taken
    /// as recorded and do not count. They come from blocks released one by one, or from garbage
    /// collection: a recording lacks the ages that it needs.
    std::size_t release(std::size_t i) {
        const auto& events = recording_.events;
        std::size_t end = i;
        for (; end < events.size() && is_segment_release(events[end]); ++end) {
            reserved_bytes_ -= events[end].size_bytes;
            ++report_.segment_events;
        }
        has_released_ = true;
        for (; i < end; ++i) {
            const std::size_t predicted = try_release_all(i, end);
            if (predicted == end - i) {
                report_.segment_event_matches += static_cast<int64_t>(predicted);
                return end;
            }
            take_release(i);
        }
        return end;
    }

    /// Releases all cached blocks if that gives exactly the events [first, last). Returns their
    /// number, or 0.
    std::size_t try_release_all(std::size_t first, std::size_t last) {
        Simulator trial = simulator_;
        const RecordedDriver before = driver_;  // which the trial asks, too
        trial.empty_cache();
        const auto made = trial.take_events();
        const auto begin = recording_.events.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = recording_.events.begin() + static_cast<std::ptrdiff_t>(last);
        if (!std::equal(begin, end, made.begin(), made.end(), is_same_segment_event)) {
            driver_ = before;
            return 0;
        }
        simulator_ = std::move(trial);
        return made.size();
    }

    void take_release(std::size_t i) {
        const RecordedEvent& event = recording_.events[i];
        const bool is_done =
            event.action == RecordedAction::kSegmentFree && simulator_.free_segment(event.address);
        if (!is_done) note(i, "of {:#x} is not possible in the simulator", event.address);
        simulator_.take_events();
    }

    /// Compares the segments that the simulator asked the driver for with torch's segments.
    void settle_segment_events(std::size_t i) {
        const auto& expected = driver_.expected();
        if (expected.empty() && !simulator_.has_events()) return;
        const auto made = simulator_.take_events();
        std::size_t same = 0;
        while (same < made.size() && same < expected.size() &&
               is_same_segment_event(made[same], expected[same].event)) {
            ++same;
        }
        report_.segment_event_matches += static_cast<int64_t>(same);
        report_.extra_segment_events += static_cast<int64_t>(made.size() - same);
        if (made.size() != same) note(i, "made the simulator ask for a segment, but not torch");
        if (expected.size() != same) note(i, "made torch ask for a segment, but not the simulator");
        driver_.forget();
    }

    void compare_reserved(std::size_t i) {
        if (simulator_.use().reserved_bytes == reserved_bytes_) return;
        ++report_.reserved_mismatches;
        note(i, "has {} bytes reserved, the simulator {}", reserved_bytes_,
             simulator_.use().reserved_bytes);
    }

    void compare_final_state() {
        const auto mine = simulator_.segments();
        const auto& theirs = recording_.segments;
        report_.final_state_matches = mine == theirs;
        if (report_.final_state_matches || !report_.first_difference.empty()) return;
        const auto [a, b] = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
        report_.first_difference =
            b == theirs.end()
                ? fmt::format("The simulator ends with a segment at {:#x} that is not recorded.",
                              a->address)
                : fmt::format("The recorded segment at {:#x} ends differently in the simulator.",
                              b->address);
    }

    int64_t pool_of(const RecordedEvent& event) const {
        if (event.pool >= 0) return event.pool;
        if (!has_private_pools_) return 0;
        const auto after = pool_of_segment_.upper_bound(event.address);
        return after == pool_of_segment_.begin() ? 0 : std::prev(after)->second;
    }

    void keep_peak() {
        if (simulator_.use().allocated_bytes <= report_.at_peak.allocated_bytes) return;
        report_.at_peak = simulator_.use();
        report_.num_segments_at_peak = simulator_.num_segments();
    }

    template <typename... Args>
    void note(std::size_t i, fmt::format_string<Args...> text, Args&&... args) {
        if (!report_.first_difference.empty()) return;
        const RecordedEvent& event = recording_.events[i];
        report_.first_difference =
            fmt::format("Event {} ({} of {} bytes) {}.", i, name_of(event.action), event.size_bytes,
                        fmt::format(text, std::forward<Args>(args)...));
    }

    const AllocatorRecording& recording_;
    RecordedDriver driver_;
    Simulator simulator_;
    std::unordered_map<int64_t, BlockHandle> live_;       // by recorded address
    std::unordered_map<BlockHandle, int64_t> open_rest_;  // how much each may still grow
    std::map<int64_t, int64_t> pool_of_segment_;
    bool has_private_pools_ = false;
    bool has_released_ = false;   // after the last allocation or free by the program
    int64_t reserved_bytes_ = 0;  // of the recording
    ReplayReport report_;
};

/// The order of torch 2.12 if it places most of the blocks that the older order misplaces, else the
/// older order: a recording with gaps fits neither.
TieOrder fitting_order(const AllocatorRecording& recording, const AllocatorSettings& settings,
                       const StartState& start) {
    const auto num_misplaced = [&](TieOrder order) {
        const ReplayReport report = Replayer(recording, settings, start, order).run();
        return report.allocations - report.address_matches;
    };
    const int64_t by_address = num_misplaced(TieOrder::kAddress);
    if (by_address == 0) return TieOrder::kAddress;
    const bool fits = num_misplaced(TieOrder::kBlockAge) < by_address / 4 + 1;
    return fits ? TieOrder::kBlockAge : TieOrder::kAddress;
}

}  // namespace

models::Result<ReplayReport> replay(const AllocatorRecording& recording,
                                    const AllocatorSettings& settings) {
    const auto start = rebuild_start_state(recording, settings);
    if (!start) return tl::unexpected(start.error());
    return Replayer(recording, settings, *start, tie_order_of(recording)).run();
}

TieOrder tie_order_of(const AllocatorRecording& recording) {
    constexpr std::size_t kMostEvents = 5'000'000;  // more take seconds
    if (recording.settings.tie_order) return *recording.settings.tie_order;
    if (recording.events.size() > kMostEvents) return TieOrder::kAddress;
    const AllocatorSettings settings = settings_of(recording.settings);
    const auto start = rebuild_start_state(recording, settings);
    return start ? fitting_order(recording, settings, *start) : TieOrder::kAddress;
}

}  // namespace profiler
