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

CallStacks::Taken CallStacks::take(const Trace& trace) {
    GatheredOps gathered;
    std::unordered_map<int64_t, NativeStack> natives;
    {
        const std::lock_guard lock(mutex_);
        gathered.swap(gathered_);
        natives.swap(natives_);
    }
    Taken taken;
    std::unordered_map<int64_t, std::size_t> place_of_op;
    for (; num_written_ < trace.allocations.size(); ++num_written_) {
        const Id<Allocation> id(num_written_);
        const auto native = natives.find(trace.allocations.get<&Allocation::alloc_event>(id));
        if (native != natives.end()) taken.natives.emplace_back(id, std::move(native->second));
        const Id<Op> op = owner_of(trace, trace.allocations.get<&Allocation::op>(id), gathered);
        if (!op.valid()) continue;
        const auto [place, is_new] = place_of_op.try_emplace(op.value, taken.by_op.size());
        if (is_new) taken.by_op.emplace_back(gathered.at(op.value), std::vector<Id<Allocation>>());
        taken.by_op[place->second].second.push_back(id);
    }
    return taken;
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

/// Without the lock on the rows: the loader of libraries has one of its own, under which code of
/// libraries may allocate.
std::vector<CallStacks::Named> CallStacks::name(
    const std::vector<std::pair<Id<Allocation>, NativeStack>>& natives) {
    std::vector<Named> named;
    for (const auto& [id, stack] : natives) named.emplace_back(id, native_frames_.of(stack));
    return named;
}

/// Continues the stacks of Python.
void CallStacks::append(const std::vector<Named>& natives, Trace& trace) {
    for (const auto& [id, frames] : natives) {
        Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        for (const NativeFrame& frame : frames) {
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
