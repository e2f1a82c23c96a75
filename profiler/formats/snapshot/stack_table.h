#pragma once

#include "profiler/trace/allocator_recording.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
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
    int32_t add_stack(std::span<const int32_t> frames) {
        uint64_t hash = 0;
        for (const int32_t frame : frames) {
            hash = (hash ^ static_cast<uint32_t>(frame)) * 0x9e3779b97f4a7c15;
            hash ^= hash >> 29;
        }
        int32_t& last = last_with_hash_.try_emplace(hash, -1).first->second;
        if (is_same(last, frames)) return last;
        last = -1;
        for (std::size_t i = frames.size(); i-- > 0;) {
            last = number_of({.parent = last, .frame = frames[i]}, stacks_, numbers_of_stacks_);
        }
        return last;
    }

    /// A stack with one more frame inside.
    int32_t add_inside(int32_t stack, int32_t frame) {
        return number_of({.parent = stack, .frame = frame}, stacks_, numbers_of_stacks_);
    }

    /// A stack with all frames of another one inside.
    int32_t add_all_inside(int32_t stack, int32_t inner) {
        if (inner < 0) return stack;
        const RecordedStack row = stacks_[static_cast<std::size_t>(inner)];
        return add_inside(add_all_inside(stack, row.parent), row.frame);
    }

    std::vector<RecordedFrame>& frames() { return frames_; }
    std::vector<RecordedStack>& stacks() { return stacks_; }

    std::size_t memory_bytes() const {
        constexpr std::size_t kNodeBytes = 40;  // of a map, beside its value
        return frames_.size() * (2 * sizeof(RecordedFrame) + kNodeBytes) +
               stacks_.size() * (2 * sizeof(RecordedStack) + kNodeBytes) +
               last_with_hash_.size() * kNodeBytes;
    }

private:
    bool is_same(int32_t stack, std::span<const int32_t> frames) const {
        for (const int32_t frame : frames) {
            if (stack < 0 || stacks_[static_cast<std::size_t>(stack)].frame != frame) return false;
            stack = stacks_[static_cast<std::size_t>(stack)].parent;
        }
        return stack < 0;
    }

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
