#pragma once

#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace profiler {

/// Fills the tables of RecordedStacks, each row once. Texts are numbers of the caller, who gives
/// their characters at the end.
class StackTable {
public:
    int32_t add_frame(const RecordedFrame& frame) {
        return number_of(frame, frames_, numbers_of_frames_);
    }

    /// `frames`: the innermost first. A stack that was just seen costs one look-up. -1 without
    /// frames.
    int32_t add_stack(std::span<const int32_t> frames);
    /// A stack with one more frame inside.
    int32_t add_inside(int32_t stack, int32_t frame) {
        return number_of({.parent = stack, .frame = frame}, stacks_, numbers_of_stacks_);
    }

    std::vector<RecordedFrame>& frames() { return frames_; }
    std::vector<RecordedStack>& stacks() { return stacks_; }
    std::size_t memory_bytes() const;

private:
    bool is_same(int32_t stack, std::span<const int32_t> frames) const;

    template <typename Row>
    static int32_t number_of(const Row& row, std::vector<Row>& rows,
                             std::map<Row, int32_t>& numbers) {
        const auto [known, is_new] = numbers.try_emplace(row, static_cast<int32_t>(rows.size()));
        if (is_new) rows.push_back(row);
        return known->second;
    }

    std::vector<RecordedFrame> frames_;
    std::vector<RecordedStack> stacks_;
    std::map<RecordedFrame, int32_t> numbers_of_frames_;
    std::map<RecordedStack, int32_t> numbers_of_stacks_;
    std::unordered_map<uint64_t, int32_t> last_with_hash_;  // of the frames of a stack
};

}  // namespace profiler
