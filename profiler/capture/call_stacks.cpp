#include "profiler/capture/call_stacks.h"

namespace profiler {

void CallStacks::add(Id<Op> op, Gathered stack) {
    const std::lock_guard lock(mutex_);
    gathered_.emplace(op.value, std::move(stack));
}

void CallStacks::add(int64_t alloc_event, NativeStack stack) {
    const std::lock_guard lock(mutex_);
    natives_.emplace(alloc_event, std::move(stack));
}

/// The op whose stack is that of `op`: one around it, or around the forward op that it belongs to.
/// An op with a stack inside another one runs in a backward in Python, and its lines are its own.
Id<Op> CallStacks::owner_of(const Trace& trace, Id<Op> op, const GatheredOps& gathered) {
    while (op.valid()) {
        const Id<Op> forward = trace.ops.get<&Op::forward>(op);
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        const bool has_own = gathered.contains(op.value);
        if (has_own && (parent.valid() || !forward.valid())) return op;
        op = forward.valid() ? forward : parent;
    }
    return op;
}

CallStacks::Allocated CallStacks::take_allocated(const Trace& trace) {
    GatheredOps gathered;
    {
        const std::lock_guard lock(mutex_);
        gathered.swap(gathered_);
    }
    Allocated allocated;
    std::unordered_map<int64_t, std::size_t> place_of_op;
    for (; num_written_ < trace.allocations.size(); ++num_written_) {
        const Id<Allocation> id(num_written_);
        const Id<Op> op = owner_of(trace, trace.allocations.get<&Allocation::op>(id), gathered);
        if (!op.valid()) continue;
        const auto [place, is_new] = place_of_op.try_emplace(op.value, allocated.size());
        if (is_new) allocated.emplace_back(gathered.at(op.value), std::vector<Id<Allocation>>());
        allocated[place->second].second.push_back(id);
    }
    return allocated;
}

torch::SymbolizedTracebacks CallStacks::symbolize(const Allocated& allocated) {
    std::vector<torch::CapturedTraceback*> stacks;
    for (const auto& [stack, allocations] : allocated) stacks.push_back(stack.get());
    return torch::symbolize(stacks);
}

void CallStacks::append(const Allocated& allocated, const torch::SymbolizedTracebacks& text,
                        Trace& trace) {
    for (std::size_t i = 0; i < allocated.size(); ++i) {
        Id<Stack> stack;
        const std::vector<uint64_t>& frames = text.tracebacks[i];  // the innermost first
        for (auto index = frames.rbegin(); index != frames.rend(); ++index) {
            const torch::unwind::Frame& frame = text.all_frames[*index];
            if (frame.filename.starts_with(hidden_)) continue;
            stack = stack_of(stack, frame_of(frame, trace), trace);
        }
        for (const Id<Allocation> allocation : allocated[i].second) {
            trace.allocations.set<&Allocation::stack>(allocation, stack);
        }
    }
}

/// Continues the stacks of the allocations since the last call.
void CallStacks::append_native(Trace& trace) {
    std::unordered_map<int64_t, NativeStack> natives;
    {
        const std::lock_guard lock(mutex_);
        natives.swap(natives_);
    }
    for (; num_written_native_ < trace.allocations.size(); ++num_written_native_) {
        const Id<Allocation> id(num_written_native_);
        const auto native = natives.find(trace.allocations.get<&Allocation::alloc_event>(id));
        if (native == natives.end()) continue;
        Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        for (const NativeFrame& frame : native_frames_.of(native->second)) {
            stack = stack_of(stack, frame_of({frame.library, frame.function, 0}, trace), trace);
        }
        trace.allocations.set<&Allocation::stack>(id, stack);
    }
}

Id<Stack> CallStacks::stack_of(Id<Stack> parent, Id<Frame> frame, Trace& trace) {
    const auto [known, is_new] = stacks_.try_emplace({parent, frame});
    if (is_new) known->second = trace.stacks.append({.parent = parent, .frame = frame});
    return known->second;
}

Id<Frame> CallStacks::frame_of(const torch::unwind::Frame& frame, Trace& trace) {
    const auto key =
        std::tuple(trace.strings.intern(frame.funcname), trace.strings.intern(frame.filename),
                   static_cast<int64_t>(frame.lineno));
    const auto [known, is_new] = frames_.try_emplace(key);
    if (is_new) {
        const std::string_view code = lines_.of(frame.filename, std::get<2>(key));
        known->second =
            trace.frames.append({.function = std::get<0>(key),
                                 .file = std::get<1>(key),
                                 .line = std::get<2>(key),
                                 .code = code.empty() ? StringId() : trace.strings.intern(code)});
    }
    return known->second;
}

}  // namespace profiler
