#include "profiler/formats/join/joined_trace.h"

#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/shift_times.h"
#include "profiler/formats/parts/span_tree.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace profiler {
namespace {

/// Finds the op that ran at a time.
class RunningOps {
public:
    explicit RunningOps(const Trace& trace) {
        std::map<int32_t, std::vector<kineto::SpanTree::Node>> nodes;  // by thread
        for (std::size_t i = 0; i < trace.ops.size(); ++i) {
            const Op op = trace.ops[Id<Op>(i)];
            nodes[op.thread.value].push_back(
                {op.start_ns, op.end_ns, static_cast<uint32_t>(i), -1});
        }
        for (auto& [thread, spans] : nodes) threads_.emplace_back(std::move(spans));
    }

    /// The innermost op of the thread whose op started last; none outside of ops.
    Id<Op> at(int64_t time_ns) const {
        Id<Op> latest;
        int64_t latest_ns = INT64_MIN;
        for (const kineto::SpanTree& thread : threads_) {
            const int32_t node = thread.innermost(time_ns);
            if (node < 0 || thread.at(node).start_ns <= latest_ns) continue;
            latest_ns = thread.at(node).start_ns;
            latest = Id<Op>(thread.at(node).item);
        }
        return latest;
    }

private:
    std::vector<kineto::SpanTree> threads_;
};

/// num_start_events of each device.
class StartEvents {
public:
    explicit StartEvents(const Trace& trace) {
        for (const Id<Device> id : trace.devices.ids()) {
            counts_.push_back(num_start_events(trace, id));
        }
    }

    int64_t of(Id<Device> device) const { return device.valid() ? counts_[device.index()] : 0; }

private:
    std::vector<int64_t> counts_;
};

// So many blocks whose address was used once tell the clocks apart.
constexpr std::size_t kLeastCertain = 8;

// A block that both files hold has times that differ by this much at most, once the clocks agree.
constexpr int64_t kSameMomentNs = 2'000'000;

// One clock read twice differs by far less. More means that the files are of two runs.
constexpr int64_t kMostClockShiftNs = 1'000'000'000;

/// Which row of the profiler's allocations is which of the snapshot's.
class SameBlocks {
public:
    SameBlocks(const Trace& memory, const Trace& profile) : profile_(profile) {
        const int64_t profile_start = num_start_events(profile);
        for (const Id<Allocation> id : profile.allocations.ids()) {
            const Allocation block = profile.allocations[id];
            if (block.address <= 0 || block.alloc_event < profile_start) continue;
            by_address_[block.address].push_back(id);
        }
        const StartEvents memory_start(memory);
        std::unordered_map<int64_t, int> uses;  // by address
        for (const int64_t address : memory.allocations.column<&Allocation::address>()) {
            ++uses[address];
        }
        std::vector<int64_t> all, certain;
        for (const Allocation block : memory.allocations.rows()) {
            if (block.alloc_event < memory_start.of(block.device)) continue;
            const Id<Allocation> nearest = nearest_to(block);
            if (!nearest.valid()) continue;
            all.push_back(time_of(nearest) - block.alloc_ns);
            if (uses[block.address] == 1 && by_address_.at(block.address).size() == 1) {
                certain.push_back(all.back());
            }
        }
        // Where an address is used again and again, the nearest use may be another one.
        std::vector<int64_t>& differences = certain.size() >= kLeastCertain ? certain : all;
        if (differences.empty()) return;
        const auto middle = differences.begin() + std::ssize(differences) / 2;
        std::nth_element(differences.begin(), middle, differences.end());
        clock_shift_ns_ = std::abs(*middle) <= kMostClockShiftNs ? *middle : 0;
    }

    /// What to add to the snapshot's times, so that they fit those of the profiler.
    int64_t clock_shift_ns() const { return clock_shift_ns_; }

    /// The profiler's row of a block, whose times are corrected; none if it recorded none.
    Id<Allocation> of(const Allocation& block) const {
        const Id<Allocation> nearest = nearest_to(block);
        if (!nearest.valid()) return {};
        const bool is_same = std::abs(time_of(nearest) - block.alloc_ns) <= kSameMomentNs;
        return is_same ? nearest : Id<Allocation>();
    }

private:
    int64_t time_of(Id<Allocation> row) const {
        return profile_.allocations.get<&Allocation::alloc_ns>(row);
    }

    /// Of the rows with the address and the size, the one nearest in time.
    Id<Allocation> nearest_to(const Allocation& block) const {
        const auto found = by_address_.find(block.address);
        if (found == by_address_.end()) return {};
        const auto& rows = found->second;  // in the order of time
        const auto next = std::ranges::lower_bound(
            rows, block.alloc_ns, {}, [&](Id<Allocation> row) { return time_of(row); });
        Id<Allocation> nearest;
        int64_t distance = INT64_MAX;
        // The block that is nearest in time may be of another size: look at two on either side.
        const auto first = next - std::min<std::ptrdiff_t>(next - rows.begin(), 2);
        const auto end = next + std::min<std::ptrdiff_t>(rows.end() - next, 2);
        for (auto row = first; row != end; ++row) {
            const int64_t bytes = profile_.allocations.get<&Allocation::block_bytes>(*row);
            const bool fits = bytes >= block.requested_bytes && bytes <= block.block_bytes;
            const int64_t away = std::abs(time_of(*row) - block.alloc_ns);
            if (!fits || away >= distance) continue;
            nearest = *row;
            distance = away;
        }
        return nearest;
    }

    const Trace& profile_;
    std::unordered_map<int64_t, std::vector<Id<Allocation>>> by_address_;
    int64_t clock_shift_ns_ = 0;
};

using models::Result;

/// Of the allocations and of the allocator's other actions.
TimeExtent memory_range(const Trace& trace) {
    TimeExtent range;
    range.add(trace.allocations.column<&Allocation::alloc_ns>());
    range.add(trace.allocator_events.column<&AllocatorEvent::time_ns>());
    for (const int64_t time_ns : trace.allocations.column<&Allocation::free_requested_ns>()) {
        if (time_ns >= 0) range.last_ns = std::max(range.last_ns, time_ns);
    }
    return range;
}

/// Puts the rows of the snapshot in the place of the profiler's own memory rows.
class Join {
public:
    Join(const Trace& memory, const Trace& profile)
        : memory_(memory), profile_(profile), joined_(profile) {
        joined_.allocations = {};
        joined_.storages = {};
        joined_.allocator_events = {};
        joined_.diagnostics = {};
    }

    Trace make(const SameBlocks& same) {
        choose_device_of_snapshot();
        add_stacks();
        add_events();
        add_blocks(same);
        number_phases();
        add_run();
        add_notes();
        infer_categories(joined_);
        return std::move(joined_);
    }

private:
    Id<Device> device_of(Id<Device> device) {
        if (!device.valid()) return {};
        const std::string name(memory_.text(memory_.devices.get<&Device::name>(device)));
        for (const Id<Device> id : joined_.devices.ids()) {
            const StringId known = joined_.devices.get<&Device::name>(id);
            if (joined_.text(known) == name) return id;
        }
        Device row = memory_.devices[device];
        row.name = joined_.strings.intern(name);
        return joined_.devices.append(row);
    }

    /// Figures are of the device that comes first (profiled_device): the snapshot's first, whose
    /// events steps and phases count.
    void choose_device_of_snapshot() {
        if (memory_.devices.empty()) return;
        const Id<Device> device = device_of(Id<Device>(0));
        exchange_devices(joined_, profiled_device(joined_), device);
    }

    Id<Stream> stream_of(Id<Stream> stream) {
        if (!stream.valid()) return {};
        const auto [known, is_new] = streams_.try_emplace(stream.value);
        if (!is_new) return known->second;
        Stream row = memory_.streams[stream];
        row.device = device_of(row.device);
        for (const Id<Stream> id : joined_.streams.ids()) {
            const Stream other = joined_.streams[id];
            if (other.device == row.device && other.handle == row.handle) {
                return known->second = id;
            }
        }
        return known->second = joined_.streams.append(row);
    }

    void add_stacks() {
        const std::size_t first_frame = joined_.frames.size();
        for (const Frame frame : memory_.frames.rows()) {
            joined_.frames.append({.function = text_of(frame.function),
                                   .file = text_of(frame.file),
                                   .line = frame.line,
                                   .code = text_of(frame.code)});
        }
        first_stack_ = joined_.stacks.size();
        for (const Stack stack : memory_.stacks.rows()) {
            joined_.stacks.append({.parent = stack_of(stack.parent),
                                   .frame = stack.frame.valid()
                                                ? Id<Frame>(first_frame + stack.frame.index())
                                                : Id<Frame>()});
        }
    }

    StringId text_of(StringId id) {
        return id.valid() ? joined_.strings.intern(memory_.text(id)) : StringId();
    }
    Id<Stack> stack_of(Id<Stack> stack) const {
        return stack.valid() ? Id<Stack>(first_stack_ + stack.index()) : Id<Stack>();
    }

    void add_events() {
        for (AllocatorEvent event : memory_.allocator_events.rows()) {
            event.device = device_of(event.device);
            event.stream = stream_of(event.stream);
            joined_.allocator_events.append(event);
        }
    }

    void add_blocks(const SameBlocks& same) {
        const RunningOps running(profile_);
        const StartEvents start_events(memory_);
        for (Allocation block : memory_.allocations.rows()) {
            const int64_t start = start_events.of(block.device);
            const bool was_there = block.alloc_event < start;
            const Id<Allocation> twin = was_there ? Id<Allocation>() : same.of(block);
            if (twin.valid()) {
                const Allocation seen = profile_.allocations[twin];
                block.op = seen.op;
                block.freeing_op = seen.freeing_op;
                block.stack = block.stack.valid() ? stack_of(block.stack) : seen.stack;
                ++num_same_;
            } else {
                block.op = was_there ? Id<Op>() : running.at(block.alloc_ns);
                block.stack = stack_of(block.stack);
            }
            if (!block.freeing_op.valid() && block.free_requested_event >= start) {
                block.freeing_op = running.at(block.free_requested_ns);
            }
            num_with_op_ += block.op.valid() ? 1 : 0;
            num_without_op_ += block.op.valid() || was_there ? 0 : 1;
            block.device = device_of(block.device);
            block.stream = stream_of(block.stream);
            Storage storage{.size_bytes = block.requested_bytes};
            if (block.storage.valid()) storage = memory_.storages[block.storage];
            storage.allocation = Id<Allocation>(joined_.allocations.size());
            block.storage = joined_.storages.append(storage);
            joined_.allocations.append(block);
        }
    }

    /// Steps and phases count the events of the first device of the snapshot.
    void number_phases() {
        const Id<Device> device = memory_.devices.empty() ? Id<Device>() : Id<Device>(0);
        const auto actions = memory_actions(memory_, device);
        number_by_time(actions, joined_.steps);
        number_by_time(actions, joined_.phases);
    }

    void add_run() {
        const Id<Run> run(0);
        joined_.runs.set<&Run::allocator_settings>(run, text_of(memory_.run().allocator_settings));
        if (!profile_.run().device_name.valid()) {
            joined_.runs.set<&Run::device_name>(run, text_of(memory_.run().device_name));
        }
    }

    void copy_notes(const Trace& from, std::span<const std::string_view> dropped) {
        for (const Diagnostic note : from.diagnostics.rows()) {
            const std::string_view code = from.text(note.code);
            if (std::find(dropped.begin(), dropped.end(), code) != dropped.end()) continue;
            add_diagnostic(joined_, {.code = code,
                                     .severity = note.severity,
                                     .count = note.count,
                                     .explanation = from.text(note.explanation)});
        }
    }

    void add_notes() {
        constexpr std::array<std::string_view, 4> kNotOfMemory{
            kAllocationsOnly, kInferredCategories, kInferredStep, "inferred_phases"};
        constexpr std::array<std::string_view, 7> kOnMemory{
            kStartState,       kInferredCategories, "no_memory_events", "unmatched_totals",
            "replaced_blocks", "matched_by_size",   "totals_missing"};
        copy_notes(memory_, kNotOfMemory);
        copy_notes(profile_, kOnMemory);
        add_diagnostic(joined_, {.code = kJoined,
                                 .count = num_with_op_,
                                 .explanation = fmt::format(
                                     "These blocks of the memory snapshot have an op of the "
                                     "profiler's trace: {} are the same block in both files, the "
                                     "others were allocated at the time of the op.",
                                     format_count(num_same_))});
        add_diagnostic(joined_, {.code = "outside_of_ops",
                                 .count = num_without_op_,
                                 .explanation = "These blocks were allocated while the profiler "
                                                "recorded no op."});
    }

    const Trace& memory_;
    const Trace& profile_;
    Trace joined_;
    std::unordered_map<int32_t, Id<Stream>> streams_;
    std::size_t first_stack_ = 0;
    int64_t num_same_ = 0;
    int64_t num_with_op_ = 0;
    int64_t num_without_op_ = 0;
};

Result<void> check_parts(const JoinInput& memory, const JoinInput& profile) {
    if (!is_memory_only(memory.trace)) {
        return models::fail(
            "{} is not a memory snapshot: join one memory snapshot and one trace of the PyTorch "
            "profiler.",
            memory.name);
    }
    const Trace& ops = profile.trace;
    if (ops.ops.empty() || ops.run().source != Source::kImported || !ops.tensors.empty()) {
        return models::fail(
            "{} is not a trace of the PyTorch profiler with ops: join one memory snapshot and one "
            "trace of the profiler.",
            profile.name);
    }
    if (memory.trace.run().time_basis != TimeBasis::kMeasured) {
        return models::fail(
            "{} has events without times, so it cannot be joined: record it with a newer PyTorch.",
            memory.name);
    }
    return {};
}

Result<void> check_overlap(const JoinInput& memory, const JoinInput& profile) {
    const TimeExtent blocks = memory_range(memory.trace), ops = time_range_of_ops(profile.trace);
    if (blocks.overlaps(ops)) return {};
    const bool is_earlier = blocks.last_ns < ops.first_ns;
    const int64_t gap_ns =
        is_earlier ? ops.first_ns - blocks.last_ns : blocks.first_ns - ops.last_ns;
    return models::fail(
        "{} and {} do not overlap in time: the snapshot {} {} {} the profiler's trace {}; record "
        "both in one run.",
        memory.name, profile.name, is_earlier ? "ends" : "begins", format_duration(gap_ns),
        is_earlier ? "before" : "after", is_earlier ? "begins" : "ends");
}

}  // namespace

Result<Trace> join_traces(const JoinInput& memory, const JoinInput& profile) {
    if (const auto ok = check_parts(memory, profile); !ok) return tl::unexpected(ok.error());
    Trace blocks = memory.trace;
    Trace ops = profile.trace;
    shift_times(blocks, blocks.run().start_unix_ns - ops.run().start_unix_ns);
    const int64_t correction_ns = SameBlocks(blocks, ops).clock_shift_ns();
    shift_times(blocks, correction_ns);
    if (const auto ok = check_overlap({blocks, memory.name}, {ops, profile.name}); !ok) {
        return tl::unexpected(ok.error());
    }
    const int64_t earliest_ns = memory_range(blocks).first_ns;
    if (earliest_ns < 0) {  // time 0 is the first event of both
        shift_times(blocks, -earliest_ns);
        shift_times(ops, -earliest_ns);
    }
    return Join(blocks, ops).make(SameBlocks(blocks, ops));
}

}  // namespace profiler
