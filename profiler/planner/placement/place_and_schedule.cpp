#include "profiler/planner/placement/place_and_schedule.h"

#include "models/config/compute_capability.h"
#include "profiler/allocator/simulation.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/planner/placement/kernel_schedule.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace profiler {
namespace {

/// The allocation and event of the trace that a request comes from.
struct RequestOrigin {
    Id<Allocation> allocation;
    AllocatorRequestKind kind = AllocatorRequestKind::kAlloc;
    int64_t event = 0;      // in the recorded step; for a moved free, of the request before it
    bool is_moved = false;  // a free that `zero_gradients` moved
};

int64_t event_of(const Trace& trace, Id<Allocation> row, AllocatorRequestKind kind) {
    switch (kind) {
        case AllocatorRequestKind::kAlloc:
            return trace.allocations.get<&Allocation::alloc_event>(row);
        case AllocatorRequestKind::kFreeCompleted:
            return trace.allocations.get<&Allocation::free_completed_event>(row);
        default:
            return trace.allocations.get<&Allocation::free_requested_event>(row);
    }
}

/// Renumbers the events: requests in their order, each segment event before the request that needs
/// it.
class EventNumbers {
public:
    EventNumbers(const std::vector<SegmentEvent>& segments,
                 const std::vector<RequestOrigin>& origins)
        : origins_(&origins) {
        for (const SegmentEvent& segment : segments) requests_.push_back(segment.request);
    }

    int64_t of_request(std::size_t request) const {
        const auto end = std::upper_bound(requests_.begin(), requests_.end(), request);
        return static_cast<int64_t>(request) + (end - requests_.begin());
    }
    int64_t of_segment(std::size_t index) const {
        return static_cast<int64_t>(requests_[index] + index);
    }
    /// For a boundary between events of the recorded step ("all events before this number").
    int64_t of_limit(int64_t event) const {
        if (event < 0) return event;
        const auto request = std::ranges::lower_bound(*origins_, event, {}, &RequestOrigin::event);
        const auto index = static_cast<std::size_t>(request - origins_->begin());
        const auto end = std::lower_bound(requests_.begin(), requests_.end(), index);
        return static_cast<int64_t>(index) + (end - requests_.begin());
    }

private:
    const std::vector<RequestOrigin>* origins_;
    std::vector<std::size_t> requests_;  // before which each segment event stands, rising
};

class Placer {
public:
    Placer(const Trace& step, const Gpu& gpu, const AllocatorSettings& settings,
           const SoftwareEnvironment& environment)
        : trace_(step), gpu_(gpu), settings_(settings), environment_(environment) {}

    /// Sets blocks, segments and new event numbers. `rows`: the trace rows of the allocations of
    /// `work`.
    void place(StepWork work, const std::vector<Id<Allocation>>& rows) {
        resize_workspaces();
        if (environment_.gradients == Gradients::kZeroed) zero_gradients(work);
        const RequestStream stream = order_requests(work, rows);
        SimulationOptions options{.settings = settings_,
                                  .memory_limit_bytes = tensor_capacity_bytes(gpu_, environment_),
                                  .keep_placements = true};
        Simulation simulation = simulate(stream, options);
        if (simulation.out_of_memory) {
            note_out_of_memory(*simulation.out_of_memory);
            options.memory_limit_bytes.reset();
            simulation = simulate(stream, options);
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Placement& placement = simulation.placements[i];
            trace_.allocations.set<&Allocation::address>(rows[i], placement.address);
            trace_.allocations.set<&Allocation::block_bytes>(rows[i], placement.block_bytes);
        }
        const EventNumbers numbers(simulation.segment_events, origins_);
        add_segments(simulation.segment_events, numbers);
        number_events(rows, numbers);
    }

    void describe() {
        const Id<Run> run(0);
        auto& runs = trace_.runs;
        runs.set<&Run::source>(run, Source::kPredicted);
        runs.set<&Run::time_basis>(run, TimeBasis::kEventOrder);
        runs.set<&Run::device_name>(
            run, trace_.strings.intern(predicted_device_name(gpu_, environment_.id)));
        runs.set<&Run::allocator_settings>(run, trace_.strings.intern(to_text(settings_)));
        runs.set<&Run::memory_limit_bytes>(run, tensor_capacity_bytes(gpu_, environment_));
        const Id<Device> device = profiled_device(trace_);
        if (!device.valid()) return;
        trace_.devices.set<&Device::name>(device, trace_.strings.intern("cuda:0"));
        trace_.devices.set<&Device::total_bytes>(
            device, static_cast<int64_t>(gpu_.usable_memory_bytes.value));
    }

    Trace take() { return std::move(trace_); }

private:
    /// The requests of the step with the current sizes of the trace; allocations are numbered as in
    /// `rows`. Leaves out gradients of a step before the trace.
    RequestStream order_requests(const StepWork& work, const std::vector<Id<Allocation>>& rows) {
        RequestStream stream;
        for (const StepRequest& request : work.requests) {
            if (request.allocation >= rows.size()) continue;
            const Id<Allocation> row = rows[request.allocation];
            const StepAllocation& allocation = work.allocations[request.allocation];
            if (request.kind == AllocatorRequestKind::kAlloc) {
                stream.allocate(trace_.allocations.get<&Allocation::requested_bytes>(row),
                                allocation.stream, allocation.pool);
            } else {
                stream.requests.push_back({request.kind, request.allocation});
            }
            const int64_t event = event_of(trace_, row, request.kind);
            const int64_t last = origins_.empty() ? event : origins_.back().event;
            const bool is_moved = environment_.gradients == Gradients::kZeroed &&
                                  allocation.category == Category::kGradient &&
                                  request.kind == AllocatorRequestKind::kFree;
            origins_.push_back({row, request.kind, is_moved ? last : event, is_moved});
        }
        return stream;
    }

    void resize_workspaces() {
        if (!gpu_.compute_capability) return;
        const int64_t bytes = models::cublas_workspace_bytes(*gpu_.compute_capability);
        for (const Id<Allocation> row : trace_.allocations.ids()) {
            const Id<Storage> storage = trace_.allocations.get<&Allocation::storage>(row);
            if (!storage.valid()) continue;
            if (!is_cublas_workspace(trace_.storages.get<&Storage::category>(storage),
                                     trace_.allocations.get<&Allocation::requested_bytes>(row))) {
                continue;
            }
            trace_.allocations.set<&Allocation::requested_bytes>(row, bytes);
            trace_.storages.set<&Storage::size_bytes>(storage, bytes);
        }
    }

    void note_out_of_memory(const OutOfMemoryPoint& point) {
        const OutOfMemory& detail = point.detail;
        trace_.diagnostics.append(
            {.code = trace_.strings.intern(kStepDoesNotFit),
             .severity = Severity::kError,
             .count = 1,
             .explanation = trace_.strings.intern(fmt::format(
                 "The step does not fit on {}: it requested {} when {} were free.", gpu_.name,
                 format_bytes(detail.requested_bytes), format_bytes(detail.free_bytes)))});
    }

    /// Adds rows for the segment events, and sets the segment of each allocation.
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
            if (origins_[i].kind != AllocatorRequestKind::kAlloc) continue;
            const Id<Allocation> allocation = origins_[i].allocation;
            const int64_t address = trace_.allocations.get<&Allocation::address>(allocation);
            const auto after = live.upper_bound(address);
            if (after == live.begin()) continue;
            const auto& [end, segment] = std::prev(after)->second;
            if (address < end) trace_.allocations.set<&Allocation::segment>(allocation, segment);
        }
    }

    void number_events(const std::vector<Id<Allocation>>& rows, const EventNumbers& numbers) {
        auto& table = trace_.allocations;
        for (const Id<Allocation> row : rows) {
            table.set<&Allocation::free_requested_event>(row, -1);
            table.set<&Allocation::free_completed_event>(row, -1);
        }
        for (std::size_t i = 0; i < origins_.size(); ++i) {
            const auto& [row, kind, event, is_moved] = origins_[i];
            const int64_t number = numbers.of_request(i);
            const bool is_free = kind == AllocatorRequestKind::kFree;
            if (kind == AllocatorRequestKind::kAlloc) {
                table.set<&Allocation::alloc_event>(row, number);
            }
            if (is_free || kind == AllocatorRequestKind::kFreeRequested) {
                table.set<&Allocation::free_requested_event>(row, number);
            }
            if (is_free || kind == AllocatorRequestKind::kFreeCompleted) {
                table.set<&Allocation::free_completed_event>(row, number);
            }
            if (!is_moved) continue;
            table.set<&Allocation::freeing_op>(row, table.get<&Allocation::op>(row));
            table.set<&Allocation::free_requested_ns>(row, table.get<&Allocation::alloc_ns>(row));
            table.set<&Allocation::free_completed_ns>(row, table.get<&Allocation::alloc_ns>(row));
        }
        for (const Id<Allocation> row : rows) {  // zeroed gradients are no longer freed
            if (table.get<&Allocation::free_requested_event>(row) >= 0) continue;
            table.set<&Allocation::free_requested_ns>(row, -1);
            table.set<&Allocation::free_completed_ns>(row, -1);
            table.set<&Allocation::freeing_op>(row, {});
        }
        number_limits<&Save::saved_event>(trace_.saves, numbers);
        number_limits<&Save::released_event>(trace_.saves, numbers);
        number_limits<&Step::first_event>(trace_.steps, numbers);
        number_limits<&Step::last_event>(trace_.steps, numbers);
        number_limits<&Phase::first_event>(trace_.phases, numbers);
        number_limits<&Phase::last_event>(trace_.phases, numbers);
    }

    template <auto Member, typename Row>
    static void number_limits(Table<Row>& table, const EventNumbers& numbers) {
        for (const Id<Row> row : table.ids()) {
            table.template set<Member>(row, numbers.of_limit(table.template get<Member>(row)));
        }
    }

    Trace trace_;
    const Gpu& gpu_;
    const AllocatorSettings& settings_;
    const SoftwareEnvironment& environment_;
    std::vector<RequestOrigin> origins_;
};

}  // namespace

models::Result<Trace> place_and_schedule(const Trace& step, const Gpu& gpu,
                                         const AllocatorSettings& settings,
                                         const Calibration& calibration,
                                         const SoftwareEnvironment& environment) {
    std::vector<Id<Allocation>> rows;
    const auto work = step_work_of(step, &rows);
    if (!work) return tl::unexpected(work.error());
    const auto workload = workload_of(step);
    if (!workload) return models::fail("The trace does not say which workload it ran.");
    Placer placer(step, gpu, settings, environment);
    placer.place(*work, rows);
    placer.describe();
    Trace trace = placer.take();
    if (!gpu.no_kernel_model.empty()) return trace;
    const auto model = make_time_model(gpu, environment, calibration, *workload);
    if (!model) return tl::unexpected(model.error());
    add_modelled_times(trace, *work, *model);
    return trace;
}

int64_t tensor_capacity_bytes(const Gpu& gpu, const SoftwareEnvironment& environment) {
    return static_cast<int64_t>(gpu.usable_memory_bytes.value -
                                environment.context_bytes(gpu.id).value);
}

}  // namespace profiler
