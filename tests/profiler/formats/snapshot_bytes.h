#pragma once

#include "profiler/trace/allocator_recording.h"

#include <set>
#include <string>
#include <string_view>

namespace tests {

/// Writes pickles for tests, instruction by instruction.
class PickleBytes {
public:
    explicit PickleBytes(int protocol = 4) : bytes_{'\x80', static_cast<char>(protocol)} {}

    PickleBytes& op(std::string_view code) {
        bytes_ += code;
        return *this;
    }
    PickleBytes& text(std::string_view value) {
        bytes_ += 'X';
        little_endian(value.size(), 4);
        bytes_ += value;
        return *this;
    }
    /// LONG1 of 8 bytes and a zero, as torch's C++ writer does for addresses.
    PickleBytes& number(int64_t value) {
        bytes_ += "\x8a";
        bytes_ += '\x09';
        little_endian(static_cast<uint64_t>(value), 8);
        bytes_ += value < 0 ? '\xff' : '\0';
        return *this;
    }
    PickleBytes& entry(std::string_view key, int64_t value) { return text(key).number(value); }
    PickleBytes& entry(std::string_view key, std::string_view value) {
        return text(key).text(value);
    }
    std::string finish() const { return bytes_ + '.'; }
    std::size_t size() const { return bytes_.size(); }

private:
    void little_endian(uint64_t value, int count) {
        for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    }
    std::string bytes_;
};

/// A call stack as a list of frames, the innermost first. The first use of a stack puts it into the
/// memo, which has one byte for its key; later uses refer to it, as in real snapshots.
inline void write_stack(PickleBytes& out, const profiler::RecordedStacks& stacks, int32_t stack,
                        std::set<int32_t>& written) {
    const auto key = static_cast<char>(stack);
    out.text("frames");
    if (!written.insert(stack).second) {
        out.op(std::string{'h', key});
        return;
    }
    const auto at = [](const auto& rows, int32_t i) { return rows[static_cast<std::size_t>(i)]; };
    out.op("](");
    for (int32_t i = stack; i >= 0; i = at(stacks.stacks, i).parent) {
        const profiler::RecordedFrame frame = at(stacks.frames, at(stacks.stacks, i).frame);
        out.op("}(").entry("name", at(stacks.texts, frame.function));
        out.entry("filename", at(stacks.texts, frame.file)).entry("line", frame.line).op("u");
    }
    out.op("e").op(std::string{'q', key});
}

/// A recording as a snapshot of one device.
inline std::string snapshot_bytes(const profiler::AllocatorRecording& recording, int protocol = 4) {
    using namespace profiler;
    PickleBytes out(protocol);
    std::set<int32_t> written_stacks;
    out.op("}(").text("segments").op("](");
    for (const RecordedSegment& segment : recording.segments) {
        out.op("}(").entry("device", recording.device).entry("address", segment.address);
        out.entry("total_size", segment.size_bytes).entry("stream", segment.stream);
        out.entry("segment_type", segment.is_small ? "small" : "large");
        out.text("segment_pool_id").number(0).number(segment.pool).op("\x86");
        out.text("is_expandable").op(segment.is_expandable ? "\x88" : "\x89");
        out.text("blocks").op("](");
        for (const RecordedBlock& block : segment.blocks) {
            const char* states[] = {"inactive", "active_allocated", "active_pending_free"};
            out.op("}(").entry("address", block.address).entry("size", block.size_bytes);
            out.entry("requested_size", block.requested_bytes);
            out.entry("state", states[static_cast<int>(block.state)]);
            for (const RecordedBlockStack& known : recording.block_stacks) {
                if (known.address != block.address) continue;
                write_stack(out, *recording.stacks, known.stack, written_stacks);
            }
            out.op("u");
        }
        out.op("eu");
    }
    out.op("e").text("device_traces").op("](](");
    for (const RecordedEvent& event : recording.events) {
        out.op("}(").entry("action", name_of(event.action));
        const bool is_oom = event.action == RecordedAction::kOom;
        out.entry(is_oom ? "device_free" : "addr", event.address).entry("size", event.size_bytes);
        out.entry("stream", event.stream).entry("time_us", event.time_us);
        if (event.stack >= 0) write_stack(out, *recording.stacks, event.stack, written_stacks);
        out.op("u");
    }
    out.op("ee").text("allocator_settings").op("}(");
    out.entry("PYTORCH_CUDA_ALLOC_CONF", recording.settings.alloc_conf);
    out.entry("max_split_size", recording.settings.max_split_bytes);
    out.text("expandable_segments").op(recording.settings.expandable_segments ? "\x88" : "\x89");
    return out.op("uu").finish();
}

}  // namespace tests
