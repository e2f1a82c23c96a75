#include "profiler/formats/snapshot/recorded_trace.h"

#include "profiler/allocator/replay.h"
#include "profiler/allocator/start_state.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/allocator_rows.h"
#include "profiler/trace/available_memory.h"
#include "profiler/trace/contents_text.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/value_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

namespace profiler {
namespace {

constexpr int64_t kMostMicroseconds = int64_t{1} << 43;  // about 100 days

bool is_empty(const AllocatorRecording& device) {
    return device.events.empty() && device.segments.empty();
}

std::string name_of(const AllocatorRecording& device) {
    return device.device == kHostDevice ? "cpu" : fmt::format("cuda:{}", device.device);
}

/// A request was refused, and none was served after it.
bool ends_out_of_memory(const AllocatorRecording& device) {
    for (const RecordedEvent& event : device.events | std::views::reverse) {
        if (event.action == RecordedAction::kAlloc) return false;
        if (event.action == RecordedAction::kOom) return true;
    }
    return false;
}

bool comes_before(const AllocatorRecording* a, const AllocatorRecording* b) {
    const auto weight = [](const AllocatorRecording& device) {
        return std::tuple(device.device != kHostDevice, ends_out_of_memory(device),
                          device.events.size(), device.segments.size());
    };
    return weight(*a) > weight(*b);
}

/// Devices that hold something: those that ran out of memory, then the busiest, then the host.
template <typename Recording>
std::vector<Recording*> by_weight(std::span<Recording> devices) {
    std::vector<Recording*> used;
    for (Recording& device : devices) {
        if (!is_empty(device)) used.push_back(&device);
    }
    std::stable_sort(used.begin(), used.end(), comes_before);
    return used;
}

/// Wall-clock time of the first event in microseconds; none when an event has no time, or times
/// lie further apart than a trace can hold.
std::optional<int64_t> start_time_us(std::span<AllocatorRecording* const> devices) {
    std::optional<int64_t> first, last;
    for (const AllocatorRecording* device : devices) {
        for (const RecordedEvent& event : device->events) {
            if (event.time_us < 0) return std::nullopt;
            first = std::min(first.value_or(event.time_us), event.time_us);
            last = std::max(last.value_or(event.time_us), event.time_us);
        }
    }
    const bool fits = first && *last - *first < kMostMicroseconds && *first < INT64_MAX / 1000;
    return fits ? first : std::nullopt;
}

/// Analyses add up sizes in 64 bits, so all sizes of a file together must stay below a limit.
bool sizes_fit(std::span<AllocatorRecording* const> devices) {
    double sum = 0;
    for (const AllocatorRecording* device : devices) {
        for (const RecordedEvent& event : device->events) {
            if (event.action != RecordedAction::kOom) sum += static_cast<double>(event.size_bytes);
        }
        for (const RecordedSegment& segment : device->segments) {
            sum += static_cast<double>(segment.size_bytes);
        }
    }
    return sum < kMaxColumnSum / 4;  // segments and blocks at the start and at the end come on top
}

/// Adds the rows of call stacks.
class StackRows {
public:
    explicit StackRows(Trace& trace) : trace_(trace) {}

    /// The devices of a file share their stacks: the first device adds them.
    void add(const RecordedStacks* recorded) {
        if (recorded == nullptr || recorded == added_) return;
        added_ = recorded;
        std::vector<StringId> texts;
        for (const std::string& text : recorded->texts) {
            texts.push_back(trace_.strings.intern(is_utf8(text) ? text : std::string()));
        }
        const std::size_t first_frame = trace_.frames.size();
        for (const RecordedFrame& frame : recorded->frames) {
            trace_.frames.append({.function = texts[static_cast<std::size_t>(frame.function)],
                                  .file = texts[static_cast<std::size_t>(frame.file)],
                                  .line = frame.line});
        }
        first_stack_ = trace_.stacks.size();
        for (const RecordedStack& stack : recorded->stacks) {
            const Id<Frame> frame(first_frame + static_cast<std::size_t>(stack.frame));
            trace_.stacks.append({.parent = row_of(stack.parent), .frame = frame});
        }
    }

    /// The row of a stack of the table that was added last; none for -1.
    Id<Stack> row_of(int32_t stack) const {
        if (stack < 0) return {};
        return Id<Stack>(first_stack_ + static_cast<std::size_t>(stack));
    }

private:
    Trace& trace_;
    const RecordedStacks* added_ = nullptr;
    std::size_t first_stack_ = 0;
};

/// Adds the rows of one device.
class DeviceRows {
public:
    DeviceRows(Trace& trace, StackRows& stacks, AllocatorRecording& recording,
               std::optional<int64_t> start_us)
        : trace_(trace),
          stacks_(stacks),
          recording_(recording),
          start_us_(start_us),
          next_fatal_(trace.failures.size()),
          streams_(trace, trace.devices.append({.name = trace.strings.intern(name_of(recording))})),
          rows_(trace, streams_, Category::kUnknown) {}

    void add() {
        stacks_.add(recording_.stacks.get());
        reserve();
        load_start_state();
        add_events();
        set_block_sizes();
        for (const RecordedBlockStack& block : recording_.block_stacks) {
            const Id<Allocation> row = rows_.at(block.address);
            const bool is_known =
                row.valid() && trace_.allocations.get<&Allocation::stack>(row).valid();
            if (!is_known) set_stack(block.address, block.stack);  // from before the recording
        }
    }

    void add_notes() {
        if (recording_.events.empty()) {
            add_diagnostic(
                trace_, {.code = kNoHistory,
                         .severity = Severity::kWarning,
                         .explanation = "The snapshot has no history: it shows what was allocated "
                                        "when it was taken, not how memory changed. Call "
                                        "torch.cuda.memory._record_memory_history() before the "
                                        "steps to record."});
        }
        if (!start_problem_.empty()) {
            add_diagnostic(trace_,
                           {.code = "start_state_unknown",
                            .severity = Severity::kWarning,
                            .explanation = fmt::format("Blocks that were allocated before the "
                                                       "recording began are missing: {}.",
                                                       start_problem_)});
        }
        add_diagnostics(rows_.counts(), trace_);
    }

private:
    static int64_t clamp_bytes(int64_t bytes) {
        return std::clamp(bytes, int64_t{0}, range_of_column("size_bytes").max);
    }

    /// Columns of their final size are not copied while they grow.
    void reserve() {
        const auto num_allocs = static_cast<std::size_t>(
            std::ranges::count(recording_.events, RecordedAction::kAlloc, &RecordedEvent::action));
        const auto grow = [&](const auto&, auto& values) {
            values.reserve(values.size() + num_allocs);
        };
        trace_.allocations.for_each_column(grow);
        trace_.storages.for_each_column(grow);
    }

    void add_events() {
        constexpr std::size_t kPartEvents = std::size_t{1} << 16;  // 3 MiB
        for (std::span<RecordedEvent> rest(recording_.events); !rest.empty();) {
            const auto part = rest.first(std::min(kPartEvents, rest.size()));
            for (const RecordedEvent& event : part) add_event(event);
            give_back_memory(std::as_writable_bytes(part));
            rest = rest.subspan(part.size());
        }
    }

    void add_event(RecordedEvent event) {
        const AllocatorMoment moment = moment_of(event.time_us);
        if (event.action == RecordedAction::kOom) {  // the only sizes that a reader lets be
            event.size_bytes = clamp_bytes(event.size_bytes);
            event.address = clamp_bytes(event.address);
            add_failure(event, moment);
        }
        rows_.apply(event, moment);
        if (event.action != RecordedAction::kAlloc) return;
        set_stack(event.address, event.stack);
        for (; next_fatal_ < trace_.failures.size(); ++next_fatal_) {
            trace_.failures.set<&Failure::outcome>(Id<Failure>(next_fatal_),
                                                   FailureOutcome::kCaught);
        }
    }

    void add_failure(const RecordedEvent& event, const AllocatorMoment& moment) {
        trace_.failures.append({.error = trace_.strings.intern("OutOfMemoryError"),
                                .device = streams_.device(),
                                .event = moment.event,
                                .time_ns = moment.time_ns,
                                .requested_bytes = event.size_bytes,
                                .allocated_bytes = rows_.allocated_bytes(),
                                .reserved_bytes = rows_.reserved_bytes(),
                                .free_bytes = event.address,
                                .limit_bytes = clamp_bytes(rows_.reserved_bytes() + event.address),
                                .stack = stacks_.row_of(event.stack)});
    }

    /// The final state knows the sizes of its blocks, so it also corrects what was allocated when
    /// the program ended.
    void set_block_sizes() {
        const int64_t before_bytes = rows_.allocated_bytes();
        for (const RecordedSegment& segment : recording_.segments) {
            for (const RecordedBlock& block : segment.blocks) {
                if (block.state == BlockState::kInactive) continue;
                rows_.set_block_bytes(block.address, block.size_bytes);
            }
        }
        for (std::size_t row = next_fatal_; row < trace_.failures.size(); ++row) {
            const Id<Failure> id(row);
            const int64_t bytes = trace_.failures.get<&Failure::allocated_bytes>(id);
            trace_.failures.set<&Failure::allocated_bytes>(
                id, bytes + rows_.allocated_bytes() - before_bytes);
        }
    }

    /// The call stack of the live block at `address`.
    void set_stack(int64_t address, int32_t stack) {
        const Id<Allocation> allocation = rows_.at(address);
        if (!allocation.valid() || stack < 0) return;
        trace_.allocations.set<&Allocation::stack>(allocation, stacks_.row_of(stack));
    }

    /// A recording that contradicts itself still shows what its events say. One without segments
    /// may be of a program whose segments nobody recorded: then its end says nothing of its start.
    void load_start_state() {
        const auto start = rebuild_start_state(recording_, settings_of(recording_.settings));
        if (!start) {
            if (!recording_.segments.empty()) start_problem_ = start.error().message;
            return;
        }
        if (start->segments.empty()) return;
        const int64_t first_us = recording_.events.empty() ? -1 : recording_.events[0].time_us;
        rows_.load(start->segments, [&] { return moment_of(first_us); });
        const bool is_first = streams_.device() == Id<Device>(0);
        const std::string code = is_first ? std::string(kStartState)
                                          : fmt::format("{}{}", kStartStateOf, name_of(recording_));
        add_diagnostic(trace_, {.code = code,
                                .count = next_event_,
                                .explanation = "What was allocated before the recording began is "
                                               "shown from the first recorded event on."});
    }

    /// Times never run backwards along the events, though the clock of a machine may.
    AllocatorMoment moment_of(int64_t time_us) {
        const int64_t event = next_event_++;
        const bool is_known = start_us_ && time_us >= 0;
        const int64_t time_ns = is_known    ? (time_us - *start_us_) * 1000
                                : start_us_ ? last_ns_
                                            : event;
        last_ns_ = std::max(last_ns_, time_ns);
        return {.event = event, .time_ns = last_ns_};
    }

    Trace& trace_;
    StackRows& stacks_;
    AllocatorRecording& recording_;
    std::optional<int64_t> start_us_;
    std::size_t next_fatal_;  // the row of the first failure that no allocation follows
    StreamRows streams_;
    AllocatorRows rows_;
    int64_t next_event_ = 0;
    int64_t last_ns_ = 0;
    std::string start_problem_;
};

constexpr std::ptrdiff_t kMostOpenRanges = 64;  // of one name, among which an end is looked up

/// A range of the user on the wall clock. -1: the file lacks this end.
struct RecordedRange {
    std::string_view name;
    int64_t start_us = -1;
    int64_t end_us = -1;
};

/// Ends are matched with the last start of their name, on their device if it has one: PyTorch marks
/// them with the device that is current at the time.
std::vector<RecordedRange> pair_up(std::span<const RecordedAnnotation> annotations) {
    struct Open {
        std::size_t range = 0;
        int64_t device = 0;
    };
    std::vector<RecordedRange> ranges;
    std::map<std::string_view, std::vector<Open>> open_by_name;
    for (const RecordedAnnotation& mark : annotations) {
        if (mark.time_us < 0 || mark.time_us > INT64_MAX / 1000 || !is_utf8(mark.name)) continue;
        auto& open = open_by_name[mark.name];
        if (mark.is_start) {
            open.push_back({ranges.size(), mark.device});
            ranges.push_back({mark.name, mark.time_us});
        } else if (open.empty()) {
            ranges.push_back({.name = mark.name, .end_us = mark.time_us});
        } else {
            auto start = open.end() - 1;
            const auto outermost = open.end() - std::min(std::ssize(open), kMostOpenRanges);
            for (auto other = open.end(); other != outermost && start->device != mark.device;) {
                if ((--other)->device == mark.device) start = other;
            }
            ranges[start->range].end_us = std::max(ranges[start->range].start_us, mark.time_us);
            open.erase(start);
        }
    }
    return ranges;
}

/// The trace begins with its first event, or with a range around it.
int64_t start_with_ranges(int64_t first_us, std::span<const RecordedRange> ranges) {
    constexpr int64_t kLongestRangeUs = int64_t{3'600} * 1'000'000;
    int64_t start_us = first_us;
    for (const RecordedRange& range : ranges) {
        const bool is_around = range.start_us >= 0 && range.end_us > first_us &&
                               first_us - range.start_us < kLongestRangeUs;
        if (is_around) start_us = std::min(start_us, range.start_us);
    }
    return start_us;
}

/// A range without an end reaches to the last time, one without a start to the first.
std::vector<Annotation> rows_of(std::span<const RecordedRange> ranges, int64_t start_us,
                                int64_t last_ns, Trace& trace) {
    std::vector<Annotation> rows;
    for (const RecordedRange& range : ranges) {
        const bool is_before = range.end_us >= 0 && range.end_us < start_us;
        const bool fits = std::max(range.start_us, range.end_us) - start_us < kMostMicroseconds;
        if (is_before || !fits) continue;
        const int64_t start_ns = std::max<int64_t>(range.start_us - start_us, 0) * 1000;
        const int64_t end_ns = range.end_us >= 0 ? (range.end_us - start_us) * 1000 : last_ns;
        rows.push_back({trace.strings.intern(range.name), start_ns, std::max(start_ns, end_ns)});
    }
    std::ranges::stable_sort(rows, {}, &Annotation::start_ns);
    return rows;
}

template <typename Row>
Id<Row> range_at(const Table<Row>& ranges, int64_t time_ns) {
    for (const Id<Row> id : ranges.ids()) {
        const Row range = ranges[id];
        if (range.start_ns <= time_ns && time_ns <= range.end_ns) return id;
    }
    return {};
}

/// The step and the phase in which memory ran out.
void place_failures(Trace& trace) {
    for (const Id<Failure> id : trace.failures.ids()) {
        const int64_t time_ns = trace.failures.get<&Failure::time_ns>(id);
        trace.failures.set<&Failure::step>(id, range_at(trace.steps, time_ns));
        trace.failures.set<&Failure::phase>(id, range_at(trace.phases, time_ns));
    }
}

void add_annotations(std::span<const RecordedRange> ranges, int64_t start_us, Trace& trace) {
    const auto actions = memory_actions(trace, Id<Device>(0));
    const int64_t last_ns = actions.empty() ? 0 : actions.back().time_ns;
    for (const Annotation& row : rows_of(ranges, start_us, last_ns, trace)) {
        trace.annotations.append(row);
    }
    add_steps(trace, [&](int64_t time_ns) { return event_at(actions, time_ns); });
    place_failures(trace);
    if (!trace.steps.empty()) infer_categories(trace);
}

void add_run(Trace& trace, const AllocatorRecording* device, std::optional<int64_t> start_us) {
    Run run{.source = Source::kImported,
            .time_basis = start_us ? TimeBasis::kMeasured : TimeBasis::kEventOrder,
            .state = RunState::kComplete,
            .start_unix_ns = start_us.value_or(0) * 1000};
    if (device != nullptr) run.device_name = trace.strings.intern(name_of(*device));
    if (device != nullptr && is_utf8(device->settings.alloc_conf)) {
        run.allocator_settings = trace.strings.intern(device->settings.alloc_conf);
    }
    // As tie_order_of reads it.
    const auto order = device != nullptr ? tie_order_of(*device) : TieOrder::kAddress;
    if (order == TieOrder::kSegmentAge) {
        run.software = trace.strings.intern(R"({"torch": "2.13 or newer"})");
    } else if (order == TieOrder::kBlockAge) {
        run.software = trace.strings.intern(R"({"torch": "2.12, as its blocks lie"})");
    }
    trace.runs.append(run);
}

}  // namespace

const AllocatorRecording* main_recording(std::span<const AllocatorRecording> devices) {
    const auto used = by_weight(devices);
    if (!used.empty()) return used.front();
    return devices.empty() ? nullptr : &devices.front();
}

models::Result<Trace> trace_of(std::vector<AllocatorRecording> devices,
                               std::span<const RecordedAnnotation> annotations) {
    const auto used = by_weight(std::span(devices));
    if (!sizes_fit(used)) {
        return models::fail("its sizes add up to more than any device has");
    }
    Trace trace;
    auto start_us = start_time_us(used);
    const auto ranges = pair_up(annotations);
    if (start_us) start_us = start_with_ranges(*start_us, ranges);
    add_run(trace, used.empty() ? nullptr : used.front(), start_us);
    StackRows stacks(trace);
    for (AllocatorRecording* recording : used) {
        DeviceRows device(trace, stacks, *recording, start_us);
        device.add();
        if (recording == used.front()) device.add_notes();
    }
    if (start_us && !ranges.empty()) add_annotations(ranges, *start_us, trace);
    if (trace.steps.empty()) infer_gradients(trace);
    take_contents(trace);
    if (!has_note(trace, kToldCategories)) note_allocations_only(trace);
    note_other_devices(trace);
    return trace;
}

}  // namespace profiler
