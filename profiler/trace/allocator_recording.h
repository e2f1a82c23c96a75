#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a caching allocator did on one device: its events in order, and the segments that it held
/// at the end. Readers of other tools' files fill it, and the allocator simulator replays it.
///
/// The sizes of alloc and free events are the bytes asked for. The sizes of segments and blocks are
/// the bytes taken. A recording rarely begins with an empty allocator: its first events may free
/// blocks that were allocated before.
namespace profiler {

enum class RecordedAction : uint8_t {
    kAlloc,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOom,
    kSnapshot,
    kAnnotate  // a text for a live block; readers move it to the block's stack
};
inline constexpr std::array<std::string_view, 10> kRecordedActionNames{
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "annotate"};

constexpr std::string_view name_of(RecordedAction v) {
    return kRecordedActionNames[static_cast<std::size_t>(v)];
}

/// The action of a row of `allocator_event`. That table holds actions on segments, out of memory
/// and snapshots; actions on blocks are in `allocation`.
constexpr AllocatorAction action_of(RecordedAction action) {
    switch (action) {
        case RecordedAction::kSegmentAlloc:
            return AllocatorAction::kSegmentAlloc;
        case RecordedAction::kSegmentFree:
            return AllocatorAction::kSegmentFree;
        case RecordedAction::kSegmentMap:
            return AllocatorAction::kSegmentMap;
        case RecordedAction::kSegmentUnmap:
            return AllocatorAction::kSegmentUnmap;
        case RecordedAction::kOom:
            return AllocatorAction::kOom;
        default:
            return AllocatorAction::kSnapshot;
    }
}

struct RecordedEvent {
    RecordedAction action = RecordedAction::kAlloc;
    int32_t stack = -1;      // of alloc and oom: index into RecordedStacks::stacks; -1 = none
    int64_t address = 0;     // for kOom: free bytes of the device
    int64_t size_bytes = 0;  // of a block or kOom, the bytes asked for; of a segment, those taken
    int64_t stream = 0;      // CUDA's handle
    int64_t pool = -1;       // 0 = default, private pools from 1, -1 = not recorded
    int64_t time_us = -1;    // since 1970; -1 = not recorded

    friend bool operator==(const RecordedEvent&, const RecordedEvent&) = default;
};

/// When an action of an allocator happened.
struct AllocatorMoment {
    int64_t event = 0;  // its number in the total order
    int64_t time_ns = 0;
    Id<Op> op;  // the innermost op that ran on the thread
};

enum class BlockState : uint8_t { kInactive, kAllocated, kPendingFree };

struct RecordedBlock {
    int64_t address = 0;
    int64_t size_bytes = 0;
    int64_t requested_bytes = 0;  // 0 when inactive
    BlockState state = BlockState::kInactive;

    friend bool operator==(const RecordedBlock&, const RecordedBlock&) = default;
};

/// Memory held by the allocator: one cudaMalloc, or one contiguous mapped range of an expandable
/// segment.
struct RecordedSegment {
    int64_t address = 0;
    int64_t size_bytes = 0;
    int64_t stream = 0;
    int64_t pool = 0;
    bool is_small = false;
    bool is_expandable = false;
    std::vector<RecordedBlock> blocks;  // by address, without gaps

    friend bool operator==(const RecordedSegment&, const RecordedSegment&) = default;
};

/// Which of several free blocks of the same size serves a request. torch has changed it twice.
enum class TieOrder : uint8_t {
    kAddress,    // the lowest address: up to torch 2.11
    kBlockAge,   // the block that was made first: torch 2.12
    kSegmentAge  // the block in the oldest segment, in it the lowest address: since torch 2.13
};

/// The allocator settings that the recording names, and what it tells of the version of torch.
struct RecordedSettings {
    std::string alloc_conf;        // PYTORCH_CUDA_ALLOC_CONF, may be empty
    int64_t max_split_bytes = -1;  // -1 = unlimited
    double gc_threshold = 0;       // 0 = off
    bool expandable_segments = false;
    std::vector<int64_t> roundup_power2_divisions;  // of 1, 2, 4, ... MiB; empty = not recorded
    std::optional<TieOrder> tie_order;  // of torch 2.12 or older if the recording does not tell
};

struct RecordedFrame {
    int32_t function = 0;  // index into RecordedStacks::texts
    int32_t file = 0;      // the same
    int64_t line = 0;

    friend auto operator<=>(const RecordedFrame&, const RecordedFrame&) = default;
};

/// A call stack: its innermost frame, and the stack around it.
struct RecordedStack {
    int32_t parent = -1;  // index into RecordedStacks::stacks, before this one; -1 = none
    int32_t frame = 0;    // index into RecordedStacks::frames

    friend auto operator<=>(const RecordedStack&, const RecordedStack&) = default;
};

/// The call stacks of all devices of a file, each text, frame and stack once.
struct RecordedStacks {
    std::vector<std::string> texts;
    std::vector<RecordedFrame> frames;
    std::vector<RecordedStack> stacks;
};

/// The call stack of a block that is in use after the last event.
struct RecordedBlockStack {
    int64_t address = 0;
    int32_t stack = -1;  // index into RecordedStacks::stacks

    friend bool operator==(const RecordedBlockStack&, const RecordedBlockStack&) = default;
};

/// The device number of pinned memory, as torch numbers it.
inline constexpr int64_t kHostDevice = -1;

struct AllocatorRecording {
    int64_t device = 0;
    RecordedSettings settings;
    std::vector<RecordedEvent> events;             // the total order
    std::vector<RecordedSegment> segments;         // after the last event, by address
    std::vector<RecordedBlockStack> block_stacks;  // of the blocks whose stack was recorded
    std::shared_ptr<const RecordedStacks> stacks;  // null when no event and no block has a stack
};

}  // namespace profiler
