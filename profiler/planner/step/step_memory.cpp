#include "profiler/planner/step/step_memory.h"

#include "models/config/compute_capability.h"

#include <algorithm>

namespace profiler {
namespace {

/// The requests with the options applied, and the category of each allocation.
struct StepStream {
    RequestStream requests;
    std::size_t first_measured = 0;    // begin of the last step
    std::size_t first_update = 0;      // the optimizer's first request; 0: none
    std::vector<Category> categories;  // by allocation
    std::vector<std::optional<PhaseKind>> phases;
};

int64_t size_of(const StepAllocation& allocation, const MemoryOptions& options) {
    const bool is_workspace = is_cublas_workspace(allocation.category, allocation.size_bytes);
    if (options.cublas_workspace_bytes > 0 && is_workspace) return options.cublas_workspace_bytes;
    return options.parallel.size_on_one(allocation);
}

StepStream make_stream(const StepRequests& traced, const MemoryOptions& options) {
    StepRequests zeroed;
    if (options.gradients == Gradients::kZeroed) {
        zeroed.requests = traced.requests;
        zeroed.allocations = traced.allocations;
        zeroed.first_request = traced.first_request;
        zero_gradients(zeroed);
    }
    const StepRequests& step = zeroed.requests.empty() ? traced : zeroed;
    StepStream result;
    RequestStream& stream = result.requests;
    stream.requests.reserve(step.requests.size() + options.persistent_bytes.size());
    for (const int64_t bytes : options.persistent_bytes) stream.allocate(bytes);
    result.first_measured = stream.requests.size() + step.first_request;
    result.categories.assign(stream.num_allocations, Category::kUnknown);
    result.phases.resize(stream.num_allocations);
    std::vector<uint32_t> numbers(step.allocations.size());
    for (const StepRequest& request : step.requests) {
        const StepAllocation& allocation = step.allocations[request.allocation];
        uint32_t& number = numbers[request.allocation];
        if (request.kind != AllocatorRequestKind::kAlloc) {
            stream.requests.push_back({request.kind, number});
            continue;
        }
        const bool is_update = allocation.phase == PhaseKind::kOptimizer;
        if (is_update && allocation.in_last_step && result.first_update == 0) {
            result.first_update = stream.requests.size();
        }
        number = stream.allocate(size_of(allocation, options), allocation.stream, allocation.pool);
        result.categories.push_back(allocation.category);
        result.phases.push_back(allocation.phase);
    }
    return result;
}

Simulation simulate(const StepStream& stream, const MemoryOptions& options,
                    std::optional<int64_t> limit_bytes) {
    return simulate(stream.requests, {.settings = options.settings,
                                      .memory_limit_bytes = limit_bytes,
                                      .first_measured = stream.first_measured});
}

}  // namespace

StepMemory simulate_step(const StepRequests& step, const MemoryOptions& options,
                         std::optional<int64_t> limit_bytes) {
    const Simulation simulation = simulate(make_stream(step, options), options, limit_bytes);
    return {simulation.peak.allocated_bytes, simulation.peak.reserved_bytes,
            simulation.out_of_memory};
}

PeakContents peak_contents(const StepRequests& step, const MemoryOptions& options,
                           std::optional<int64_t> limit_bytes) {
    const StepStream step_stream = make_stream(step, options);
    const RequestStream& stream = step_stream.requests;
    const Simulation simulation = simulate(step_stream, options, limit_bytes);
    PeakContents contents;
    contents.peaks = {simulation.peak.allocated_bytes, simulation.peak.reserved_bytes,
                      simulation.out_of_memory};
    std::vector<int64_t> sizes(stream.num_allocations);
    const std::size_t end = std::min(simulation.peak_request + 1, stream.requests.size());
    int64_t sum = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const AllocatorRequest& request = stream.requests[i];
        const bool is_alloc = request.kind == AllocatorRequestKind::kAlloc;
        if (request.kind == AllocatorRequestKind::kFreeCompleted) continue;
        if (is_alloc) sizes[request.allocation] = request.size_bytes;
        const int64_t change = is_alloc ? request.size_bytes : -sizes[request.allocation];
        sum += change;
        const bool is_persistent = request.allocation < options.persistent_bytes.size();
        int64_t& part = is_persistent ? contents.persistent_bytes
                                      : contents.by_category[static_cast<std::size_t>(
                                            step_stream.categories[request.allocation])];
        part += change;
    }
    if (end > 0) contents.peak_phase = step_stream.phases[stream.requests[end - 1].allocation];
    contents.rounding_bytes = simulation.at_peak.allocated_bytes - sum;
    contents.cached_bytes = simulation.at_peak.reserved_bytes - simulation.at_peak.allocated_bytes;
    return contents;
}

StepLevels levels_of(const StepRequests& step, const MemoryOptions& options) {
    const StepStream step_stream = make_stream(step, options);
    const std::vector<AllocatorRequest>& requests = step_stream.requests.requests;
    std::vector<int64_t> sizes(step_stream.requests.num_allocations);
    StepLevels levels;
    int64_t live = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const AllocatorRequest& request = requests[i];
        if (i == step_stream.first_measured) levels.begin_bytes = live;
        if (request.kind == AllocatorRequestKind::kFreeCompleted) continue;
        const bool is_alloc = request.kind == AllocatorRequestKind::kAlloc;
        if (is_alloc) sizes[request.allocation] = request.size_bytes;
        live += is_alloc ? request.size_bytes : -sizes[request.allocation];
        if (step_stream.first_update > 0 && i >= step_stream.first_update) {
            levels.update_bytes = std::max(levels.update_bytes, live);
        }
    }
    return levels;
}

bool is_cublas_workspace(Category category, int64_t size_bytes) {
    return category == Category::kWorkspace && models::is_cublas_workspace_bytes(size_bytes);
}

}  // namespace profiler
