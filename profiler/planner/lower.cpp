#include "profiler/planner/lower.h"

#include "profiler/allocator/simulation.h"
#include "profiler/analysis/event_order.h"
#include "profiler/analysis/run_text.h"
#include "profiler/planner/step_memory.h"
#include "profiler/planner/step_time.h"
#include "profiler/planner/timeline.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace profiler {
namespace {

/// Where in the trace a request is from.
struct RequestOrigin {
    Id<Allocation> allocation;
    int64_t event = 0;  // its number in the meta trace
};

std::vector<RequestOrigin> origins_of(const Trace& trace, const RequestStream& stream,
                                      const std::vector<Id<Allocation>>& rows) {
    std::vector<RequestOrigin> origins;
    origins.reserve(stream.requests.size());
    for (const AllocatorRequest& request : stream.requests) {
        const Id<Allocation> row = rows[request.allocation];
        const auto& table = trace.allocations;
        const int64_t event = request.kind == AllocatorRequestKind::kAlloc
                                  ? table.get<&Allocation::alloc_event>(row)
                              : request.kind == AllocatorRequestKind::kFreeCompleted
                                  ? table.get<&Allocation::free_completed_event>(row)
                                  : table.get<&Allocation::free_requested_event>(row);
        origins.push_back({row, event});
    }
    return origins;
}

/// New numbers of the events once segment events stand between them.
class EventNumbers {
public:
    EventNumbers(const std::vector<SegmentEvent>& segments,
                 const std::vector<RequestOrigin>& origins) {
        for (const SegmentEvent& segment : segments) {
            inserted_.push_back(origins[segment.request].event);
        }
    }

    /// Of an allocation or a free.
    int64_t of_event(int64_t event) const {
        return event < 0 ? event : event + count(std::upper_bound(begin(), end(), event));
    }
    /// Of a limit between events: "those before this number".
    int64_t of_limit(int64_t event) const {
        return event < 0 ? event : event + count(std::lower_bound(begin(), end(), event));
    }
    int64_t of_segment(std::size_t index) const {
        return inserted_[index] + static_cast<int64_t>(index);
    }

private:
    std::vector<int64_t>::const_iterator begin() const { return inserted_.begin(); }
    std::vector<int64_t>::const_iterator end() const { return inserted_.end(); }
    int64_t count(std::vector<int64_t>::const_iterator it) const { return it - begin(); }

    std::vector<int64_t> inserted_;  // the event that each is put before, rising
};

AllocatorAction action_of(RecordedAction action) {
    switch (action) {
        case RecordedAction::kSegmentFree:
            return AllocatorAction::kSegmentFree;
        case RecordedAction::kSegmentMap:
            return AllocatorAction::kSegmentMap;
        case RecordedAction::kSegmentUnmap:
            return AllocatorAction::kSegmentUnmap;
        case RecordedAction::kOom:
            return AllocatorAction::kOom;
        default:
            return AllocatorAction::kSegmentAlloc;
    }
}

class Lowering {
public:
    Lowering(const Trace& meta, const Gpu& gpu, const AllocatorSettings& settings,
             const Setup& setup)
        : trace_(meta), gpu_(gpu), settings_(settings), setup_(setup) {}

    /// Blocks, segments and new event numbers.
    void place() {
        resize_workspaces();
        std::vector<Id<Allocation>> rows;
        const RequestStream stream = request_stream_of(trace_, profiled_device(trace_), &rows);
        origins_ = origins_of(trace_, stream, rows);
        SimulationOptions options{.settings = settings_,
                                  .memory_limit_bytes = tensor_capacity_bytes(gpu_, setup_),
                                  .keep_placements = true};
        Simulation simulation = simulate(stream, options);
        if (simulation.out_of_memory) {
            note_out_of_memory(*simulation.out_of_memory);
            options.memory_limit_bytes.reset();
            simulation = simulate(stream, options);
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            trace_.allocations.set<&Allocation::address>(rows[i], simulation.placements[i].address);
            trace_.allocations.set<&Allocation::block_bytes>(rows[i],
                                                             simulation.placements[i].block_bytes);
        }
        const EventNumbers numbers(simulation.segment_events, origins_);
        add_segments(simulation.segment_events, numbers);
        number_events(numbers);
    }

    void add_times(const StepWork& work, const TimeModel& model) {
        Timeline(trace_, work, model, kernel_stream()).add_times();
    }

    void describe() {
        const Id<Run> run(0);
        auto& runs = trace_.runs;
        runs.set<&Run::source>(run, Source::kPredicted);
        runs.set<&Run::time_basis>(
            run, gpu_.no_kernel_model.empty() ? TimeBasis::kModelled : TimeBasis::kEventOrder);
        runs.set<&Run::device_name>(
            run, trace_.strings.intern(fmt::format("{}, setup {}", gpu_.name, setup_.id)));
        runs.set<&Run::allocator_settings>(run, trace_.strings.intern(to_text(settings_)));
        runs.set<&Run::memory_limit_bytes>(run, tensor_capacity_bytes(gpu_, setup_));
        const Id<Device> device = profiled_device(trace_);
        if (!device.valid()) return;
        trace_.devices.set<&Device::name>(device, trace_.strings.intern("cuda:0"));
        trace_.devices.set<&Device::total_bytes>(
            device, static_cast<int64_t>(gpu_.usable_memory_bytes.value));
    }

    Trace take() { return std::move(trace_); }

private:
    void resize_workspaces() {
        if (!gpu_.compute_capability) return;
        const int64_t bytes = models::cublas_workspace_bytes(*gpu_.compute_capability);
        for (std::size_t i = 0; i < trace_.allocations.size(); ++i) {
            const Id<Allocation> row(i);
            const Id<Storage> storage = trace_.allocations.get<&Allocation::storage>(row);
            if (!storage.valid()) continue;
            if (!is_cublas_workspace(trace_.storages.get<&Storage::role>(storage),
                                     trace_.allocations.get<&Allocation::requested_bytes>(row))) {
                continue;
            }
            trace_.allocations.set<&Allocation::requested_bytes>(row, bytes);
            trace_.storages.set<&Storage::size_bytes>(storage, bytes);
        }
    }

    void note_out_of_memory(const OutOfMemoryPoint& point) {
        const OutOfMemory& detail = point.detail;
        trace_.health.append(
            {.code = trace_.strings.intern(kDoesNotFit),
             .severity = Severity::kError,
             .count = 1,
             .explanation = trace_.strings.intern(fmt::format(
                 "The step does not fit on {}: {} were asked for where {} were free.", gpu_.name,
                 format_bytes(detail.requested_bytes), format_bytes(detail.free_bytes)))});
    }

    /// Rows of the segment events; each allocation learns in which segment it lies.
    void add_segments(const std::vector<SegmentEvent>& segments, const EventNumbers& numbers) {
        std::map<int64_t, std::pair<int64_t, Id<AllocatorEvent>>> live;  // address -> end, row
        std::size_t next = 0;
        for (std::size_t i = 0; i < origins_.size(); ++i) {
            for (; next < segments.size() && segments[next].request == i; ++next) {
                const RecordedEvent& event = segments[next].event;
                const Id<AllocatorEvent> row = trace_.allocator_events.append(
                    {.action = action_of(event.action),
                     .event = numbers.of_segment(next),
                     .device = profiled_device(trace_),
                     .stream = trace_.allocations.get<&Allocation::stream>(origins_[i].allocation),
                     .pool = std::max<int64_t>(event.pool, 0),
                     .address = event.address,
                     .size_bytes = event.size_bytes});
                if (event.action == RecordedAction::kSegmentFree ||
                    event.action == RecordedAction::kSegmentUnmap) {
                    live.erase(event.address);
                } else {
                    live[event.address] = {event.address + event.size_bytes, row};
                }
            }
            const Id<Allocation> allocation = origins_[i].allocation;
            if (trace_.allocations.get<&Allocation::alloc_event>(allocation) != origins_[i].event) {
                continue;
            }
            const int64_t address = trace_.allocations.get<&Allocation::address>(allocation);
            const auto after = live.upper_bound(address);
            if (after == live.begin()) continue;
            const auto& [end, segment] = std::prev(after)->second;
            if (address < end) trace_.allocations.set<&Allocation::segment>(allocation, segment);
        }
    }

    void number_events(const EventNumbers& numbers) {
        renumber<&Allocation::alloc_event>(trace_.allocations, numbers, &EventNumbers::of_event);
        renumber<&Allocation::free_requested_event>(trace_.allocations, numbers,
                                                    &EventNumbers::of_event);
        renumber<&Allocation::free_completed_event>(trace_.allocations, numbers,
                                                    &EventNumbers::of_event);
        renumber<&Save::saved_event>(trace_.saves, numbers, &EventNumbers::of_limit);
        renumber<&Save::released_event>(trace_.saves, numbers, &EventNumbers::of_limit);
        renumber<&Step::first_event>(trace_.steps, numbers, &EventNumbers::of_limit);
        renumber<&Step::last_event>(trace_.steps, numbers, &EventNumbers::of_limit);
        renumber<&Phase::first_event>(trace_.phases, numbers, &EventNumbers::of_limit);
        renumber<&Phase::last_event>(trace_.phases, numbers, &EventNumbers::of_limit);
    }

    template <auto Member, typename Row>
    static void renumber(Table<Row>& table, const EventNumbers& numbers,
                         int64_t (EventNumbers::*number)(int64_t) const) {
        for (std::size_t i = 0; i < table.size(); ++i) {
            const Id<Row> row(i);
            table.template set<Member>(row, (numbers.*number)(table.template get<Member>(row)));
        }
    }

    Id<Stream> kernel_stream() {
        if (!trace_.streams.empty()) return Id<Stream>(0);
        return trace_.streams.append({.device = profiled_device(trace_)});
    }

    Trace trace_;
    const Gpu& gpu_;
    const AllocatorSettings& settings_;
    const Setup& setup_;
    std::vector<RequestOrigin> origins_;
};

}  // namespace

models::Result<Trace> lower(const Trace& meta, const Gpu& gpu, const AllocatorSettings& settings,
                            const Calibration& calibration, const Setup& setup) {
    const auto work = step_work_of(meta);
    if (!work) return tl::unexpected(work.error());
    const auto workload = workload_of(meta);
    Lowering lowering(meta, gpu, settings, setup);
    lowering.place();
    if (gpu.no_kernel_model.empty()) {
        const auto model = make_time_model(gpu, setup, calibration, *workload);
        if (!model) return tl::unexpected(model.error());
        lowering.add_times(*work, *model);
    }
    lowering.describe();
    return lowering.take();
}

int64_t tensor_capacity_bytes(const Gpu& gpu, const Setup& setup) {
    return static_cast<int64_t>(gpu.usable_memory_bytes.value - setup.context_bytes(gpu.id).value);
}

}  // namespace profiler
