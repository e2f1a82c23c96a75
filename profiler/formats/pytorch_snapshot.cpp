#include "profiler/formats/pytorch_snapshot.h"

#include "profiler/formats/file_bytes.h"
#include "profiler/formats/pickle.h"
#include "profiler/formats/recorded_trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>

namespace profiler {
namespace {

using models::fail;
using models::Result;

/// A value that is not as it should be: its position, and what is wrong. Thrown and caught in this
/// file only, because the dictionary is deep and each level may find one.
struct Problem {
    std::size_t offset = 0;
    std::string text;
};

class SnapshotReader {
public:
    SnapshotReader(const Pickle& pickle, std::size_t size_bytes)
        : pickle_(pickle), visits_left_(size_bytes) {}

    PytorchSnapshot read() {
        const auto root = pickle_.root();
        const auto segments = pickle_.find(root, "segments");
        const auto traces = pickle_.find(root, "device_traces");
        if (!segments || !traces) {
            stop(root, "it has no segments and device_traces: not a memory snapshot");
        }
        for_each(*traces, [&](Index trace) { read_trace(trace); });
        for_each(*segments, [&](Index segment) { read_segment(segment); });
        const RecordedSettings settings = read_settings(pickle_.find(root, "allocator_settings"));
        const auto stacks = std::make_shared<const RecordedStacks>(std::move(stacks_));
        for (std::size_t i = 0; i < snapshot_.devices.size(); ++i) {
            AllocatorRecording& device = snapshot_.devices[i];
            device.device = static_cast<int64_t>(i);
            device.settings = settings;
            if (!stacks->stacks.empty()) device.stacks = stacks;
            std::sort(device.segments.begin(), device.segments.end(),
                      [](const RecordedSegment& a, const RecordedSegment& b) {
                          return a.address < b.address;
                      });
        }
        if (snapshot_.devices.empty()) snapshot_.devices.emplace_back();
        return std::move(snapshot_);
    }

private:
    using Index = Pickle::Index;
    static constexpr int64_t kMaxDevices = 1024;
    static constexpr int64_t kMaxBytes = int64_t{1} << 44;    // of one block: 16 TiB
    static constexpr int64_t kMaxAddress = int64_t{1} << 57;  // what processors can address
    static constexpr std::size_t kMaxFrames = 256;            // of one call stack

    [[noreturn]] void stop(Index value, std::string text) const {
        throw Problem{pickle_.offset(value), std::move(text)};
    }

    /// Visits the elements of a list. A pickle can refer to one list many times at no cost. The
    /// number of visits is limited to the size of the file, so a small file cannot cause endless
    /// work.
    template <typename Visit>
    void for_each(Index list, Visit&& visit) {
        if (pickle_.kind(list) != PickleKind::kList && pickle_.kind(list) != PickleKind::kTuple) {
            stop(list, "a list is expected here");
        }
        for (std::size_t i = 0; i < pickle_.size(list); ++i) {
            if (visits_left_-- == 0) stop(list, "the same values are repeated without end");
            visit(pickle_.element(list, i));
        }
    }

    // ---- fields -----------------------------------------------------------------------------

    std::optional<int64_t> optional_integer(Index dict, std::string_view key) const {
        const auto value = pickle_.find(dict, key);
        return value ? pickle_.integer(*value) : std::nullopt;
    }

    int64_t integer(Index dict, std::string_view key) const {
        const auto value = optional_integer(dict, key);
        if (!value) stop(dict, fmt::format("a number '{}' is missing", key));
        return *value;
    }

    int64_t within(Index dict, std::string_view key, int64_t limit) const {
        const int64_t value = integer(dict, key);
        if (value < 0 || value > limit) {
            stop(dict, fmt::format("'{}' is {}, which is impossible", key, value));
        }
        return value;
    }

    std::string_view text(Index dict, std::string_view key) const {
        const auto value = pickle_.find(dict, key);
        return value ? pickle_.text(*value).value_or("") : std::string_view();
    }

    bool flag(Index dict, std::string_view key) const {
        return optional_integer(dict, key).value_or(0) != 0;
    }

    /// A pool is a pair of numbers: (0, 0) is the default pool, others are numbered from 1 in the
    /// order in which they appear.
    int64_t pool(Index dict, std::string_view key, int64_t missing) {
        const auto pair = pickle_.find(dict, key);
        if (!pair || pickle_.size(*pair) != 2) return missing;
        const auto first = pickle_.integer(pickle_.element(*pair, 0));
        const auto second = pickle_.integer(pickle_.element(*pair, 1));
        if (!first || !second) return missing;
        if (*first == 0 && *second == 0) return 0;
        const auto next = static_cast<int64_t>(pools_.size()) + 1;
        return pools_.emplace(std::pair(*first, *second), next).first->second;
    }

    // ---- parts ------------------------------------------------------------------------------

    void read_trace(Index trace) {
        if (snapshot_.devices.size() >= kMaxDevices) stop(trace, "it has too many devices");
        AllocatorRecording& device = snapshot_.devices.emplace_back();
        for_each(trace, [&](Index event) {
            if (const auto read = read_event(event)) device.events.push_back(*read);
        });
    }

    /// Nothing for an action that does not concern the allocator's state: an annotation, or an
    /// action of a later torch.
    std::optional<RecordedEvent> read_event(Index event) {
        const std::string_view name = text(event, "action");
        const auto action =
            std::find(kRecordedActionNames.begin(), kRecordedActionNames.end(), name);
        if (name.empty()) stop(event, "an event has no action");
        if (action == kRecordedActionNames.end()) return std::nullopt;
        RecordedEvent read;
        read.action = static_cast<RecordedAction>(action - kRecordedActionNames.begin());
        const bool is_oom = read.action == RecordedAction::kOom;
        read.address = is_oom ? optional_integer(event, "device_free").value_or(0)
                              : within(event, "addr", kMaxAddress);
        read.size_bytes = is_oom ? integer(event, "size") : within(event, "size", kMaxBytes);
        read.stream = optional_integer(event, "stream").value_or(0);
        read.pool = pool(event, "pool_id", -1);
        read.time_us = optional_integer(event, "time_us").value_or(-1);
        if (read.action == RecordedAction::kAlloc) read.stack = read_stack(event);
        return read;
    }

    /// Events and blocks of one call stack refer to one list, and lists refer to the same frames
    /// and texts. Each of them is read once, so work and memory stay within the size of the file.
    int32_t read_stack(Index event_or_block) {
        const auto frames = pickle_.find(event_or_block, "frames");  // the innermost first
        if (!frames || pickle_.kind(*frames) != PickleKind::kList) return -1;
        const auto [known, is_new] = stack_of_list_.try_emplace(*frames, -1);
        if (!is_new) return known->second;
        int32_t stack = -1;
        for (std::size_t i = std::min(pickle_.size(*frames), kMaxFrames); i-- > 0;) {
            const int32_t frame = read_frame(pickle_.element(*frames, i));
            stack = number_of({.parent = stack, .frame = frame}, stacks_.stacks, stack_numbers_);
        }
        known->second = stack;
        return stack;
    }

    int32_t read_frame(Index dict) {
        const auto [known, is_new] = frame_of_dict_.try_emplace(dict, -1);
        if (is_new) {
            const RecordedFrame frame{.function = read_text(dict, "name"),
                                      .file = read_text(dict, "filename"),
                                      .line = optional_integer(dict, "line").value_or(0)};
            known->second = number_of(frame, stacks_.frames, frame_numbers_);
        }
        return known->second;
    }

    int32_t read_text(Index dict, std::string_view key) {
        const auto value = pickle_.find(dict, key);
        if (!value) return number_of_text("");
        const auto [known, is_new] = text_of_value_.try_emplace(*value, -1);
        if (is_new) known->second = number_of_text(pickle_.text(*value).value_or(""));
        return known->second;
    }

    int32_t number_of_text(std::string_view text) {
        const auto next = static_cast<int32_t>(stacks_.texts.size());
        const auto [known, is_new] = text_numbers_.try_emplace(text, next);
        if (is_new) stacks_.texts.emplace_back(text);
        return known->second;
    }

    /// The place of a row in a table that holds each row once.
    template <typename Row>
    static int32_t number_of(const std::type_identity_t<Row>& row, std::vector<Row>& rows,
                             std::map<Row, int32_t>& numbers) {
        const auto [known, is_new] = numbers.try_emplace(row, static_cast<int32_t>(rows.size()));
        if (is_new) rows.push_back(row);
        return known->second;
    }

    void read_segment(Index segment) {
        const int64_t number =
            std::max<int64_t>(optional_integer(segment, "device").value_or(0), 0);
        if (number >= kMaxDevices) stop(segment, "its device number is impossible");
        const auto device = static_cast<std::size_t>(number);
        if (device >= snapshot_.devices.size()) snapshot_.devices.resize(device + 1);
        RecordedSegment read;
        read.address = within(segment, "address", kMaxAddress);
        read.size_bytes = within(segment, "total_size", kMaxBytes);
        read.stream = optional_integer(segment, "stream").value_or(0);
        read.pool = pool(segment, "segment_pool_id", 0);
        read.is_small = text(segment, "segment_type") == "small";
        read.is_expandable = flag(segment, "is_expandable");
        const auto blocks = pickle_.find(segment, "blocks");
        if (!blocks) stop(segment, "a segment has no blocks");
        int64_t end = read.address;
        for_each(*blocks, [&](Index block) {
            read.blocks.push_back(read_block(block, end));
            add_block_stack(block, read.blocks.back(), snapshot_.devices[device]);
            end += read.blocks.back().size_bytes;
            if (end > read.address + read.size_bytes) stop(block, "it ends after its segment");
        });
        if (end != read.address + read.size_bytes) stop(segment, "its blocks do not fill it");
        snapshot_.devices[device].segments.push_back(std::move(read));
    }

    /// Blocks of old snapshots have no address: each begins where the one before it ends.
    RecordedBlock read_block(Index block, int64_t expected_address) {
        RecordedBlock read;
        read.address = optional_integer(block, "address").value_or(expected_address);
        if (read.address != expected_address) stop(block, "it does not follow the block before it");
        read.size_bytes = within(block, "size", kMaxBytes);
        if (read.size_bytes == 0) stop(block, "a block has no bytes");
        const std::string_view state = text(block, "state");
        if (state == "inactive") return read;
        read.state =
            state == "active_allocated" ? BlockState::kAllocated : BlockState::kPendingFree;
        if (state.empty() || !state.starts_with("active")) stop(block, "its state is not known");
        read.requested_bytes = std::min(
            optional_integer(block, "requested_size").value_or(read.size_bytes), read.size_bytes);
        return read;
    }

    void add_block_stack(Index dict, const RecordedBlock& block, AllocatorRecording& device) {
        if (block.state == BlockState::kInactive) return;
        const int32_t stack = read_stack(dict);
        if (stack >= 0) device.block_stacks.push_back({block.address, stack});
    }

    RecordedSettings read_settings(std::optional<Index> settings) const {
        RecordedSettings read;
        if (!settings) return read;
        read.alloc_conf = std::string(text(*settings, "PYTORCH_CUDA_ALLOC_CONF"));
        read.max_split_bytes = optional_integer(*settings, "max_split_size").value_or(-1);
        const auto threshold = pickle_.find(*settings, "garbage_collection_threshold");
        if (threshold) read.gc_threshold = pickle_.real(*threshold).value_or(0);
        read.expandable_segments = flag(*settings, "expandable_segments");
        const auto divisions = pickle_.find(*settings, "roundup_power2_divisions");
        if (!divisions || pickle_.kind(*divisions) != PickleKind::kDict) return read;
        for (int64_t mebibytes = 1; mebibytes <= 32768; mebibytes *= 2) {
            const auto value = optional_integer(*divisions, fmt::format("{}", mebibytes));
            read.roundup_power2_divisions.push_back(
                std::clamp<int64_t>(value.value_or(0), 0, int64_t{1} << 52));
        }
        return read;
    }

    const Pickle& pickle_;
    std::size_t visits_left_;
    std::map<std::pair<int64_t, int64_t>, int64_t> pools_;
    RecordedStacks stacks_;
    std::unordered_map<Index, int32_t> stack_of_list_, frame_of_dict_, text_of_value_;
    std::map<RecordedStack, int32_t> stack_numbers_;
    std::map<RecordedFrame, int32_t> frame_numbers_;
    std::unordered_map<std::string_view, int32_t> text_numbers_;  // the texts are in the file
    PytorchSnapshot snapshot_;
};

/// Whatever is wrong with a snapshot, the same helps.
tl::unexpected<models::Error> unreadable_snapshot(std::string_view name, std::string_view problem) {
    return fail(
        "{} cannot be read as a PyTorch memory snapshot: {}; copy it again, or dump it again with "
        "torch.cuda.memory._dump_snapshot.",
        name, problem);
}

}  // namespace

const AllocatorRecording& PytorchSnapshot::busiest() const { return *busiest_of(devices); }

Result<PytorchSnapshot> parse_pytorch_snapshot(std::string_view bytes, std::string_view name) {
    if (!looks_like_pickle(bytes)) {
        return fail(
            "{} is not a PyTorch memory snapshot: byte 0: it does not begin as a pickle of "
            "protocol 2 or later does; name a file that torch.cuda.memory._dump_snapshot wrote.",
            name);
    }
    const auto pickle = Pickle::read(bytes);
    if (!pickle) return unreadable_snapshot(name, pickle.error().message);
    try {
        return SnapshotReader(*pickle, bytes.size()).read();
    } catch (const Problem& problem) {
        return unreadable_snapshot(name, fmt::format("byte {}: {}", problem.offset, problem.text));
    }
}

Result<PytorchSnapshot> read_pytorch_snapshot(const std::filesystem::path& path) {
    std::error_code error;  // read_file_bytes reports it
    const auto size_bytes = std::filesystem::file_size(path, error);
    if (!error && size_bytes > Pickle::kMaxBytes) {
        return fail(
            "{} has {} bytes, and snapshots of 4 GiB and more are not read; record less history "
            "(max_entries of torch.cuda.memory._record_memory_history) and dump it again.",
            path.string(), size_bytes);
    }
    const auto bytes = read_file_bytes(path);
    if (!bytes) return tl::unexpected(bytes.error());
    return parse_pytorch_snapshot(*bytes, path.string());
}

Result<Trace> read_snapshot_trace(const std::filesystem::path& path, const ReadOptions& options) {
    const auto cancelled = [&](double share) {
        return options.progress && !options.progress(share);
    };
    auto snapshot = read_pytorch_snapshot(path);
    if (!snapshot) return tl::unexpected(snapshot.error());
    if (cancelled(0.7)) return fail("Reading {} was cancelled.", path.string());
    auto trace = trace_of(snapshot->devices);
    if (!trace) return unreadable_snapshot(path.string(), trace.error().message);
    return trace;
}

Result<std::vector<AllocatorRecording>> read_snapshot_recordings(
    const std::filesystem::path& path) {
    auto snapshot = read_pytorch_snapshot(path);
    if (!snapshot) return tl::unexpected(snapshot.error());
    return std::move(snapshot->devices);
}

bool looks_like_pickle(std::string_view first_bytes) {
    return first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= 2 &&
           first_bytes[1] <= 5;
}

}  // namespace profiler
