#include "profiler/formats/snapshot/snapshot_fold.h"

#include "profiler/formats/snapshot/snapshot_fields.h"
#include "profiler/formats/snapshot/stack_table.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// Source of the keys: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py.
namespace profiler {
namespace {

using namespace snapshot;

/// The tag of a container. The payload is the number of its row, unless it says otherwise.
enum Tag : uint8_t {
    kNew,          // nothing was put into it
    kOther,        // of no interest
    kPair,         // of numbers: a row of pools_
    kFrame,        // a frame of stacks_
    kStack,        // a list of frames: a stack of stacks_, the number of frames above bit 32
    kEvent,        // of events_, which waits for its list
    kOtherEvent,   // an event that does not concern the allocator's state
    kEvents,       // a list of events_
    kTraces,       // a list of traces_
    kUse,          // a use of an old block: of uses_
    kUses,         // a list of those: the first of uses_
    kBlock,        // of blocks_
    kBlockList,    // of blocks_
    kSegment,      // of segments_
    kSegmentList,  // of segments_
    kAnnotation,   // of annotations_
    kAnnotations,  // a list of annotations_
    kSettings,     // settings_
    kDivisions,    // divisions_
    kSnapshot
};

bool is(const PlainValue& value, Tag tag) {
    return value.kind >= ValueKind::kList && value.tag == tag;  // texts have words for tags
}

struct BlockRow {
    RecordedBlock block;  // address -1: old snapshots do not have it
    int32_t stack = -1;
};

struct SegmentRow {
    RecordedSegment segment;
    std::vector<BlockRow> blocks;
    int64_t device = 0;
};

/// What a block of 2022 or 2023 was used for.
struct UseRow {
    int64_t requested_bytes = 0;
    int32_t stack = -1;
};

struct AnnotationRow {
    StringId name;
    bool is_start = false;
    int64_t device = 0;
    int64_t time_us = 0;
};

constexpr int64_t kMaxDevices = 1024;
constexpr int64_t kMaxBytes = int64_t{1} << 44;    // of one block: 16 TiB
constexpr int64_t kMaxAddress = int64_t{1} << 57;  // what processors can address

}  // namespace

class SnapshotFold::Rows {
public:
    PlainValue text(std::string_view text) {
        const StringId id = texts_.intern(text);
        if (id.index() == words_.size()) {
            words_.push_back(word_of(text));
            text_bytes_ += 2 * text.size() + 128;  // StringTable has it as a row and as a key
        }
        return {ValueKind::kText, words_[id.index()], PlainValue::kNoMemo, id.value};
    }

    PlainValue extend(const PlainValue& to, std::span<const PlainValue> items) {
        return to.kind == ValueKind::kDict ? extend_dict(to, items) : extend_list(to, items);
    }

    std::size_t memory_bytes() const {
        constexpr std::size_t kNodeBytes = 64;  // of a map
        std::size_t bytes = text_bytes_ + pools_.size() * kNodeBytes + stacks_.memory_bytes() +
                            events_.memory_bytes() + blocks_.memory_bytes() +
                            segments_.memory_bytes() + annotations_.memory_bytes();
        bytes += uses_.size() * sizeof(UseRow);
        for (const auto& trace : traces_) bytes += sizeof(trace) + trace.size() * sizeof(trace[0]);
        return bytes;
    }

    void advance(double share) { share_read_ = share; }

    PytorchSnapshot finish(const PlainValue& root) {
        if (root.tag != kSnapshot || !has_traces_ || !has_segments_) {
            stop("it has no segments and device_traces: not a memory snapshot");
        }
        number_pools();
        for (SegmentRow& row : found_segments_) add_segment(row);
        for (SegmentRow& row : host_segments_) add_segment(row, snapshot_.host);
        for (std::size_t i = 0; i < snapshot_.devices.size(); ++i) {
            snapshot_.devices[i].device = static_cast<int64_t>(i);
            snapshot_.devices[i].settings = settings_;
        }
        for (AllocatorRecording* device : all_devices()) {
            std::ranges::sort(device->segments, {}, &RecordedSegment::address);
            std::ranges::stable_sort(device->block_stacks, {}, &RecordedBlockStack::address);
            join_marks(device->block_stacks);
        }
        const auto stacks = std::make_shared<const RecordedStacks>(take_stacks());
        for (AllocatorRecording* device : all_devices()) {
            if (!stacks->stacks.empty()) device->stacks = stacks;
        }
        if (snapshot_.devices.empty()) snapshot_.devices.emplace_back();
        return std::move(snapshot_);
    }

private:
    std::vector<AllocatorRecording*> all_devices() {
        std::vector<AllocatorRecording*> all;
        for (AllocatorRecording& device : snapshot_.devices) all.push_back(&device);
        all.push_back(&snapshot_.host);
        return all;
    }

    static PlainValue container(ValueKind kind, Tag tag, int64_t payload = -1) {
        return {kind, tag, PlainValue::kNoMemo, payload};
    }

    // ---- dictionaries -----------------------------------------------------------------------

    PlainValue extend_dict(const PlainValue& to, std::span<const PlainValue> items) {
        constexpr auto kDict = ValueKind::kDict;
        if (to.tag == kOther) return to;
        const Fields fields(items);
        const bool is_snapshot = fields.has(kSegments) || fields.has(kDeviceTraces) ||
                                 fields.has(kAllocatorSettings) ||
                                 fields.has(kExternalAnnotations) || fields.has(kHostTraces);
        if (to.tag == kSnapshot || (to.tag == kNew && is_snapshot)) {
            take_snapshot(fields);
            return container(kDict, kSnapshot);
        }
        if (to.tag != kNew) stop("a dictionary is written in parts");
        if (fields.has(kAction)) return fold_event(fields);
        if (fields.has(kState)) {
            return container(kDict, kBlock, blocks_.add(read_block(fields), share_read_));
        }
        if (fields.has(kBlocks) || fields.has(kTotalSize)) {
            return container(kDict, kSegment, segments_.add(read_segment(fields), share_read_));
        }
        if (fields.has(kStage)) return fold_annotation(fields);
        if (fields.has(kRealSize)) {
            uses_.push_back({fields.within(kRealSize, kMaxBytes), stack(fields[kFrames])});
            return container(kDict, kUse, std::ssize(uses_) - 1);
        }
        if (fields.has(kFilename) || fields.has(kLine)) {
            return container(kDict, kFrame,
                             stacks_.add_frame({.function = text_in(fields[kName]),
                                                .file = text_in(fields[kFilename]),
                                                .line = fields.integer_or(kLine, 0)}));
        }
        if (fields.has(kMaxSplitSize) || fields.has(kAllocConf) ||
            fields.has(kExpandableSegments)) {
            settings_ = read_settings(fields);
            return container(kDict, kSettings);
        }
        return fold_divisions(items);
    }

    std::string_view text_of(const PlainValue& value) const {
        if (value.kind != ValueKind::kText) return {};
        return texts_[StringId(static_cast<std::size_t>(value.payload))];
    }

    /// The number of a text; that of "" for any other value.
    int32_t text_in(const PlainValue& value) {
        if (value.kind == ValueKind::kText) return static_cast<int32_t>(value.payload);
        return static_cast<int32_t>(text("").payload);
    }

    static bool flag(const PlainValue& value) { return integer_of(value).value_or(0) != 0; }

    /// A row of pools_; -1 when there is none.
    static int64_t pool(const PlainValue& value) { return is(value, kPair) ? value.payload : -1; }

    static int32_t stack(const PlainValue& frames) {
        return is(frames, kStack) ? static_cast<int32_t>(frames.payload) : -1;
    }

    /// The call stack of a request, with what else the file says of its place.
    int32_t stack_of_event(const Fields& fields) {
        int32_t found = stack(fields[kFrames]);
        for (const auto& [key, file] : {std::pair(kCompileContext, kCompileContextFile),
                                        std::pair(kUserMetadata, kUserMetadataFile)}) {
            const std::string_view place = text_of(fields[key]);
            if (place.empty() || place == "N/A") continue;
            found = add_place(found, fields[key], file);
        }
        return found;
    }

    int32_t add_place(int32_t stack, const PlainValue& place, std::string_view file) {
        return stacks_.add_inside(
            stack, stacks_.add_frame({.function = text_in(place),
                                      .file = static_cast<int32_t>(text(file).payload)}));
    }

    PlainValue fold_event(const Fields& fields) {
        const PlainValue& name = fields[kAction];
        if (text_of(name).empty()) stop("an event has no action");
        if (name.tag < kFirstAction) return container(ValueKind::kDict, kOtherEvent);
        RecordedEvent read;
        read.action = static_cast<RecordedAction>(name.tag - kFirstAction);
        const bool is_oom = read.action == RecordedAction::kOom;
        read.address =
            is_oom ? fields.integer_or(kDeviceFree, 0) : fields.within(kAddr, kMaxAddress);
        read.size_bytes = is_oom ? fields.integer(kSize) : fields.within(kSize, kMaxBytes);
        read.stream = fields.integer_or(kStream, 0);
        read.pool = pool(fields[kPoolId]);
        read.time_us = fields.integer_or(kTimeUs, -1);
        if (is_oom || read.action == RecordedAction::kAlloc) read.stack = stack_of_event(fields);
        if (read.action == RecordedAction::kAnnotate) {
            read.stack = add_place(-1, fields[kUserMetadata], kUserMetadataFile);
        }
        return container(ValueKind::kDict, kEvent, events_.add(read, share_read_));
    }

    BlockRow read_block(const Fields& fields) {
        BlockRow row;
        RecordedBlock& read = row.block;
        read.address = fields.integer_or(kAddress, -1);
        read.size_bytes = fields.within(kSize, kMaxBytes);
        if (read.size_bytes == 0) stop("a block has no bytes");
        const std::string_view state = text_of(fields[kState]);
        if (state == "inactive") return row;
        if (!state.starts_with("active")) stop("the state of a block is not known");
        read.state =
            state == "active_allocated" ? BlockState::kAllocated : BlockState::kPendingFree;
        UseRow use{fields.integer_or(kRequestedSize, read.size_bytes), stack(fields[kFrames])};
        const PlainValue& history = fields[kHistory];
        if (is(history, kUses)) use = uses_[static_cast<std::size_t>(history.payload)];
        read.requested_bytes = std::min(use.requested_bytes, read.size_bytes);
        row.stack = use.stack;
        return row;
    }

    SegmentRow read_segment(const Fields& fields) {
        const PlainValue& blocks = fields[kBlocks];
        const bool is_empty = blocks.kind == ValueKind::kList && blocks.tag == kNew;
        if (!is_empty && !is(blocks, kBlockList)) stop("a segment has no blocks");
        SegmentRow row{.segment = {.address = fields.within(kAddress, kMaxAddress),
                                   .size_bytes = fields.within(kTotalSize, kMaxBytes),
                                   .stream = fields.integer_or(kStream, 0),
                                   .pool = pool(fields[kSegmentPoolId]),
                                   .is_small = text_of(fields[kSegmentType]) == "small",
                                   .is_expandable = flag(fields[kIsExpandable])},
                       .blocks = is_empty ? std::vector<BlockRow>() : blocks_.take(blocks.payload),
                       .device = std::max<int64_t>(fields.integer_or(kDevice, 0), 0)};
        if (row.device >= kMaxDevices) stop("the device number of a segment is impossible");
        check_blocks(row);
        return row;
    }

    /// Blocks of old snapshots have no address: each begins where the one before it ends.
    static void check_blocks(SegmentRow& row) {
        const RecordedSegment& segment = row.segment;
        int64_t end = segment.address;
        for (auto& [block, stack] : row.blocks) {
            if (block.address < 0) block.address = end;
            if (block.address != end) stop("a block does not follow the block before it");
            end += block.size_bytes;
            if (end > segment.address + segment.size_bytes) stop("a block ends after its segment");
        }
        if (end != segment.address + segment.size_bytes) {
            stop("the blocks of a segment do not fill it");
        }
    }

    PlainValue fold_annotation(const Fields& fields) {
        const auto name = StringId(static_cast<std::size_t>(text_in(fields[kName])));
        return container(ValueKind::kDict, kAnnotation,
                         annotations_.add({.name = name,
                                           .is_start = text_of(fields[kStage]) == "START",
                                           .device = fields.integer_or(kDevice, 0),
                                           .time_us = fields.integer_or(kTimeUs, -1)},
                                          share_read_));
    }

    RecordedSettings read_settings(const Fields& fields) {
        RecordedSettings read;
        read.alloc_conf = std::string(text_of(fields[kAllocConf]));
        read.max_split_bytes = fields.integer_or(kMaxSplitSize, -1);
        const PlainValue& threshold = fields[kGcThreshold];
        read.gc_threshold = threshold.kind == ValueKind::kReal
                                ? std::bit_cast<double>(threshold.payload)
                                : static_cast<double>(integer_of(threshold).value_or(0));
        read.expandable_segments = flag(fields[kExpandableSegments]);
        // A snapshot does not name its torch, but torch 2.13 and newer write this key.
        if (fields.has(kMaxRoundThreshold)) read.tie_order = TieOrder::kSegmentAge;
        if (is(fields[kRoundupDivisions], kDivisions))
            read.roundup_power2_divisions.assign(divisions_.begin(), divisions_.end());
        return read;
    }

    /// "1": 0, "2": 0, "4": 8, ...: the divisions of sizes from that many MiB on.
    PlainValue fold_divisions(std::span<const PlainValue> items) {
        std::array<int64_t, kNumDivisions> read{};
        for (std::size_t i = 0; i < items.size(); i += 2) {
            const std::string_view key = text_of(items[i]);
            uint64_t mebibytes = 0;
            const char* const end = key.data() + key.size();
            const auto parsed = std::from_chars(key.data(), end, mebibytes);
            const auto place = static_cast<std::size_t>(std::countr_zero(mebibytes));
            if (key.empty() || parsed.ptr != end || !std::has_single_bit(mebibytes) ||
                place >= read.size()) {
                return container(ValueKind::kDict, kOther);
            }
            const int64_t divisions = integer_of(items[i + 1]).value_or(0);
            read[place] = std::clamp<int64_t>(divisions, 0, int64_t{1} << 52);
        }
        divisions_ = read;
        return container(ValueKind::kDict, kDivisions);
    }

    // ---- lists ------------------------------------------------------------------------------

    PlainValue extend_list(const PlainValue& to, std::span<const PlainValue> items) {
        const PlainValue& first = items.front();
        if (to.tag == kOther) return to;
        if (first.kind == ValueKind::kInteger) return fold_pair(to, items);
        if (first.kind == ValueKind::kList) return extend_traces(to, items);
        if (first.kind != ValueKind::kDict) return container(ValueKind::kList, kOther);
        switch (first.tag) {
            case kFrame:
                return fold_stack(to, items);
            case kEvent:
            case kOtherEvent:
                return extend_rows(events_, to, items, {kEvent, kEvents});
            case kUse:
                if (to.tag == kUses) return to;
                return container(ValueKind::kList, kUses, first.payload);
            case kBlock:
                return extend_rows(blocks_, to, items, {kBlock, kBlockList});
            case kSegment:
                return extend_rows(segments_, to, items, {kSegment, kSegmentList});
            case kAnnotation:
                return extend_rows(annotations_, to, items, {kAnnotation, kAnnotations});
            default:
                return container(ValueKind::kList, kOther);
        }
    }

    struct RowTags {
        Tag row, list;
    };
    template <typename Row>
    PlainValue extend_rows(RowSeries<Row>& series, const PlainValue& to,
                           std::span<const PlainValue> items, RowTags tags) {
        if (to.tag != kNew && to.tag != tags.list) stop("a list holds values of different kinds");
        int64_t list = to.tag == kNew ? -1 : to.payload;
        int64_t next = -1;
        int64_t first = -1;
        for (const PlainValue& item : items) {
            if (is(item, kOtherEvent) && tags.row == kEvent) continue;
            if (!is(item, tags.row)) {
                stop(tags.row == kEvent ? "an event has no action"
                                        : "a list holds values of different kinds");
            }
            if (first < 0) first = next = item.payload;
            if (item.payload != next++) stop("the same values are listed twice");
        }
        if (first >= 0) {
            const auto moved = next == series.next() ? series.move_to_list(list, first, share_read_)
                                                     : std::nullopt;
            if (!moved) stop("the same values are listed twice");
            list = *moved;
        }
        return container(ValueKind::kList, tags.list, list);
    }

    PlainValue fold_pair(const PlainValue& to, std::span<const PlainValue> items) {
        if (to.tag != kNew || items.size() != 2 || items[1].kind != ValueKind::kInteger) {
            return container(ValueKind::kList, kOther);
        }
        const auto next = std::ssize(pools_);
        const auto pair = std::pair(items[0].payload, items[1].payload);
        return container(ValueKind::kList, kPair, pools_.try_emplace(pair, next).first->second);
    }

    /// Only the innermost frames are kept, and they come first.
    PlainValue fold_stack(const PlainValue& to, std::span<const PlainValue> items) {
        if (to.tag == kStack) {
            if (static_cast<std::size_t>(to.payload >> 32) >= kMostStackFrames) return to;
            stop("a list of frames is written in parts");
        }
        std::array<int32_t, kMostStackFrames> frames;
        const std::size_t count = std::min(items.size(), kMostStackFrames);
        for (std::size_t i = 0; i < count; ++i) {
            if (!is(items[i], kFrame)) stop("a list holds values of different kinds");
            frames[i] = static_cast<int32_t>(items[i].payload);
        }
        const int32_t stack = stacks_.add_stack(std::span(frames).first(count));
        return container(ValueKind::kList, kStack, static_cast<int64_t>(count) << 32 | stack);
    }

    PlainValue extend_traces(const PlainValue& to, std::span<const PlainValue> items) {
        const auto is_trace = [](const PlainValue& item) {
            return is(item, kEvents) || (item.kind == ValueKind::kList && item.tag == kNew);
        };
        if ((to.tag != kNew && to.tag != kTraces) || !std::ranges::all_of(items, is_trace)) {
            return container(ValueKind::kList, kOther);
        }
        if (to.tag == kNew) traces_.emplace_back();
        const int64_t list = to.tag == kNew ? std::ssize(traces_) - 1 : to.payload;
        for (const PlainValue& item : items) {
            traces_[static_cast<std::size_t>(list)].push_back(item.tag == kNew ? -1 : item.payload);
        }
        return container(ValueKind::kList, kTraces, list);
    }

    // ---- the snapshot -----------------------------------------------------------------------

    void take_snapshot(const Fields& fields) {
        const auto is_list = [&](Word key, Tag tag, const char* problem) {
            const PlainValue& value = fields[key];
            if (value.kind != ValueKind::kList) stop("a list is expected here");
            if (value.tag != tag && value.tag != kNew) stop(problem);
            return value.tag == tag;
        };
        if (fields.has(kDeviceTraces)) {
            has_traces_ = true;
            if (is_list(kDeviceTraces, kTraces, "an event has no action")) {
                take_traces(traces_[static_cast<std::size_t>(fields[kDeviceTraces].payload)]);
            }
        }
        if (fields.has(kSegments)) {
            has_segments_ = true;
            if (is_list(kSegments, kSegmentList, "a segment has no blocks")) {
                found_segments_ = segments_.take(fields[kSegments].payload);
            }
        }
        if (is(fields[kExternalAnnotations], kAnnotations)) {
            for (const AnnotationRow& row :
                 annotations_.take(fields[kExternalAnnotations].payload)) {
                snapshot_.annotations.push_back({.name = std::string(texts_[row.name]),
                                                 .is_start = row.is_start,
                                                 .device = row.device,
                                                 .time_us = row.time_us});
            }
        }
        if (fields.has(kTemposcope)) snapshot_.watched = text_of(fields[kTemposcope]);
        if (is(fields[kHostTraces], kEvents)) {
            snapshot_.host.events = events_.take(fields[kHostTraces].payload);
            move_annotations(snapshot_.host);
        }
        if (is(fields[kHostSegments], kSegmentList)) {
            host_segments_ = segments_.take(fields[kHostSegments].payload);
        }
    }

    void take_traces(std::span<const int64_t> lists) {
        if (std::ssize(lists) > kMaxDevices) stop("it has too many devices");
        for (const int64_t list : lists) {
            AllocatorRecording& device = snapshot_.devices.emplace_back();
            device.events = events_.take(list);
            if (list >= 0 && device.events.empty()) stop("the same values are listed twice");
            move_annotations(device);
        }
    }

    /// What a program attached to a live block becomes the innermost frame of the block's stack.
    /// Blocks from before the history have a stack only if they live at the end.
    void move_annotations(AllocatorRecording& device) {
        const auto is_annotation = [](const RecordedEvent& event) {
            return event.action == RecordedAction::kAnnotate;
        };
        if (std::ranges::none_of(device.events, is_annotation)) return;
        std::unordered_map<int64_t, int32_t*> live;  // stacks by address; null: of a freed block
        std::map<int64_t, int32_t> older;            // stacks of blocks from before the history
        for (RecordedEvent& event : device.events) {
            if (event.action == RecordedAction::kAlloc) live[event.address] = &event.stack;
            if (event.action == RecordedAction::kFreeRequested) {
                live[event.address] = nullptr;
                older.erase(event.address);
            }
            if (!is_annotation(event)) continue;
            const auto block = live.find(event.address);
            if (block != live.end() && block->second == nullptr) continue;
            int32_t& stack = block != live.end()
                                 ? *block->second
                                 : older.try_emplace(event.address, -1).first->second;
            const auto note = static_cast<std::size_t>(event.stack);
            stack = stacks_.add_inside(stack, stacks_.stacks()[note].frame);
        }
        for (const auto& [address, stack] : older) device.block_stacks.push_back({address, stack});
        std::erase_if(device.events, is_annotation);
    }

    /// (0, 0) is the default pool; others are numbered from 1 in the order in which they appear.
    void number_pools() {
        std::vector<int64_t> numbers(pools_.size(), -1);
        const auto zero = pools_.find({0, 0});
        if (zero != pools_.end()) numbers[static_cast<std::size_t>(zero->second)] = 0;
        int64_t next = 1;
        const auto number = [&](int64_t& pool) {
            if (pool < 0) return;
            int64_t& known = numbers[static_cast<std::size_t>(pool)];
            if (known < 0) known = next++;
            pool = known;
        };
        for (AllocatorRecording* device : all_devices()) {
            for (RecordedEvent& event : device->events) number(event.pool);
        }
        for (std::vector<SegmentRow>* rows : {&found_segments_, &host_segments_}) {
            for (SegmentRow& row : *rows) {
                number(row.segment.pool);
                row.segment.pool = std::max<int64_t>(row.segment.pool, 0);
            }
        }
    }

    /// An annotation of a block from before the history comes before the stack of the block.
    void join_marks(std::vector<RecordedBlockStack>& stacks) {
        const auto is_of_next = [&](std::size_t i) {
            return i + 1 < stacks.size() && stacks[i].address == stacks[i + 1].address;
        };
        for (std::size_t i = 0; i < stacks.size(); ++i) {
            if (!is_of_next(i)) continue;
            stacks[i].stack = stacks_.add_all_inside(stacks[i + 1].stack, stacks[i].stack);
        }
        const auto twice = std::ranges::unique(stacks, {}, &RecordedBlockStack::address);
        stacks.erase(twice.begin(), twice.end());
    }

    void add_segment(SegmentRow& row) {
        const auto number = static_cast<std::size_t>(row.device);
        if (number >= snapshot_.devices.size()) snapshot_.devices.resize(number + 1);
        add_segment(row, snapshot_.devices[number]);
    }

    static void add_segment(SegmentRow& row, AllocatorRecording& device) {
        row.segment.blocks.reserve(row.blocks.size());
        for (const BlockRow& block : row.blocks) {
            row.segment.blocks.push_back(block.block);
            if (block.stack < 0) continue;
            device.block_stacks.push_back({block.block.address, block.stack});
        }
        row.blocks = {};
        device.segments.push_back(std::move(row.segment));
    }

    /// The stacks, frames and texts of events and blocks, numbered in the order of their first use:
    /// a snapshot that is read and written again keeps its numbers.
    RecordedStacks take_stacks() {
        RecordedStacks taken;
        std::vector<int32_t> stacks(stacks_.stacks().size(), -1);
        std::vector<int32_t> frames(stacks_.frames().size(), -1), texts(texts_.size(), -1);
        const auto take_text = [&](int32_t text) {
            int32_t& number = texts[static_cast<std::size_t>(text)];
            if (number >= 0) return number;
            taken.texts.emplace_back(texts_[StringId(static_cast<std::size_t>(text))]);
            return number = static_cast<int32_t>(taken.texts.size()) - 1;
        };
        const auto take_frame = [&](int32_t frame) {
            int32_t& number = frames[static_cast<std::size_t>(frame)];
            if (number >= 0) return number;
            const RecordedFrame& row = stacks_.frames()[static_cast<std::size_t>(frame)];
            const int32_t function = take_text(row.function);
            taken.frames.push_back({function, take_text(row.file), row.line});
            return number = static_cast<int32_t>(taken.frames.size()) - 1;
        };
        std::vector<std::size_t> chain;
        const auto take_stack = [&](int32_t& stack) {
            if (stack < 0) return;
            for (int32_t s = stack; s >= 0 && stacks[static_cast<std::size_t>(s)] < 0;) {
                chain.push_back(static_cast<std::size_t>(s));
                s = stacks_.stacks()[chain.back()].parent;
            }
            for (; !chain.empty(); chain.pop_back()) {
                const RecordedStack& row = stacks_.stacks()[chain.back()];
                const int32_t parent =
                    row.parent < 0 ? -1 : stacks[static_cast<std::size_t>(row.parent)];
                stacks[chain.back()] = static_cast<int32_t>(taken.stacks.size());
                taken.stacks.push_back({parent, take_frame(row.frame)});
            }
            stack = stacks[static_cast<std::size_t>(stack)];
        };
        for (AllocatorRecording* device : all_devices()) {
            for (RecordedEvent& event : device->events) take_stack(event.stack);
        }
        for (AllocatorRecording* device : all_devices()) {
            for (RecordedBlockStack& block : device->block_stacks) take_stack(block.stack);
        }
        return taken;
    }

    static constexpr std::size_t kNumDivisions = 16;  // of 1 MiB to 32 GiB

    double share_read_ = 0;
    StringTable texts_;
    std::vector<uint8_t> words_;  // of the texts
    std::size_t text_bytes_ = 0;
    StackTable stacks_;
    std::map<std::pair<int64_t, int64_t>, int64_t> pools_;
    RowSeries<RecordedEvent> events_;
    RowSeries<BlockRow> blocks_;
    RowSeries<SegmentRow> segments_;
    std::vector<UseRow> uses_;
    RowSeries<AnnotationRow> annotations_;
    std::vector<std::vector<int64_t>> traces_;  // lists of lists of events
    RecordedSettings settings_;
    std::array<int64_t, kNumDivisions> divisions_{};

    bool has_traces_ = false;
    bool has_segments_ = false;
    std::vector<SegmentRow> found_segments_;
    std::vector<SegmentRow> host_segments_;
    PytorchSnapshot snapshot_;
};

SnapshotFold::SnapshotFold() : rows_(std::make_unique<Rows>()) {}
SnapshotFold::~SnapshotFold() = default;

PlainValue SnapshotFold::text(std::string_view text) { return rows_->text(text); }
std::size_t SnapshotFold::memory_bytes() const { return rows_->memory_bytes(); }
void SnapshotFold::advance(double share) { rows_->advance(share); }

models::Result<PlainValue> SnapshotFold::extend(PlainValue container,
                                                std::span<const PlainValue> items) try {
    return rows_->extend(container, items);
} catch (const Problem& problem) {
    return models::fail("{}", problem.text);
}

models::Result<PytorchSnapshot> SnapshotFold::finish(const PlainValue& root) try {
    return rows_->finish(root);
} catch (const Problem& problem) {
    return models::fail("{}", problem.text);
}

}  // namespace profiler
