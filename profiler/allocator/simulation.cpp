#include "profiler/allocator/simulation.h"

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

/// Larger devices count as 32 TiB: the model has addresses for two of them (driver.h).
constexpr int64_t kMaxDeviceBytes = int64_t{1} << 45;
constexpr std::size_t kRequestsPerReport = 1 << 15;  // a few milliseconds

ModelDriver driver_for(const SimulationOptions& options) {
    if (!options.memory_limit_bytes) return ModelDriver();
    return ModelDriver(std::min(*options.memory_limit_bytes, kMaxDeviceBytes));
}

/// Recorded addresses are moved by as much, above all that a model of a device gives out.
constexpr int64_t kRecordedAddresses = int64_t{1} << 60;

/// A recorded segment is of no use to settings that take memory in segments of the other kind, and
/// could not have been there below a lower limit.
bool can_start_as_recorded(const RequestStream& stream, const SimulationOptions& options) {
    const auto& segments = stream.start.segments;
    int64_t reserved_bytes = 0;
    for (const RecordedSegment& segment : segments) {
        if (segment.is_expandable != options.settings.expandable_segments) return false;
        if (segment.address < 0 || segment.address > kRecordedAddresses) return false;  // damaged
        reserved_bytes += segment.size_bytes;
    }
    return !segments.empty() && reserved_bytes <= options.memory_limit_bytes.value_or(INT64_MAX);
}

class StreamRun {
public:
    StreamRun(const RequestStream& stream, const SimulationOptions& options)
        : stream_(stream),
          options_(options),
          driver_(driver_for(options)),
          simulator_({options.settings, options.memory_limit_bytes, stream.tie_order}, driver_),
          block_of_(stream.num_allocations, kNoBlock) {
        if (options.keep_placements) result_.placements.resize(stream.num_allocations);
        if (options.keep_curve) result_.curve.reserve(stream.requests.size());
        if (options.from_recorded_start && can_start_as_recorded(stream, options)) load_start();
    }

    Simulation finish() {
        for (std::size_t i = 0; i < stream_.requests.size(); ++i) {
            if (i == options_.first_measured) simulator_.reset_peak();
            if (!step(i)) {
                result_.out_of_memory = {i, simulator_.out_of_memory()};
                collect_events(i);
                break;
            }
            if (simulator_.has_events()) collect_events(i);
            if (options_.keep_curve) result_.curve.push_back(simulator_.use());
            if (i % kRequestsPerReport == 0 && !report(i)) break;
        }
        result_.peak = simulator_.peak();
        result_.num_retries = simulator_.num_retries();
        result_.segments = simulator_.segments();
        return std::move(result_);
    }

private:
    /// The segments come with the first request, which finds its block among theirs.
    void load_start() {
        result_.from_recorded_start = true;
        std::vector<RecordedSegment> segments = stream_.start.segments;
        std::unordered_map<int64_t, uint32_t> allocations;  // by address of the block
        auto next = stream_.start.allocations.begin();
        for (RecordedSegment& segment : segments) {
            segment.address += kRecordedAddresses;
            driver_.hold(segment.size_bytes);
            result_.segment_events.push_back(
                {0,
                 {.action = segment.is_expandable ? RecordedAction::kSegmentMap
                                                  : RecordedAction::kSegmentAlloc,
                  .address = segment.address,
                  .size_bytes = segment.size_bytes,
                  .stream = segment.stream,
                  .pool = segment.pool}});
            for (RecordedBlock& block : segment.blocks) {
                block.address += kRecordedAddresses;
                if (block.state != BlockState::kInactive) allocations[block.address] = *next++;
            }
        }
        simulator_.load(segments);
        for (BlockHandle handle = 0; handle < simulator_.num_blocks(); ++handle) {
            const Block& block = simulator_.block(handle);
            if (!block.is_allocatable()) block_of_[allocations.at(block.address)] = handle;
        }
    }

    bool report(std::size_t done) const {
        return !options_.progress ||
               options_.progress(static_cast<double>(done) /
                                 static_cast<double>(stream_.requests.size()));
    }

    /// False if memory ran out.
    bool step(std::size_t index) {
        const AllocatorRequest& request = stream_.requests[index];
        if (request.kind == AllocatorRequestKind::kAlloc) return allocate(index);
        if (request.kind == AllocatorRequestKind::kEmptyCache) {
            simulator_.empty_cache();
            return true;
        }
        free(request);
        return true;
    }

    void free(const AllocatorRequest& request) {
        BlockHandle& block = block_of_[request.allocation];
        switch (request.kind) {
            case AllocatorRequestKind::kFree:
                simulator_.free(std::exchange(block, kNoBlock));
                break;
            case AllocatorRequestKind::kFreeRequested:
                simulator_.request_free(block);
                pending_[block] = request.allocation;
                break;
            case AllocatorRequestKind::kFreeCompleted:
                // A release may have completed it already.
                if (block == kNoBlock) break;
                pending_.erase(block);
                simulator_.complete_free(std::exchange(block, kNoBlock));
                break;
            default:
                break;
        }
    }

    bool allocate(std::size_t index) {
        const AllocatorRequest& request = stream_.requests[index];
        BlockHandle& block = block_of_[request.allocation];
        if (block == kNoBlock) {  // else it was there before
            block = simulator_.allocate({request.size_bytes, request.stream, request.pool})
                        .value_or(kNoBlock);
        }
        if (block == kNoBlock) return false;
        if (options_.keep_placements) {
            result_.placements[request.allocation] = {simulator_.block(block).address,
                                                      simulator_.block(block).size_bytes};
        }
        if (index >= options_.first_measured) note_peaks(index);
        return true;
    }

    void note_peaks(std::size_t index) {
        const MemoryUse& use = simulator_.use();
        if (use.allocated_bytes > result_.at_peak.allocated_bytes) {
            result_.at_peak = use;
            result_.peak_request = index;
            result_.num_segments_at_peak = simulator_.num_segments();
        }
        if (use.reserved_bytes > result_.at_reserved_peak.reserved_bytes) {
            result_.at_reserved_peak = use;
            result_.num_segments_at_reserved_peak = simulator_.num_segments();
        }
    }

    void collect_events(std::size_t request) {
        for (const RecordedEvent& event : simulator_.take_events()) {
            if (event.action == RecordedAction::kFreeCompleted) continue;
            result_.segment_events.push_back({request, event});
        }
        collect_completed();
    }

    /// A release completes pending frees; their handles may be in use again.
    void collect_completed() {
        for (const BlockHandle block : simulator_.take_completed()) {
            const auto pending = pending_.find(block);
            if (pending == pending_.end()) continue;
            if (block_of_[pending->second] == block) block_of_[pending->second] = kNoBlock;
            pending_.erase(pending);
        }
    }

    const RequestStream& stream_;
    const SimulationOptions& options_;
    ModelDriver driver_;
    Simulator simulator_;
    std::vector<BlockHandle> block_of_;                  // by allocation
    std::unordered_map<BlockHandle, uint32_t> pending_;  // block -> allocation
    Simulation result_;
};

}  // namespace

Simulation simulate(const RequestStream& stream, const SimulationOptions& options) {
    return StreamRun(stream, options).finish();
}

}  // namespace profiler
