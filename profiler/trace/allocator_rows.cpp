#include "profiler/trace/allocator_rows.h"

#include <algorithm>

namespace profiler {
namespace {

constexpr int64_t kRoundBytes = 512;  // kMinBlockSize of CUDACachingAllocator.cpp

int64_t round_up(int64_t bytes) {
    return std::max<int64_t>(1, (bytes + kRoundBytes - 1) / kRoundBytes) * kRoundBytes;
}

}  // namespace

void add_diagnostics(const AllocatorRowCounts& counts, Trace& trace) {
    add_diagnostic(trace, {.code = "unmatched_frees",
                           .severity = Severity::kWarning,
                           .count = counts.unmatched_frees,
                           .explanation = "Blocks were freed whose allocation was not recorded."});
    add_diagnostic(trace, {.code = "replaced_blocks",
                           .severity = Severity::kError,
                           .count = counts.replaced_blocks,
                           .explanation = "Blocks were allocated where another block was still "
                                          "live: its free was not recorded."});
    const bool has_segments = std::ranges::any_of(
        trace.allocator_events.column<&AllocatorEvent::action>(),
        [](AllocatorAction action) { return action <= AllocatorAction::kSegmentUnmap; });
    add_diagnostic(trace,
                   {.code = "outside_segments",
                    .severity = has_segments ? Severity::kWarning : Severity::kInfo,
                    .count = counts.outside_segments,
                    .explanation = has_segments ? "Blocks lie in no segment that was recorded."
                                                : "No segments were recorded, so what the "
                                                  "allocator reserved is not known."});
    add_diagnostic(trace,
                   {.code = "unmatched_segments",
                    .severity = Severity::kWarning,
                    .count = counts.unmatched_segments,
                    .explanation = "Segments were freed whose allocation was not recorded."});
    add_diagnostic(trace,
                   {.code = "assumed_block_sizes",
                    .severity = Severity::kInfo,
                    .count = counts.assumed_block_sizes,
                    .explanation = "The allocator did not report the size of these blocks: the "
                                   "requested bytes, rounded up to 512, are used."});
}

void AllocatorRows::load(std::span<const RecordedSegment> segments,
                         const std::function<AllocatorMoment()>& next) {
    apply({.action = RecordedAction::kSnapshot, .pool = 0}, next());
    for (const RecordedSegment& segment : segments) {
        const auto action =
            segment.is_expandable ? RecordedAction::kSegmentMap : RecordedAction::kSegmentAlloc;
        apply({.action = action,
               .address = segment.address,
               .size_bytes = segment.size_bytes,
               .stream = segment.stream,
               .pool = segment.pool},
              next());
    }
    for (const RecordedSegment& segment : segments) {
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state == BlockState::kInactive) continue;
            add_allocation({.address = block.address,
                            .requested_bytes = block.requested_bytes,
                            .block_bytes = block.size_bytes,
                            .stream = segment.stream,
                            .pool = segment.pool},
                           next());
            if (block.state != BlockState::kPendingFree) continue;
            request_free({.action = RecordedAction::kFreeRequested, .address = block.address},
                         next());
        }
    }
}

void AllocatorRows::apply(const RecordedEvent& event, const AllocatorMoment& moment) {
    switch (event.action) {
        case RecordedAction::kAlloc:
            add_allocation({.address = event.address,
                            .requested_bytes = event.size_bytes,
                            .block_bytes = round_up(event.size_bytes),
                            .stream = event.stream,
                            .pool = std::max<int64_t>(event.pool, 0),
                            .size_known = false},
                           moment);
            return;
        case RecordedAction::kFreeRequested:
            return request_free(event, moment);
        case RecordedAction::kFreeCompleted:
            return complete_free(event, moment);
        default:
            return add_event(action_of(event.action), event, moment);
    }
}

void AllocatorRows::add_allocation(const Block& block, const AllocatorMoment& moment) {
    if (live_.contains(block.address)) {
        ++counts_.replaced_blocks;
        complete_free({.action = RecordedAction::kFreeCompleted, .address = block.address}, moment);
    }
    const Id<AllocatorEvent> segment = segments_.event_at(block.address);
    counts_.outside_segments += segment.valid() ? 0 : 1;
    const Id<Storage> storage(trace_.storages.size());
    const Id<Allocation> allocation =
        trace_.allocations.append({.device = streams_.device(),
                                   .stream = streams_.row_of(block.stream),
                                   .pool = block.pool,
                                   .address = block.address,
                                   .requested_bytes = block.requested_bytes,
                                   .block_bytes = block.block_bytes,
                                   .alloc_event = moment.event,
                                   .alloc_ns = moment.time_ns,
                                   .op = moment.op,
                                   .storage = storage,
                                   .segment = segment});
    trace_.storages.append(
        {.allocation = allocation, .size_bytes = block.requested_bytes, .category = category_});
    live_[block.address] = {
        .allocation = allocation, .block_bytes = block.block_bytes, .size_known = block.size_known};
    allocated_bytes_ += block.block_bytes;
    counts_.assumed_block_sizes += block.size_known ? 0 : 1;
}

void AllocatorRows::set_block_bytes(int64_t address, int64_t block_bytes) {
    const auto found = live_.find(address);
    if (found == live_.end()) return;
    Live& live = found->second;
    if (!live.free_requested) allocated_bytes_ += block_bytes - live.block_bytes;
    counts_.assumed_block_sizes -= live.size_known ? 0 : 1;
    live.block_bytes = block_bytes;
    live.size_known = true;
    trace_.allocations.set<&Allocation::block_bytes>(live.allocation, block_bytes);
}

void AllocatorRows::request_free(const RecordedEvent& event, const AllocatorMoment& moment) {
    const auto found = live_.find(event.address);
    if (found == live_.end() || found->second.free_requested) {
        ++counts_.unmatched_frees;
        return;
    }
    Live& live = found->second;
    live.free_requested = true;
    allocated_bytes_ -= live.block_bytes;
    auto& table = trace_.allocations;
    table.set<&Allocation::free_requested_event>(live.allocation, moment.event);
    table.set<&Allocation::free_requested_ns>(live.allocation, moment.time_ns);
    table.set<&Allocation::freeing_op>(live.allocation, moment.op);
}

void AllocatorRows::complete_free(const RecordedEvent& event, const AllocatorMoment& moment) {
    const auto found = live_.find(event.address);
    if (found == live_.end()) {
        ++counts_.unmatched_frees;
        return;
    }
    if (!found->second.free_requested) request_free(event, moment);
    auto& table = trace_.allocations;
    table.set<&Allocation::free_completed_event>(found->second.allocation, moment.event);
    table.set<&Allocation::free_completed_ns>(found->second.allocation, moment.time_ns);
    forget(found);
}

void AllocatorRows::forget(std::unordered_map<int64_t, Live>::iterator live) {
    if (!live->second.free_requested) allocated_bytes_ -= live->second.block_bytes;
    live_.erase(live);
}

void AllocatorRows::add_event(AllocatorAction action, const RecordedEvent& event,
                              const AllocatorMoment& moment) {
    const bool oom = action == AllocatorAction::kOom;
    AllocatorEvent row{.action = action,
                       .event = moment.event,
                       .time_ns = moment.time_ns,
                       .device = streams_.device(),
                       .stream = streams_.row_of(event.stream),
                       .pool = std::max<int64_t>(event.pool, 0),
                       .address = oom ? 0 : event.address,
                       .size_bytes = event.size_bytes};
    if (oom) row.free_bytes = event.address;
    const Id<AllocatorEvent> id = trace_.allocator_events.append(row);
    switch (action) {
        case AllocatorAction::kSegmentAlloc:
        case AllocatorAction::kSegmentMap:
            segments_.add(event.address, event.size_bytes, id);
            return;
        case AllocatorAction::kSegmentFree:
        case AllocatorAction::kSegmentUnmap:
            if (segments_.remove(event.address, event.size_bytes) != event.size_bytes) {
                ++counts_.unmatched_segments;
            }
            return;
        default:
            return;
    }
}

Id<Allocation> AllocatorRows::at(int64_t address) const {
    const auto found = live_.find(address);
    return found == live_.end() ? Id<Allocation>() : found->second.allocation;
}

}  // namespace profiler
