#include "profiler/formats/snapshot/recorded_stacks.h"

namespace profiler {

int32_t StackTable::add_stack(std::span<const int32_t> frames) {
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

bool StackTable::is_same(int32_t stack, std::span<const int32_t> frames) const {
    for (const int32_t frame : frames) {
        if (stack < 0 || stacks_[static_cast<std::size_t>(stack)].frame != frame) return false;
        stack = stacks_[static_cast<std::size_t>(stack)].parent;
    }
    return stack < 0;
}

std::size_t StackTable::memory_bytes() const {
    constexpr std::size_t kNodeBytes = 40;  // of a map, beside its value
    return frames_.size() * (2 * sizeof(RecordedFrame) + kNodeBytes) +
           stacks_.size() * (2 * sizeof(RecordedStack) + kNodeBytes) +
           last_with_hash_.size() * kNodeBytes;
}

}  // namespace profiler
