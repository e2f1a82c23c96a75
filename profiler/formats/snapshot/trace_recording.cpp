#include "profiler/formats/snapshot/recorded_trace.h"

#include "profiler/allocator/recorded_segments.h"
#include "profiler/allocator/settings.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/contents_text.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>

namespace profiler {
namespace {

constexpr int64_t kFirstAssumedAddress = int64_t{1} << 56;  // above what processors map

/// An action and the row that it comes from. Frees come before an allocation of the same number,
/// because they make room for it.
struct Action {
    enum Kind : uint8_t { kFreeRequested, kFreeCompleted, kAlloc, kSegment };
    int64_t event = 0;
    uint32_t row = 0;
    Kind kind = kAlloc;

    friend auto operator<=>(const Action& a, const Action& b) {
        return std::tuple(a.event, a.kind, a.row) <=> std::tuple(b.event, b.kind, b.row);
    }
};

/// The call stacks of a trace, and the stacks that are made from ops.
class Stacks {
public:
    explicit Stacks(const Trace& trace) : trace_(trace) {
        for (std::size_t i = 0; i < trace.strings.size(); ++i) {
            stacks_.texts.emplace_back(trace.strings[StringId(i)]);
        }
        empty_text_ = static_cast<int32_t>(stacks_.texts.size());
        stacks_.texts.emplace_back();
        for (const Frame frame : trace.frames.rows()) {
            stacks_.frames.push_back({.function = text_of(frame.function),
                                      .file = text_of(frame.file),
                                      .line = frame.line});
        }
        if (stacks_.frames.empty()) {  // of a stack without a frame, in a damaged file
            stacks_.frames.push_back({.function = empty_text_, .file = empty_text_});
        }
        for (std::size_t i = 0; i < trace.stacks.size(); ++i) {
            const Stack stack = trace.stacks[Id<Stack>(i)];
            // A damaged file may hold a stack that lies in itself or has no frame.
            const bool is_sound = stack.parent.value < static_cast<int32_t>(i);
            stacks_.stacks.push_back({.parent = is_sound ? stack.parent.value : -1,
                                      .frame = std::max(stack.frame.value, 0)});
        }
        note_contents();
    }

    int32_t of(Id<Allocation> id) {
        const Allocation allocation = trace_.allocations[id];
        int32_t stack = allocation.stack.value;
        if (!allocation.stack.valid()) stack = allocation.op.valid() ? of_op(allocation.op) : -1;
        const auto contents = contents_.find(id.value);
        if (contents == contents_.end()) return stack;
        return add({.parent = stack, .frame = frame_number(contents->second)});
    }

    std::shared_ptr<const RecordedStacks> take() {
        if (stacks_.stacks.empty()) return nullptr;
        return std::make_shared<const RecordedStacks>(std::move(stacks_));
    }

private:
    int32_t text_of(StringId id) const { return id.valid() ? id.value : empty_text_; }

    int32_t of_op(Id<Op> op) {
        std::vector<Id<Op>> calls;  // the innermost first
        for (; op.valid() && calls.size() < kMostStackFrames && !of_op_.contains(op.value);
             op = trace_.ops.get<&Op::parent>(op)) {
            calls.push_back(op);
        }
        const auto around = of_op_.find(op.value);
        int32_t stack = around == of_op_.end() ? -1 : around->second;
        for (std::size_t i = calls.size(); i-- > 0;) {
            stack = add({.parent = stack, .frame = frame_of(calls[i])});
            of_op_[calls[i].value] = stack;
        }
        return stack;
    }

    int32_t frame_of(Id<Op> op) {
        const Id<ModulePath> path = trace_.ops.get<&Op::module_path>(op);
        const RecordedFrame frame{
            .function = text_of(trace_.ops.get<&Op::name>(op)),
            .file = path.valid() ? text_of(trace_.module_paths.get<&ModulePath::path>(path))
                                 : empty_text_};
        return frame_number(frame);
    }

    int32_t frame_number(const RecordedFrame& frame) {
        const auto next = static_cast<int32_t>(stacks_.frames.size());
        const auto [known, is_new] = frames_.try_emplace(frame, next);
        if (is_new) stacks_.frames.push_back(frame);
        return known->second;
    }

    /// "parameter: layers.0.weight" as the user's metadata of each allocation whose contents were
    /// recorded. What was inferred from a snapshot is inferred again when it is read.
    void note_contents() {
        if (trace_.run().source == Source::kImported) return;
        std::unordered_map<int32_t, StringId> names;  // the first that a tensor of it has
        for (const Tensor tensor : trace_.tensors.rows()) {
            if (tensor.name.valid()) names.try_emplace(tensor.storage.value, tensor.name);
        }
        const int32_t file = add_text(std::string(kUserMetadataFile));
        std::unordered_map<std::string, int32_t> known;
        for (const Id<Storage> id : trace_.storages.ids()) {
            const Storage storage = trace_.storages[id];
            if (!storage.allocation.valid()) continue;
            const auto name = names.find(id.value);
            const bool has_name = name != names.end();
            std::string text = to_text(storage.category,
                                       has_name ? trace_.text(name->second) : std::string_view());
            auto [number, is_new] = known.try_emplace(text, 0);
            if (is_new) number->second = add_text(std::move(text));
            contents_.insert_or_assign(storage.allocation.value,
                                       RecordedFrame{.function = number->second, .file = file});
        }
    }

    int32_t add_text(std::string text) {
        stacks_.texts.push_back(std::move(text));
        return static_cast<int32_t>(stacks_.texts.size()) - 1;
    }

    int32_t add(const RecordedStack& stack) {
        const auto next = static_cast<int32_t>(stacks_.stacks.size());
        const auto [known, is_new] = numbers_.try_emplace(stack, next);
        if (is_new) stacks_.stacks.push_back(stack);
        return known->second;
    }

    const Trace& trace_;
    RecordedStacks stacks_;
    int32_t empty_text_ = 0;
    std::unordered_map<int32_t, RecordedFrame> contents_;  // by allocation
    std::unordered_map<int32_t, int32_t> of_op_;
    std::map<RecordedFrame, int32_t> frames_;
    std::map<RecordedStack, int32_t> numbers_;
};

/// One device of a trace as a recording.
class DeviceRecording {
public:
    DeviceRecording(const Trace& trace, Id<Device> device, int64_t first_event)
        : trace_(trace), device_(device), first_event_(first_event) {}

    AllocatorRecording make(Stacks& stacks) {
        collect();
        for (const Action& action : actions_) {
            if (action.kind == Action::kSegment) {
                apply(Id<AllocatorEvent>(action.row));
            } else {
                apply(action, Id<Allocation>(action.row), stacks);
            }
        }
        add_final_state(stacks);
        return std::move(made_);
    }

private:
    void collect() {
        const auto& rows = trace_.allocations;
        const auto devices = rows.column<&Allocation::device>();
        const auto allocs = rows.column<&Allocation::alloc_event>();
        const auto requests = rows.column<&Allocation::free_requested_event>();
        const auto completes = rows.column<&Allocation::free_completed_event>();
        const auto pools = rows.column<&Allocation::pool>();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (devices[i] != device_) continue;
            const auto row = static_cast<uint32_t>(i);
            actions_.push_back({allocs[i], row, Action::kAlloc});
            // Torch writes both, and so do we where a capture counted them as one event.
            if (requests[i] >= 0) actions_.push_back({requests[i], row, Action::kFreeRequested});
            if (completes[i] >= 0) actions_.push_back({completes[i], row, Action::kFreeCompleted});
            names_pools_ |= pools[i] > 0 && allocs[i] >= first_event_;
        }
        for (std::size_t i = 0; i < trace_.allocator_events.size(); ++i) {
            const Id<AllocatorEvent> row(i);
            if (trace_.allocator_events.get<&AllocatorEvent::device>(row) != device_) continue;
            const int64_t event = trace_.allocator_events.get<&AllocatorEvent::event>(row);
            actions_.push_back({event, static_cast<uint32_t>(i), Action::kSegment});
        }
        std::sort(actions_.begin(), actions_.end());
    }

    int64_t time_us(int64_t time_ns) const {
        const Run run = trace_.run();
        if (run.time_basis == TimeBasis::kEventOrder) return -1;
        return std::max<int64_t>(run.start_unix_ns + time_ns, 0) / 1000;
    }

    int64_t handle_of(Id<Stream> stream) const {
        return stream.valid() ? trace_.streams.get<&Stream::handle>(stream) : 0;
    }

    int64_t address_of(uint32_t row, const Allocation& allocation) {
        if (allocation.address > 0) return allocation.address;
        const auto [known, is_new] = assumed_.try_emplace(row, next_address_);
        if (is_new) next_address_ += (allocation.block_bytes + 511) / 512 * 512 + 512;
        return known->second;
    }

    void add_event(int64_t number, RecordedEvent event) {
        if (number < first_event_) return;
        if (!names_pools_) event.pool = -1;
        made_.events.push_back(event);
    }

    void apply(const Action& action, Id<Allocation> id, Stacks& stacks) {
        const Allocation allocation = trace_.allocations[id];
        RecordedEvent event{.address = address_of(action.row, allocation),
                            .size_bytes = allocation.requested_bytes,
                            .stream = handle_of(allocation.stream),
                            .pool = allocation.pool};
        if (action.kind == Action::kAlloc) {
            event.time_us = time_us(allocation.alloc_ns);
            if (action.event >= first_event_) event.stack = stacks.of(id);
        } else if (action.kind == Action::kFreeRequested) {
            event.action = RecordedAction::kFreeRequested;
            event.time_us = time_us(allocation.free_requested_ns);
        } else {
            event.action = RecordedAction::kFreeCompleted;
            event.time_us = time_us(allocation.free_completed_ns);
        }
        add_event(action.event, event);
    }

    void apply(Id<AllocatorEvent> id) {
        const AllocatorEvent row = trace_.allocator_events[id];
        constexpr std::array kActions{RecordedAction::kSegmentAlloc, RecordedAction::kSegmentFree,
                                      RecordedAction::kSegmentMap,   RecordedAction::kSegmentUnmap,
                                      RecordedAction::kOom,          RecordedAction::kSnapshot};
        const RecordedAction action = kActions[static_cast<std::size_t>(row.action)];
        const bool is_oom = action == RecordedAction::kOom;
        const bool is_segment = !is_oom && action != RecordedAction::kSnapshot;
        if (is_segment && row.address < 0) return;  // a profiler trace knows only their sum
        add_event(row.event, {.action = action,
                              .stack = is_oom ? stack_of_failure(row.event) : -1,
                              .address = is_oom ? std::max<int64_t>(row.free_bytes, 0)
                                                : std::max<int64_t>(row.address, 0),
                              .size_bytes = row.size_bytes,
                              .stream = handle_of(row.stream),
                              .pool = row.pool,
                              .time_us = time_us(row.time_ns)});
    }

    void add_final_state(Stacks& stacks) {
        auto [segments, blocks] = segments_at(trace_, device_, INT64_MAX);
        made_.segments = std::move(segments);
        for (const RecordedSegment& segment : made_.segments) {
            made_.settings.expandable_segments |= segment.is_expandable;
        }
        for (const Id<Allocation> row : blocks) {
            const int32_t stack = stacks.of(row);
            if (stack < 0) continue;
            made_.block_stacks.push_back(
                {trace_.allocations.get<&Allocation::address>(row), stack});
        }
    }

    /// The call stack of the request that was refused at `event`; -1: not recorded.
    int32_t stack_of_failure(int64_t event) const {
        for (const Failure failure : trace_.failures.rows()) {
            if (failure.device == device_ && failure.event == event) return failure.stack.value;
        }
        return -1;
    }

    const Trace& trace_;
    Id<Device> device_;
    int64_t first_event_;
    bool names_pools_ = false;
    std::vector<Action> actions_;
    AllocatorRecording made_;
    std::unordered_map<uint32_t, int64_t> assumed_;
    int64_t next_address_ = kFirstAssumedAddress;
};

/// Events before this number rebuild what was there before the recording.
int64_t first_recorded_event(const Trace& trace, Id<Device> device) {
    if (trace.allocator_events.empty()) return 0;
    for (const Id<AllocatorEvent> row : trace.allocator_events.ids()) {
        const bool is_known = trace.allocator_events.get<&AllocatorEvent::address>(row) >= 0;
        if (!is_known) return 0;  // the final state, which implies the first, is not known
    }
    return num_start_events(trace, device);
}

RecordedSettings settings_in(const Trace& trace) {
    RecordedSettings recorded;
    recorded.alloc_conf = std::string(trace.text(trace.run().allocator_settings));
    recorded.tie_order = tie_order_of(trace);
    const auto settings = parse_alloc_conf(recorded.alloc_conf);
    if (!settings) return recorded;
    const bool is_limited = settings->max_split_bytes != kUnlimitedBytes;
    recorded.max_split_bytes = is_limited ? settings->max_split_bytes : -1;
    recorded.gc_threshold = settings->gc_threshold;
    recorded.expandable_segments = settings->expandable_segments;
    recorded.roundup_power2_divisions.assign(settings->roundup_power2_divisions.begin(),
                                             settings->roundup_power2_divisions.end());
    return recorded;
}

}  // namespace

std::vector<AllocatorRecording> recordings_of(const Trace& trace) {
    // A snapshot is of GPUs. The host stands for one only where there is none.
    const bool has_gpu = !is_host(trace, profiled_device(trace));
    std::vector<Id<Device>> devices;
    for (const Id<Device> device : trace.devices.ids()) {
        if (!has_gpu || !is_host(trace, device)) devices.push_back(device);
    }
    if (devices.empty()) devices.emplace_back();
    const std::vector<int64_t> numbers = device_numbers(trace);
    std::vector<AllocatorRecording> made;
    Stacks stacks(trace);
    for (const Id<Device> device : devices) {
        AllocatorRecording recording =
            DeviceRecording(trace, device, first_recorded_event(trace, device)).make(stacks);
        if (recording.events.empty() && recording.segments.empty()) continue;
        const bool maps = recording.settings.expandable_segments;
        recording.device = device.valid() ? numbers[device.index()] : 0;
        recording.settings = settings_in(trace);
        recording.settings.expandable_segments |= maps;
        made.push_back(std::move(recording));
    }
    const auto shared = stacks.take();
    for (AllocatorRecording& recording : made) recording.stacks = shared;
    return made;
}

std::vector<RecordedAnnotation> annotations_of(const Trace& trace) {
    std::vector<RecordedAnnotation> marks;
    const Run run = trace.run();
    if (run.time_basis == TimeBasis::kEventOrder) return marks;
    const Id<Device> profiled = profiled_device(trace);
    const int64_t device = profiled.valid() ? device_numbers(trace)[profiled.index()] : 0;
    const auto add = [&](const MarkedRange& range, bool is_start) {
        const int64_t time_ns = run.start_unix_ns + (is_start ? range.start_ns : range.end_ns);
        marks.push_back({.name = range.name,
                         .is_start = is_start,
                         .device = device,
                         .time_us = std::max<int64_t>(time_ns, 0) / 1000});
    };
    const auto ends_later = [](const MarkedRange& a, const MarkedRange& b) {
        return a.end_ns > b.end_ns;
    };
    std::priority_queue<MarkedRange, std::vector<MarkedRange>, decltype(ends_later)> open;
    const auto close = [&](int64_t until_ns) {
        for (; !open.empty() && open.top().end_ns <= until_ns; open.pop()) add(open.top(), false);
    };
    for (const MarkedRange& range : marked_ranges(trace)) {
        close(range.start_ns);
        add(range, true);
        open.push(range);
    }
    close(INT64_MAX);
    return marks;
}

}  // namespace profiler
