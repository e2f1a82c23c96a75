#include "profiler/formats/snapshot/snapshot_writer.h"

#include "profiler/formats/snapshot/pickle_writer.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace profiler {
namespace {

using models::Result;

/// Call stacks as lists of frames, the innermost first; each list, frame and text once.
class StackWriter {
public:
    StackWriter(PickleWriter& out, const RecordedStacks* stacks) : out_(out), stacks_(stacks) {
        if (stacks == nullptr) return;
        lists_.resize(stacks->stacks.size());
        frames_.resize(stacks->frames.size());
        texts_.resize(stacks->texts.size());
        for (const RecordedFrame& frame : stacks->frames)
            has_places_ |= place_key(frame) != nullptr;
    }

    /// Frames that stand for the user's metadata or the compiled graph: as such. Of several
    /// metadata the innermost, which are the newest.
    void place_entries(int32_t stack) {
        if (!has_places_) return;
        const PickleText* last = nullptr;
        for (int32_t i = stack; i >= 0; i = row(i).parent) {
            const RecordedFrame& place = frame_at(row(i).frame);
            PickleText* const key = place_key(place);
            if (key == nullptr || key == last) continue;
            last = key;
            out_.text(*key);
            text(place.function);
        }
    }

    void frames_entry(int32_t stack) {
        while (stack >= 0 && is_place(stack)) stack = row(stack).parent;
        out_.text(frames_key_);
        if (stacks_ == nullptr || stack < 0) {
            out_.begin_list();
            return out_.end_list();
        }
        PickleMemo& memo = lists_[static_cast<std::size_t>(stack)];
        if (out_.again(memo)) return;
        out_.begin_list();
        for (int32_t i = stack; i >= 0; i = row(i).parent) {
            if (is_place(i)) continue;
            out_.next_item();
            frame(row(i).frame);
        }
        out_.end_list();
        out_.memoize(memo);
    }

private:
    const RecordedStack& row(int32_t stack) const {
        return stacks_->stacks[static_cast<std::size_t>(stack)];
    }

    const RecordedFrame& frame_at(int32_t number) const {
        return stacks_->frames[static_cast<std::size_t>(number)];
    }

    bool is_place(int32_t stack) {
        return has_places_ && place_key(frame_at(row(stack).frame)) != nullptr;
    }

    PickleText* place_key(const RecordedFrame& frame) {
        const std::string& file = stacks_->texts[static_cast<std::size_t>(frame.file)];
        if (file == kUserMetadataFile) return &user_metadata_;
        return file == kCompileContextFile ? &compile_context_ : nullptr;
    }

    void frame(int32_t number) {
        PickleMemo& memo = frames_[static_cast<std::size_t>(number)];
        if (out_.again(memo)) return;
        const RecordedFrame& frame = frame_at(number);
        out_.begin_dict();
        out_.text(name_);
        text(frame.function);
        out_.text(filename_);
        text(frame.file);
        out_.text(line_);
        out_.integer(frame.line);
        out_.end_dict();
        out_.memoize(memo);
    }

    void text(int32_t number) {
        const auto i = static_cast<std::size_t>(number);
        out_.text(stacks_->texts[i], texts_[i]);
    }

    PickleWriter& out_;
    const RecordedStacks* stacks_;
    std::vector<PickleMemo> lists_, frames_, texts_;
    bool has_places_ = false;
    PickleText frames_key_{"frames"}, name_{"name"}, filename_{"filename"}, line_{"line"},
        user_metadata_{"user_metadata"}, compile_context_{"compile_context"};
};

class SnapshotWriter {
public:
    SnapshotWriter(PickleWriter& out, const RecordedStacks* stacks)
        : out_(out), stacks_(out, stacks) {}

    void write(std::span<const AllocatorRecording> devices,
               std::span<const RecordedAnnotation> annotations) {
        out_.begin_dict();
        out_.text("segments");
        out_.begin_list();
        for (const AllocatorRecording& device : devices) {
            for (const RecordedSegment& segment : device.segments) {
                out_.next_item();
                write_segment(segment, device);
            }
        }
        out_.end_list();
        out_.text("device_traces");
        write_traces(devices);
        out_.text("allocator_settings");
        write_settings(devices.front().settings);
        out_.text("external_annotations");
        out_.begin_list();
        for (const RecordedAnnotation& annotation : annotations) {
            out_.next_item();
            write_annotation(annotation);
        }
        out_.end_list();
        out_.end_dict();
        out_.finish();
    }

private:
    void entry(PickleText& key, int64_t value) {
        out_.text(key);
        out_.integer(value);
    }

    /// The list of a device stands at its number.
    void write_traces(std::span<const AllocatorRecording> devices) {
        int64_t last = 0;
        for (const AllocatorRecording& device : devices) last = std::max(last, device.device);
        out_.begin_list();
        for (int64_t number = 0; number <= last; ++number) {
            out_.next_item();
            out_.begin_list();
            for (const AllocatorRecording& device : devices) {
                if (device.device != number) continue;
                for (const RecordedEvent& event : device.events) {
                    out_.next_item();
                    write_event(event);
                }
            }
            out_.end_list();
        }
        out_.end_list();
    }

    void write_event(const RecordedEvent& event) {
        const auto action = static_cast<std::size_t>(event.action);
        const bool is_oom = event.action == RecordedAction::kOom;
        out_.begin_dict();
        out_.text(action_);
        out_.text(name_of(event.action), actions_[action]);
        entry(is_oom ? device_free_ : addr_, event.address);
        entry(size_, event.size_bytes);
        entry(stream_, event.stream);
        if (event.time_us >= 0) entry(time_us_, event.time_us);
        stacks_.frames_entry(event.stack);
        stacks_.place_entries(event.stack);
        if (event.pool >= 0) {
            out_.text(pool_id_);
            out_.pair(0, event.pool);
        }
        out_.end_dict();
    }

    void write_segment(const RecordedSegment& segment, const AllocatorRecording& device) {
        int64_t allocated = 0, active = 0, requested = 0;
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state == BlockState::kInactive) continue;
            active += block.size_bytes;
            allocated += block.state == BlockState::kAllocated ? block.size_bytes : 0;
            requested += block.requested_bytes;
        }
        out_.begin_dict();
        entry(device_, device.device);
        entry(address_, segment.address);
        entry(total_size_, segment.size_bytes);
        entry(allocated_size_, allocated);
        entry(active_size_, active);
        entry(requested_size_, requested);
        entry(stream_, segment.stream);
        out_.text(segment_type_);
        out_.text(segment.is_small ? small_ : large_);
        out_.text(segment_pool_id_);
        out_.pair(0, segment.pool);
        out_.text(is_expandable_);
        out_.boolean(segment.is_expandable);
        stacks_.frames_entry(-1);
        out_.text(blocks_);
        out_.begin_list();
        for (const RecordedBlock& block : segment.blocks) {
            out_.next_item();
            write_block(block, device);
        }
        out_.end_list();
        out_.end_dict();
    }

    void write_block(const RecordedBlock& block, const AllocatorRecording& device) {
        const auto& known = device.block_stacks;  // by address
        const auto stack =
            std::ranges::lower_bound(known, block.address, {}, &RecordedBlockStack::address);
        const bool has_stack = block.state != BlockState::kInactive && stack != known.end() &&
                               stack->address == block.address;
        out_.begin_dict();
        entry(address_, block.address);
        entry(size_, block.size_bytes);
        entry(requested_size_, block.requested_bytes);
        out_.text(state_);
        out_.text(states_[static_cast<std::size_t>(block.state)]);
        stacks_.frames_entry(has_stack ? stack->stack : -1);
        out_.end_dict();
    }

    void write_annotation(const RecordedAnnotation& annotation) {
        out_.begin_dict();
        out_.text(stage_);
        out_.text(annotation.is_start ? start_ : end_);
        out_.text(name_);
        out_.text(annotation.name);
        entry(device_, annotation.device);
        entry(time_us_, annotation.time_us);
        out_.end_dict();
    }

    void write_settings(const RecordedSettings& settings) {
        out_.begin_dict();
        out_.text("PYTORCH_CUDA_ALLOC_CONF");
        out_.text(settings.alloc_conf);
        out_.text("max_split_size");
        out_.integer(settings.max_split_bytes);
        out_.text("garbage_collection_threshold");
        out_.real(settings.gc_threshold);
        out_.text("expandable_segments");
        out_.boolean(settings.expandable_segments);
        if (settings.tie_order == TieOrder::kSegmentAge) {
            out_.text("max_round_threshold");  // as torch 2.13 and newer do; -1: no limit
            out_.integer(-1);
        }
        out_.text("roundup_power2_divisions");
        out_.begin_dict();
        int64_t mebibytes = 1;
        for (const int64_t divisions : settings.roundup_power2_divisions) {
            out_.text(fmt::format("{}", mebibytes));
            out_.integer(divisions);
            mebibytes *= 2;
        }
        out_.end_dict();
        out_.end_dict();
    }

    PickleWriter& out_;
    StackWriter stacks_;
    std::array<PickleMemo, kRecordedActionNames.size()> actions_;
    PickleText action_{"action"}, addr_{"addr"}, device_free_{"device_free"}, size_{"size"},
        stream_{"stream"}, time_us_{"time_us"}, pool_id_{"pool_id"}, device_{"device"},
        address_{"address"}, total_size_{"total_size"}, allocated_size_{"allocated_size"},
        active_size_{"active_size"}, requested_size_{"requested_size"},
        segment_type_{"segment_type"}, small_{"small"}, large_{"large"},
        segment_pool_id_{"segment_pool_id"}, is_expandable_{"is_expandable"}, blocks_{"blocks"},
        state_{"state"}, stage_{"stage"}, start_{"START"}, end_{"END"}, name_{"name"};
    std::array<PickleText, 3> states_{
        {{"inactive"}, {"active_allocated"}, {"active_pending_free"}}};
};

}  // namespace

Result<void> write_snapshot(std::span<const AllocatorRecording> devices,
                            std::span<const RecordedAnnotation> annotations,
                            const std::filesystem::path& path) {
    if (devices.empty()) {
        return models::fail(
            "{} is not written: the trace holds no allocations, and a memory snapshot holds "
            "nothing else.",
            path.string());
    }
    auto file = OutputFile::create(path);
    if (!file) return tl::unexpected(file.error());
    PickleWriter out(*file);
    SnapshotWriter(out, devices.front().stacks.get()).write(devices, annotations);
    return file->finish();
}

Result<void> write_snapshot(const Trace& trace, const std::filesystem::path& path) {
    return write_snapshot(recordings_of(trace), annotations_of(trace), path);
}

}  // namespace profiler
